//! The clock of level 3, and waiting by it. Natively it is tokio's, which tests can pause.

use std::time::SystemTime;

use tokio::time::Instant as TokioInstant;
#[doc(no_inline)]
pub use tokio::time::{Sleep, sleep, timeout};

use crate::Instant;

/// Returns the current time. Commands and machines get this time.
#[must_use]
pub fn now() -> Instant {
    TokioInstant::now().into_std()
}

/// Returns the wall clock's time.
#[must_use]
pub fn system_now() -> SystemTime {
    SystemTime::now()
}

/// Waits until this time.
///
/// # Panics
/// Outside a tokio runtime with its timer enabled.
pub fn sleep_until(at: Instant) -> Sleep {
    tokio::time::sleep_until(at.into())
}
