//! [`Writing`]: what is being written down, whether or not anybody still waits for it.

use std::future::Future;
use std::sync::{Mutex, PoisonError};

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// Tasks that go on when they are dropped.
#[derive(Debug, Default)]
struct Tasks(JoinSet<()>);

impl Drop for Tasks {
    fn drop(&mut self) {
        self.0.detach_all();
    }
}

/// Writes that have been started.
#[derive(Debug, Default)]
pub(super) struct Writing {
    tasks: Mutex<Tasks>,
}

impl Writing {
    /// Starts one, which goes on whatever becomes of the caller. The receiver gets its outcome.
    pub(super) fn start<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> oneshot::Receiver<T> {
        let (ended, end) = oneshot::channel();
        // Without a runtime the process is at its end.
        if let Ok(runtime) = Handle::try_current() {
            let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
            while tasks.0.try_join_next().is_some() {}
            let work = async move {
                let _ = ended.send(work.await);
            };
            tasks.0.spawn_on(work, &runtime);
        }
        end
    }

    /// Waits for those that were started so far.
    pub(super) async fn finished(&self) {
        let mut tasks = {
            let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *tasks)
        };
        while tasks.0.join_next().await.is_some() {}
    }
}
