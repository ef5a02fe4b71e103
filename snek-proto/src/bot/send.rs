//! Sending with repeats (Snek specification, section 13, "Reconnection on Send Failure").

use rpc_core::net::LinkState;
use rpc_core::{CallError, Delivery, Refused};
use std::time::Duration;

use super::context::Shared;
use super::handler::Notice;
use crate::error::{BotError, RpcError};
use crate::frame::{Answer, Final};
use crate::limits::{MAX_RETRY_ATTEMPTS, RECONNECT_BACKOFF_FACTOR, RECONNECT_INITIAL_DELAY};

/// What a bot does when a message cannot be sent.
///
/// The specification repeats in every case: three attempts, after waits of 1 s and 2 s, each repeat
/// on a fresh connection. A message whose answer never came may have been posted, so **a repeat can
/// post it twice**. Each one is reported as a [`Notice::Resent`](super::Notice::Resent) that says
/// so. A server that answers with a refusal is never asked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum RetrySend {
    /// Repeats as the specification orders.
    #[default]
    SpecCompat,
    /// Repeats only what certainly did not reach the server.
    OnlyIfUnsent,
    /// Never repeats.
    Off,
}

impl RetrySend {
    const fn repeats(self, error: &CallError<RpcError>) -> bool {
        match error {
            // The last four will not pass by waiting.
            CallError::Remote(_)
            | CallError::Cancelled { .. }
            | CallError::Refused(
                Refused::TooLarge { .. }
                | Refused::Invalid { .. }
                | Refused::Encode { .. }
                | Refused::Draining,
            ) => return false,
            _ => {}
        }
        match self {
            Self::SpecCompat => true,
            Self::OnlyIfUnsent => matches!(error.delivery(), Delivery::NotSent),
            Self::Off => false,
        }
    }
}

/// Sends a message, repeated as configured.
pub(super) async fn send(
    shared: &Shared,
    channel: &str,
    text: &str,
    is_final: Final,
) -> Result<Answer, BotError> {
    let client = &shared.client;
    let mut wait = RECONNECT_INITIAL_DELAY;
    let mut attempt = 1;
    let mut error = None;
    loop {
        let generation = generation(&client.state());
        // A connection that could not be made has used this attempt up.
        let failed = match (attempt, error.take()) {
            (2.., Some(failed)) if !connected(shared, generation_of(&failed)).await => failed.0,
            (_, before) => {
                if let Some((failed, _)) = &before {
                    let delivery = CallError::delivery(failed);
                    shared.notice(&Notice::Resent { attempt, delivery });
                }
                match client.send_message(channel, text, is_final).await {
                    Ok(answer) => return Ok(answer),
                    Err(failed) => failed,
                }
            }
        };
        if !shared.config.retry_send.repeats(&failed) {
            return Err(failed.into());
        }
        if attempt >= MAX_RETRY_ATTEMPTS || client.state().ended().is_some() {
            let cause = Box::new(failed);
            return Err(BotError::ConnectionError {
                attempts: attempt,
                cause,
            });
        }
        tokio::time::sleep(wait).await;
        wait = Duration::from_secs_f64(wait.as_secs_f64() * RECONNECT_BACKOFF_FACTOR);
        error = Some((failed, generation));
        attempt += 1;
    }
}

const fn generation_of(failed: &(CallError<RpcError>, Option<u64>)) -> Option<u64> {
    failed.1
}

const fn generation(state: &LinkState) -> Option<u64> {
    match state {
        LinkState::Ready { generation } => Some(*generation),
        _ => None,
    }
}

/// Sees to it that a connection other than the one that failed is up, by one attempt. However many
/// messages fail on a connection, it is replaced once.
async fn connected(shared: &Shared, failed_on: Option<u64>) -> bool {
    let link = shared.client.link();
    let mut states = link.watch();
    let now = states.borrow_and_update().clone();
    match generation(&now) {
        Some(up) if failed_on != Some(up) => return true,
        _ => link.reconnect(failed_on.unwrap_or(0)),
    }
    loop {
        if states.changed().await.is_err() {
            return false;
        }
        let state = states.borrow_and_update().clone();
        match state {
            LinkState::Ready { generation } if failed_on != Some(generation) => return true,
            // The old line is closed; the attempt follows at once.
            LinkState::Lost { retry_in, .. } if retry_in.is_zero() => {}
            LinkState::Lost { .. } | LinkState::GaveUp { .. } | LinkState::Closed { .. } => {
                return false;
            }
            _ => {}
        }
    }
}
