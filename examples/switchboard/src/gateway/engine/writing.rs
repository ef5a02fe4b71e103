//! [`Writing`]: writes that continue even if their caller is dropped.

use std::future::Future;

use rpc_core::sync::Mutex;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// Tasks that continue when the value is dropped.
#[derive(Debug, Default)]
struct Tasks(JoinSet<()>);

impl Drop for Tasks {
    fn drop(&mut self) {
        self.0.detach_all();
    }
}

/// The started writes.
#[derive(Debug, Default)]
pub(super) struct Writing {
    tasks: Mutex<Tasks>,
}

impl Writing {
    /// Starts a write, which continues even if the caller is dropped. The receiver gets its result.
    pub(super) fn start<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> oneshot::Receiver<T> {
        let (ended, end) = oneshot::channel();
        // Without a runtime the process is at its end.
        if let Ok(runtime) = Handle::try_current() {
            let mut tasks = self.tasks.lock();
            while tasks.0.try_join_next().is_some() {}
            let work = async move {
                let _ = ended.send(work.await);
            };
            tasks.0.spawn_on(work, &runtime);
        }
        end
    }

    /// Waits for the writes started so far.
    pub(super) async fn finished(&self) {
        let mut tasks = {
            let mut tasks = self.tasks.lock();
            std::mem::take(&mut *tasks)
        };
        while tasks.0.join_next().await.is_some() {}
    }
}
