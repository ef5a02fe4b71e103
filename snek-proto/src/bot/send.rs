//! Sending with repeats (Snek specification, section 13, "Reconnection on Send Failure").

use rpc_core::net::{LinkState, time};
use rpc_core::{CallError, CloseReason, Delivery, Refused};

use super::context::Shared;
use super::handler::Notice;
use crate::error::{BotError, RpcError};
use crate::frame::{CallValue, Final};
use crate::limits::{MAX_RETRY_ATTEMPTS, RECONNECT_BACKOFF_FACTOR, RECONNECT_INITIAL_DELAY};
use crate::net::Client;

/// The reaction of a bot to a message that cannot be sent.
///
/// The specification always repeats: three attempts, after waits of 1 s and 2 s, each repeat on a
/// fresh connection. A message without an answer may have been posted, so **a repeat can post it
/// twice**. Each repeat is reported as a [`Notice::Resent`](super::Notice::Resent) that says so. A
/// message that the server refused was not posted and would be refused again, so only
/// [`EvenIfRefused`](Self::EvenIfRefused) repeats it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum RetrySend {
    /// Repeats as the specification requires, except what the server refused.
    #[default]
    SpecCompat,
    /// Repeats as the specification requires, including what the server refused.
    EvenIfRefused,
    /// Repeats only what certainly did not reach the server.
    OnlyIfUnsent,
    /// Never repeats.
    Off,
}

impl RetrySend {
    const fn repeats(self, error: &CallError<RpcError>) -> bool {
        let hopeless = match error {
            CallError::Remote(_) => !matches!(self, Self::EvenIfRefused),
            CallError::Cancelled { .. } => true,
            CallError::Closed { reason, .. } => reason.is_our_message_too_large(),
            CallError::Refused(refused) => matches!(
                refused,
                Refused::TooLarge { .. }
                    | Refused::Invalid { .. }
                    | Refused::Encode { .. }
                    | Refused::Draining
            ),
            _ => false,
        };
        match self {
            _ if hopeless => false,
            Self::SpecCompat | Self::EvenIfRefused => true,
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
) -> Result<CallValue, BotError> {
    let client = &shared.client;
    let mut wait = RECONNECT_INITIAL_DELAY;
    let mut attempts = 1;
    let mut generation = generation(&client.state());
    let mut error = match client.send_message(channel, text, is_final).await {
        Ok(answer) => return Ok(answer),
        Err(error) => error,
    };
    while shared.config.retry_send.repeats(&error) {
        let state = client.state();
        if let Some(CloseReason::Authentication { message }) = state.ended() {
            let message = message.clone();
            return Err(BotError::AuthenticationError { message });
        }
        if attempts >= MAX_RETRY_ATTEMPTS || state.ended().is_some() {
            let cause = Box::new(error);
            return Err(BotError::ConnectionError { attempts, cause });
        }
        time::sleep(wait).await;
        wait = wait.mul_f64(RECONNECT_BACKOFF_FACTOR);
        attempts += 1;
        // A full queue of ours says nothing about the line, which others use: it stays.
        let ours = |refused: &Refused| {
            matches!(refused, Refused::QueueFull | Refused::TooManyCalls { .. })
        };
        if !matches!(&error, CallError::Refused(refused) if ours(refused)) {
            // A connection that cannot be made uses this attempt up.
            let Some(fresh) = replaced(client, generation).await else {
                continue;
            };
            generation = Some(fresh);
        }
        let delivery = error.delivery();
        shared.notice(&Notice::Resent {
            attempt: attempts,
            delivery,
        });
        error = match client.send_message(channel, text, is_final).await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
    }
    Err(error.into())
}

const fn generation(state: &LinkState) -> Option<u64> {
    match state {
        LinkState::Ready { generation } => Some(*generation),
        _ => None,
    }
}

/// Waits for a connection other than the one that failed, with one attempt, and returns its number.
/// A connection is replaced once, however many messages fail on it.
async fn replaced(client: &Client, failed_on: Option<u64>) -> Option<u64> {
    let mut states = client.states();
    let is_settled = |state: &LinkState| !matches!(state, LinkState::Closing);
    let now = states.wait_for(is_settled).await.ok()?.clone();
    match generation(&now) {
        Some(up) if failed_on != Some(up) => return Some(up),
        _ => client.reconnect(failed_on.unwrap_or(0)),
    }
    loop {
        states.changed().await.ok()?;
        let state = states.borrow_and_update().clone();
        match state {
            LinkState::Ready { generation } if failed_on != Some(generation) => {
                return Some(generation);
            }
            // The old line is closed; the attempt follows at once.
            LinkState::Lost { retry_in, .. } if retry_in.is_zero() => {}
            LinkState::Lost { .. } | LinkState::GaveUp { .. } | LinkState::Closed { .. } => {
                return None;
            }
            _ => {}
        }
    }
}
