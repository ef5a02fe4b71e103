//! [`Attempts`]: what is tried again while other nodes do it too, or the store is away for a while.

use std::time::Duration;

use rpc_core::store::StoreError as Failure;
use tokio::time::{Instant, sleep, timeout_at};

use super::StoreError;

/// The pause after the first failed attempt, and the longest one.
const PAUSE: Duration = Duration::from_millis(2);
pub(super) const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// Returns whether the same request may succeed soon. There is no waiting for room.
pub(super) const fn passes(error: &Failure) -> bool {
    error.is_retryable() && !matches!(error, Failure::Full { .. })
}

/// Returns a random part of a pause, so that nodes that collided do not come back at the same time.
pub(super) fn part_of(pause: Duration) -> Duration {
    let [byte, ..] = rpc_core::net::entropy().to_ne_bytes();
    pause * u32::from(byte) / 255
}

/// The error if the store did not answer for so long.
pub(super) fn unavailable(patience: Duration) -> StoreError {
    StoreError::Store(Failure::unavailable(format_args!("not for {patience:?}")))
}

/// Makes attempts until one is done or has failed for good, or patience is at its end.
pub(super) async fn repeat<T, F>(
    patience: Duration,
    attempt: impl Fn() -> F,
) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let mut attempts = Attempts::new(patience);
    loop {
        if let Some(done) = attempts.run(attempt()).await? {
            return Ok(done);
        }
    }
}

/// Attempts at something, until it is done or patience is at its end.
pub(super) struct Attempts {
    patience: Duration,
    until: Instant,
    pause: Duration,
}

impl Attempts {
    pub(super) fn new(patience: Duration) -> Self {
        Self {
            patience,
            until: Instant::now() + patience,
            pause: PAUSE,
        }
    }

    /// Makes an attempt. Returns `None`, after a pause, if another one may succeed.
    pub(super) async fn run<T>(
        &mut self,
        attempt: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<Option<T>, StoreError> {
        let done = timeout_at(self.until, attempt).await;
        match done.map_err(|_| unavailable(self.patience))? {
            Err(StoreError::Store(error)) if passes(&error) || error == Failure::Conflict => {
                tracing::debug!(%error, "the store is asked again");
            }
            done => return done.map(Some),
        }
        sleep(part_of(self.pause)).await;
        self.pause = LONGEST_PAUSE.min(self.pause * 2);
        Ok(None)
    }
}
