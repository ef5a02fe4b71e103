//! [`Running`]: futures that run side by side in one task.

use std::collections::VecDeque;
use std::future::{Future, pending};
use std::panic::AssertUnwindSafe;
use std::task::{Context, Poll, Waker};

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};

/// Futures that run side by side in the task that awaits [`poll_next`](Self::poll_next). They are not tasks
/// of their own: they start in order and are dropped with their owner. Only woken futures are
/// polled, and they go on before new ones start.
#[derive(Default)]
pub struct Running {
    new: VecDeque<BoxFuture<'static, ()>>,
    /// Those that were not ready when they started. Few requests have to wait, so this is made for
    /// the first that does.
    waiting: Option<FuturesUnordered<BoxFuture<'static, ()>>>,
}

impl Running {
    /// Creates an empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a future. It is first polled with the next poll of [`poll_next`](Self::poll_next).
    pub fn push(&mut self, work: impl Future<Output = ()> + Send + 'static) {
        self.new.push_back(Box::pin(work));
    }

    /// Waits until one of the futures has ended; forever while there are none.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.poll_waiting(cx).is_ready() {
            return Poll::Ready(());
        }
        let mut must_wait = false;
        while let Some(mut work) = self.new.pop_front() {
            if work.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            self.wait_for(work);
            must_wait = true;
        }
        if must_wait {
            // Until now they would wake the task, and not say which of them is meant.
            return self.poll_waiting(cx);
        }
        Poll::Pending
    }

    fn poll_waiting(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(waiting) = &mut self.waiting else {
            return Poll::Pending;
        };
        if waiting.poll_next_unpin(cx).is_pending() {
            return Poll::Pending;
        }
        if waiting.len() == 1 {
            // An idle connection holds nothing.
            self.waiting = None;
        }
        Poll::Ready(())
    }

    fn wait_for(&mut self, work: BoxFuture<'static, ()>) {
        let waiting = self.waiting.get_or_insert_with(|| {
            // A set that has polled all that it holds asks for another turn at once, as if there
            // were more to do. One that is never woken keeps it from that.
            let never: BoxFuture<'static, ()> = Box::pin(pending());
            let mut waiting = FuturesUnordered::from_iter([never]);
            let _ = waiting.poll_next_unpin(&mut Context::from_waker(Waker::noop()));
            waiting
        });
        waiting.push(work);
    }

    /// Returns the number of futures.
    #[must_use]
    pub fn len(&self) -> usize {
        // Without the one that never ends.
        let waiting = self.waiting.as_ref().map_or(0, |waiting| waiting.len() - 1);
        self.new.len() + waiting
    }

    /// Returns whether there are no futures.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

crate::debug::debug_fields!([] Running, this => { len: this.len() });

/// Runs code of a program. A panic in it is logged as one of `whose`, and gives `None`.
///
/// # Cancel safety
/// As cancel-safe as `work`.
#[doc(hidden)]
pub fn catch_panic<T>(
    whose: &'static str,
    work: impl Future<Output = T>,
) -> impl Future<Output = Option<T>> {
    // Not an `async fn`, which would keep room for `work` twice.
    AssertUnwindSafe(work).catch_unwind().map(move |outcome| {
        if outcome.is_err() {
            tracing::error!("{whose} panicked");
        }
        outcome.ok()
    })
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex};
    use std::task::{Context, Wake};

    use futures_util::FutureExt;
    use tokio::sync::oneshot;

    use super::*;

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    async fn next(running: &mut Running) {
        poll_fn(|cx| running.poll_next(cx)).await;
    }

    #[test]
    fn a_woken_future_is_polled_once() {
        let wakes = Arc::new(Wakes::default());
        let waker = Arc::clone(&wakes).into();
        let mut cx = Context::from_waker(&waker);
        let (sender, mut receiver) = tokio::sync::mpsc::channel::<()>(1);
        let mut running = Running::new();
        running.push(async move { while receiver.recv().await.is_some() {} });
        assert!(running.poll_next(&mut cx).is_pending());
        assert_eq!(wakes.0.load(Ordering::SeqCst), 0);
        for _ in 0..3 {
            sender.try_send(()).unwrap();
            assert_eq!(wakes.0.swap(0, Ordering::SeqCst), 1);
            assert!(running.poll_next(&mut cx).is_pending());
            assert_eq!(wakes.0.load(Ordering::SeqCst), 0);
        }
    }

    #[test]
    fn woken_futures_run_before_new_ones() {
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut cx = Context::from_waker(Waker::noop());
        let mut running = Running::new();
        let (sender, receiver) = oneshot::channel::<()>();
        let log = Arc::clone(&order);
        running.push(async move {
            let _ = receiver.await;
            log.lock().unwrap().push("woken");
        });
        assert!(running.poll_next(&mut cx).is_pending());
        let log = Arc::clone(&order);
        running.push(async move { log.lock().unwrap().push("new") });
        sender.send(()).unwrap();
        while running.poll_next(&mut cx).is_ready() {}
        assert_eq!(*order.lock().unwrap(), ["woken", "new"]);
    }

    #[tokio::test]
    async fn every_future_completes_once() {
        let mut running = Running::new();
        assert!(next(&mut running).now_or_never().is_none());
        let (first, waits) = oneshot::channel::<()>();
        running.push(waits.map(drop));
        running.push(async {});
        assert_eq!(running.len(), 2);
        next(&mut running).await;
        assert_eq!(running.len(), 1);
        assert_eq!(next(&mut running).now_or_never(), None);
        first.send(()).unwrap();
        next(&mut running).await;
        assert!(running.is_empty());
        assert_eq!(next(&mut running).now_or_never(), None);
        running.push(async {});
        assert!(matches!(next(&mut running).now_or_never(), Some(())));
    }
}
