//! [`Cancellation`]: a signal to stop.

use tokio::sync::watch;

/// Signals the holders of the [`Cancellation`] to stop. Dropping it does the same.
#[derive(Debug)]
pub struct Canceller(watch::Sender<bool>);

impl Canceller {
    /// Cancels for good.
    pub fn cancel(&self) {
        self.0.send_replace(true);
    }
}

/// A signal to stop. Cheap to clone.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use rpc_core::net::Cancellation;
///
/// let (canceller, mut cancellation) = Cancellation::new();
/// let worker = tokio::spawn(async move { cancellation.cancelled().await });
/// canceller.cancel();
/// worker.await.unwrap();
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Cancellation(watch::Receiver<bool>);

impl Cancellation {
    /// Creates a signal and its sender.
    #[must_use]
    pub fn new() -> (Canceller, Self) {
        let (sender, receiver) = watch::channel(false);
        (Canceller(sender), Self(receiver))
    }

    /// Returns whether the signal was given.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        *self.0.borrow() || self.0.has_changed().is_err()
    }

    /// Waits until the signal is given; owns the signal meanwhile.
    ///
    /// # Cancel safety
    /// Cancel-safe: the signal stays for clones.
    pub async fn into_cancelled(mut self) {
        self.cancelled().await;
    }

    /// Waits until the signal is given.
    ///
    /// # Cancel safety
    /// Cancel-safe: the signal stays.
    pub async fn cancelled(&mut self) {
        // An error means that the sender is gone, which says the same.
        let _ = self.0.wait_for(|cancelled| *cancelled).await;
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn a_cancellation_is_permanent_and_shared_by_clones() {
        let (canceller, mut first) = Cancellation::new();
        let mut second = first.clone();
        assert!(first.cancelled().now_or_never().is_none());
        canceller.cancel();
        assert!(first.is_cancelled() && second.is_cancelled());
        first.cancelled().await;
        second.cancelled().await;
        first.cancelled().await;
    }

    #[tokio::test]
    async fn a_dropped_canceller_cancels() {
        let (canceller, mut signal) = Cancellation::new();
        assert!(!signal.is_cancelled());
        drop(canceller);
        assert!(signal.is_cancelled());
        signal.cancelled().await;
    }
}
