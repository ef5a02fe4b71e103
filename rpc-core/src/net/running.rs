//! [`Running`]: futures that run side by side in one task.

use std::fmt;
use std::future::{Future, pending, poll_fn};
use std::task::{Context, Poll};

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;

/// Futures that run side by side in the task that awaits [`next`](Self::next). They are not tasks
/// of their own: they start in order and are dropped with their owner. Only woken futures are
/// polled.
#[derive(Default)]
pub struct Running {
    set: FuturesUnordered<BoxFuture<'static, ()>>,
}

impl Running {
    /// Creates an empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a future. It is first polled with the next poll of [`next`](Self::next).
    pub fn push(&mut self, work: impl Future<Output = ()> + Send + 'static) {
        if self.set.is_empty() {
            // A set that has polled all that it holds asks for another turn at once, as if there
            // were more to do. One that is never woken keeps it from that.
            self.set.push(Box::pin(pending()));
        }
        self.set.push(Box::pin(work));
    }

    /// Waits until one of the futures has ended; forever while there are none.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn next(&mut self) {
        poll_fn(|cx| self.poll_next(cx)).await;
    }

    /// Poll form of [`next`](Self::next).
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.set.is_empty() || self.set.poll_next_unpin(cx).is_pending() {
            return Poll::Pending;
        }
        if self.is_empty() {
            // An idle connection holds nothing.
            self.set = FuturesUnordered::new();
        }
        Poll::Ready(())
    }

    /// Returns the number of futures.
    #[must_use]
    pub fn len(&self) -> usize {
        // Without the one that never ends.
        self.set.len().saturating_sub(1)
    }

    /// Returns whether there are no futures.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("len", &self.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
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

    #[test]
    fn what_was_woken_costs_one_turn_and_no_more() {
        let wakes = Arc::new(Wakes::default());
        let waker = Arc::clone(&wakes).into();
        let mut cx = Context::from_waker(&waker);
        let (sender, mut receiver) = tokio::sync::mpsc::channel::<()>(1);
        let mut running = Running::new();
        running.push(async move { while receiver.recv().await.is_some() {} });
        // The first turn polls it and the one that never ends.
        while pin!(running.next()).poll(&mut cx).is_pending()
            && wakes.0.swap(0, Ordering::SeqCst) > 0
        {}
        for _ in 0..3 {
            sender.try_send(()).unwrap();
            assert_eq!(wakes.0.swap(0, Ordering::SeqCst), 1);
            assert!(pin!(running.next()).poll(&mut cx).is_pending());
            assert_eq!(wakes.0.load(Ordering::SeqCst), 0);
        }
    }

    #[tokio::test]
    async fn the_end_of_each_is_told_once_and_none_is_awaited_for_ever() {
        let mut running = Running::new();
        assert!(running.next().now_or_never().is_none());
        let (first, waits) = oneshot::channel::<()>();
        running.push(waits.map(drop));
        running.push(async {});
        assert_eq!(running.len(), 2);
        running.next().await;
        assert_eq!(running.len(), 1);
        assert_eq!(running.next().now_or_never(), None);
        first.send(()).unwrap();
        running.next().await;
        assert!(running.is_empty());
        assert_eq!(running.next().now_or_never(), None);
        running.push(async {});
        assert!(matches!(running.next().now_or_never(), Some(())));
    }
}
