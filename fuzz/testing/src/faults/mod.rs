//! Faults over real sockets: a peer that keeps to no rule, and what has to hold all the same.
//!
//! - [`RawPeer`] and [`RawListener`]: a WebSocket's bytes by hand, as a client and as a server;
//! - [`client::check_all`]: the faults that every client has to survive;
//! - [`server::check_all`]: the faults that every server has to survive.

mod breach;
pub mod client;
mod list;
mod raw;
pub mod server;

use std::fmt::Debug;
use std::future::Future;
use std::time::Duration;

pub use raw::{End, RawListener, RawPeer, upgrade_request};
pub use switchboard_faults::{RawFrame, Received};
use tokio::time::timeout;

/// A deadline that must not pass. In the good case no test waits for it.
const PATIENCE: Duration = Duration::from_secs(60);

/// What has to come, on any machine.
async fn soon<F: Future>(future: F) -> F::Output {
    match timeout(PATIENCE, future).await {
        Ok(output) => output,
        Err(_) => broken("nothing hangs", &PATIENCE),
    }
}

#[track_caller]
fn check(holds: bool, promise: &str, detail: &dyn Debug) {
    if !holds {
        broken(promise, detail);
    }
}

#[track_caller]
#[expect(clippy::panic, reason = "an assertion of a test tool")]
fn broken(promise: &str, detail: &dyn Debug) -> ! {
    panic!("promise broken: {promise} ({detail:?})");
}

/// What came of something that has to work.
#[track_caller]
fn must<T, E: Debug>(what: &str, outcome: Result<T, E>) -> T {
    outcome.unwrap_or_else(|error| broken(what, &error))
}
