//! [`in_time`]: nothing in the tour waits for ever.

use std::time::Duration;

use examples::cli::Failure;

/// Nothing in the tour takes longer.
const PATIENCE: Duration = Duration::from_secs(15);

/// Gives up with a message that says what did not happen.
pub(crate) async fn in_time<F: Future>(what: &str, work: F) -> Result<F::Output, Failure> {
    tokio::time::timeout(PATIENCE, work)
        .await
        .map_err(|_| Failure::new(format_args!("expected {what} within {PATIENCE:?}")))
}
