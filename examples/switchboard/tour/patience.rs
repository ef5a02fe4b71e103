//! [`in_time`] and [`expect`]: nothing in the tour waits for ever, or for something else.

use std::time::Duration;

use switchboard::cli::Failure;

/// Nothing in the tour takes longer.
const PATIENCE: Duration = Duration::from_secs(15);

/// Gives up with a message that says what did not happen.
pub(crate) async fn in_time<F: Future>(what: &str, work: F) -> Result<F::Output, Failure> {
    tokio::time::timeout(PATIENCE, work)
        .await
        .map_err(|_| Failure::new(format_args!("expected {what} within {PATIENCE:?}")))
}

/// Fails with these words unless something holds.
pub(crate) fn expect(holds: bool, what: &str) -> Result<(), Failure> {
    if holds {
        Ok(())
    } else {
        Err(Failure::new(format_args!("expected {what}")))
    }
}
