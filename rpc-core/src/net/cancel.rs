//! [`Cancellation`]: a signal that something should come to an end.

use tokio::sync::watch;

/// Tells whoever holds the [`Cancellation`] to stop. Dropping it says the same.
#[derive(Debug)]
pub struct Canceller(watch::Sender<bool>);

impl Canceller {
    /// Cancels, once and for all.
    pub fn cancel(&self) {
        self.0.send_replace(true);
    }
}

/// A signal that something should come to an end. Cheap to clone.
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
    /// A signal and its sender.
    #[must_use]
    pub fn new() -> (Canceller, Self) {
        let (sender, receiver) = watch::channel(false);
        (Canceller(sender), Self(receiver))
    }

    /// Whether it was given.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        *self.0.borrow() || self.0.has_changed().is_err()
    }

    /// Waits until it is given; owns the signal meanwhile.
    ///
    /// # Cancel safety
    /// Safe: the signal stays for clones.
    pub async fn into_cancelled(mut self) {
        self.cancelled().await;
    }

    /// Waits until it is given.
    ///
    /// # Cancel safety
    /// Safe: the signal stays.
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
    async fn a_cancellation_is_seen_by_every_clone_and_stays() {
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
