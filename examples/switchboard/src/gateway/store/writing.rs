//! [`Writing`]: writes that continue even if their caller is dropped.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::sync::RwLock;

/// The writes of one place. The lock is read by those whose callers were dropped.
#[derive(Debug, Default)]
pub(in crate::gateway) struct Writing(Arc<RwLock<()>>);

impl Writing {
    /// Makes a write that continues even if its caller is dropped.
    pub(in crate::gateway) fn start<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Write<T> {
        Write(Some(Box::pin(work)), Arc::clone(&self.0))
    }

    /// Waits for the writes whose callers were dropped so far.
    pub(in crate::gateway) async fn finished(&self) {
        drop(self.0.write().await);
    }
}

/// A write, until it is done. Its caller does it, or, if that is dropped, a task.
pub(in crate::gateway) struct Write<T: Send + 'static>(
    Option<BoxFuture<'static, T>>,
    Arc<RwLock<()>>,
);

impl<T: Send + 'static> Future for Write<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        // One that panics is not polled again.
        let Some(mut work) = self.0.take() else {
            return Poll::Pending;
        };
        let outcome = work.as_mut().poll(cx);
        self.0 = Some(work).filter(|_| outcome.is_pending());
        outcome
    }
}

impl<T: Send + 'static> Drop for Write<T> {
    fn drop(&mut self) {
        // Without a runtime the process is at its end.
        if let Some(work) = self.0.take()
            && let Ok(runtime) = Handle::try_current()
        {
            let reading = Arc::clone(&self.1).try_read_owned();
            runtime.spawn(async {
                drop(work.await);
                drop(reading);
            });
        }
    }
}
