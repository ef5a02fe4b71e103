//! [`WakeFlag`]: whether a task was woken for one of the things that it waits for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake};

use futures_util::task::AtomicWaker;

/// Wakes a task and notes that it has, so that at its other wake-ups what would wake it through this is not
/// polled in vain. Set at first, when nothing was polled yet.
#[derive(Default)]
pub(crate) struct WakeFlag {
    task: AtomicWaker,
    is_unset: AtomicBool,
}

impl WakeFlag {
    /// Registers the task, and returns whether the flag was set since the last look.
    #[inline]
    pub(crate) fn take(&self, cx: &Context<'_>) -> bool {
        self.task.register(cx.waker());
        !self.is_unset.swap(true, Ordering::AcqRel)
    }

    /// Sets the flag and wakes the task.
    pub(super) fn set(&self) {
        self.is_unset.store(false, Ordering::Release);
        self.task.wake();
    }
}

impl Wake for WakeFlag {
    fn wake(self: Arc<Self>) {
        self.set();
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    #[test]
    fn the_task_that_looked_last_is_woken_and_learns_why() {
        let [first, second, flag] = [(); 3].map(|()| Arc::new(WakeFlag::default()));
        let no_task = Context::from_waker(Waker::noop());
        for task in [&first, &second] {
            assert!(task.take(&no_task));
            let waker = Waker::from(Arc::clone(task));
            flag.take(&Context::from_waker(&waker));
        }
        Waker::from(Arc::clone(&flag)).wake();
        assert!(!first.take(&no_task) && second.take(&no_task));
        assert!(flag.take(&no_task) && !flag.take(&no_task));
    }
}
