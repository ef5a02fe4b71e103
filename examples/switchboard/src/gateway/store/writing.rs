//! [`Writing`]: writes that continue even if their caller is dropped.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use rpc_core::sync::Mutex;
use tokio::runtime::Handle;
use tokio::task::JoinSet;

/// Tasks that continue when the value is dropped.
#[derive(Debug, Default)]
struct Tasks(JoinSet<()>);

impl Drop for Tasks {
    fn drop(&mut self) {
        self.0.detach_all();
    }
}

/// The writes whose callers were dropped.
#[derive(Debug, Default)]
pub(in crate::gateway) struct Writing {
    tasks: Arc<Mutex<Tasks>>,
}

impl Writing {
    /// Makes a write that continues even if its caller is dropped.
    pub(in crate::gateway) fn start<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Write<T> {
        Write {
            work: Some(Box::pin(work)),
            tasks: Arc::clone(&self.tasks),
        }
    }

    /// Waits for the writes whose callers were dropped so far.
    pub(in crate::gateway) async fn finished(&self) {
        let mut tasks = std::mem::take(&mut *self.tasks.lock());
        while tasks.0.join_next().await.is_some() {}
    }
}

/// A write. Its caller does it, or, if that is dropped, a task.
pub(in crate::gateway) struct Write<T: Send + 'static> {
    /// `None` once it is done.
    work: Option<BoxFuture<'static, T>>,
    tasks: Arc<Mutex<Tasks>>,
}

impl<T: Send + 'static> Future for Write<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        // One that panics is not polled again.
        let Some(mut work) = self.work.take() else {
            return Poll::Pending;
        };
        let outcome = work.as_mut().poll(cx);
        self.work = Some(work).filter(|_| outcome.is_pending());
        outcome
    }
}

impl<T: Send + 'static> Drop for Write<T> {
    fn drop(&mut self) {
        // Without a runtime the process is at its end.
        if let Some(work) = self.work.take()
            && let Ok(runtime) = Handle::try_current()
        {
            let mut tasks = self.tasks.lock();
            while tasks.0.try_join_next().is_some() {}
            tasks.0.spawn_on(async { drop(work.await) }, &runtime);
        }
    }
}
