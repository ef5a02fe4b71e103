//! [`Control`] and [`StopOnDrop`], which stop a call from outside.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use extism::CancelHandle;
use tokio::runtime::Handle;
use tokio::sync::watch;

/// First and longest pause between two attempts to stop a call.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Locks, even after a panic: the data is always consistent.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Default)]
enum Stage {
    #[default]
    Waiting,
    Running(CancelHandle),
    Over,
}

/// The state of a call, shared by the thread that runs it and its caller.
pub(super) struct Control {
    stage: Mutex<Stage>,
    stopped: watch::Sender<bool>,
}

impl Control {
    pub(super) fn new() -> Self {
        Self {
            stage: Mutex::new(Stage::Waiting),
            stopped: watch::Sender::new(false),
        }
    }

    /// Marks the call as started. Returns `false` if it was already stopped.
    pub(super) fn start(&self, handle: CancelHandle) -> bool {
        let mut stage = lock(&self.stage);
        if self.is_stopped() {
            return false;
        }
        *stage = Stage::Running(handle);
        true
    }

    /// Marks the call as ended. Returns `true` if it was stopped.
    pub(super) fn finish(&self) -> bool {
        let mut stage = lock(&self.stage);
        *stage = Stage::Over;
        self.is_stopped()
    }

    /// Stops the call. Returns `true` if it is still running and must be stopped again: the engine
    /// notices only after the called function has started.
    pub(super) fn stop(&self) -> bool {
        let stage = lock(&self.stage);
        self.stopped.send_replace(true);
        if let Stage::Running(handle) = &*stage {
            // Fails when the program ends.
            handle.cancel().is_ok()
        } else {
            false
        }
    }

    pub(super) fn is_stopped(&self) -> bool {
        *self.stopped.borrow()
    }

    /// Waits until the call is stopped.
    pub(super) async fn stopped(&self) {
        // The sender lives as long as `self`.
        let _ = self.stopped.subscribe().wait_for(|stopped| *stopped).await;
    }
}

/// A guard that stops a call when its caller drops it.
pub(super) struct StopOnDrop(pub(super) Arc<Control>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        if !self.0.stop() {
            return;
        }
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        let control = self.0.clone();
        runtime.spawn(async move {
            let mut pause = FIRST_PAUSE;
            loop {
                tokio::time::sleep(pause).await;
                if !control.stop() {
                    return;
                }
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        });
    }
}
