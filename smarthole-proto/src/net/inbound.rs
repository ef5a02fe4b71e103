//! [`InboundMessage`]: a message that is always answered.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::time::Duration;

use rpc_core::{Instant, Json, Refused, Str};

use super::left_answers::LeftAnswers;
use crate::client::Received;
use crate::frame::{Answer, Message, Notification};
use crate::id::MessageId;

/// The reason of the rejection of a message that was dropped without a response.
pub const DROPPED: &str = "The client dropped the message without a response";

/// A [`Message`] that requires a response before its [deadline](Self::deadline).
///
/// It is always answered: if it is dropped without a response, whether by the program, by a handler
/// that panics, or by a full queue, it is rejected with the reason [`DROPPED`], so that the router
/// gives it to another client at once and not after its timeout. If there is no connection then, it
/// is rejected after the reconnect, and not at all once the deadline has passed.
///
/// There may be several responses: an `ack` at once and a notification when the work is done. For
/// responses minutes later, keep the [`responder`](Self::responder).
///
/// ```
/// use smarthole_proto::Refused;
/// use smarthole_proto::frame::Notification;
/// use smarthole_proto::net::InboundMessage;
///
/// async fn answer(message: InboundMessage) -> Result<(), Refused> {
///     if !message.text.starts_with("note") {
///         return message.reject("I only take notes").await;
///     }
///     message.ack().await?;
///     let responder = message.responder();
///     drop(message); // what comes later needs the responder alone
///     responder.notify(Notification::new("noted")).await
/// }
/// ```
#[must_use = "a message that is dropped without a response is rejected"]
pub struct InboundMessage {
    message: Message,
    frame: Json,
    ticket: Arc<Ticket>,
    left: Arc<LeftAnswers>,
    /// Whether dropping it without a response rejects it.
    guards: bool,
}

impl InboundMessage {
    pub(super) fn new(received: Received, left: Arc<LeftAnswers>) -> Self {
        let ticket = Arc::new(Ticket {
            id: received.message.id.clone(),
            deadline: received.deadline,
            state: AtomicU8::new(OPEN),
            on_the_way: AtomicUsize::new(0),
        });
        Self {
            message: received.message,
            frame: received.frame,
            ticket,
            left,
            guards: true,
        }
    }

    /// Returns the whole frame, including unknown members.
    #[must_use]
    pub const fn frame(&self) -> &Json {
        &self.frame
    }

    /// Returns when the router counts the message as rejected without a response: 30 s after it was
    /// sent. It spent time in transit, so respond a little earlier.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.ticket.deadline
    }

    /// Returns the time until the deadline, by tokio's clock; zero once it has passed.
    #[must_use]
    pub fn time_left(&self) -> Duration {
        let now = rpc_core::net::time::now();
        self.deadline().saturating_duration_since(now)
    }

    /// Returns whether a response was sent, or is queued to be sent as soon as possible.
    #[must_use]
    pub fn is_answered(&self) -> bool {
        self.ticket.state.load(Ordering::SeqCst) != OPEN
    }

    /// Returns the same message for responses that may outlive this one, such as notifications
    /// minutes later. Dropping it rejects nothing, and it does not keep the connection open.
    pub fn responder(&self) -> Self {
        Self {
            message: self.message.clone(),
            frame: self.frame.clone(),
            ticket: Arc::clone(&self.ticket),
            left: Arc::clone(&self.left),
            guards: false,
        }
    }

    /// Accepts the message.
    ///
    /// # Errors
    /// As for [`respond`](Self::respond). Safe to repeat.
    ///
    /// # Cancel safety
    /// If the future is dropped before it is ready, the response may or may not be sent.
    pub async fn ack(&self) -> Result<(), Refused> {
        self.respond(Answer::Ack).await
    }

    /// Rejects the message: the router may give it to another client. The reason helps the router
    /// to choose.
    ///
    /// # Errors
    /// As for [`respond`](Self::respond).
    ///
    /// # Cancel safety
    /// If the future is dropped before it is ready, the response may or may not be sent.
    pub async fn reject(&self, reason: impl Into<Str>) -> Result<(), Refused> {
        self.respond(Answer::reject(Some(reason.into()))).await
    }

    /// Shows a notification to the user. It counts as a response.
    ///
    /// # Errors
    /// As for [`respond`](Self::respond).
    ///
    /// # Cancel safety
    /// If the future is dropped before it is ready, the response may or may not be sent.
    pub async fn notify(&self, notification: Notification) -> Result<(), Refused> {
        self.respond(Answer::Notification(notification)).await
    }

    /// Sends any response. Without a connection it waits for the next one, however long that takes;
    /// add a timeout to limit the wait.
    ///
    /// It is sent once, without a confirmation; a response in transit when the connection breaks is
    /// lost.
    ///
    /// # Errors
    /// [`Refused::TooLarge`]; [`Refused::QueueFull`], which is temporary; [`Refused::Closed`] if
    /// there will be no connection any more. Nothing was sent.
    ///
    /// # Cancel safety
    /// If the future is dropped before it is ready, the response may or may not be sent.
    pub async fn respond(&self, answer: Answer) -> Result<(), Refused> {
        loop {
            let link = self.left.link().ok_or(Refused::Closed)?;
            let seen = link.state();
            let on_the_way = OnTheWay::new(self);
            let answer = answer.clone();
            let sent = link.command(move |conn, _| {
                let is_known = !matches!(answer, Answer::Unknown { .. });
                conn.respond(on_the_way.ticket.id.clone(), answer)?;
                if is_known {
                    on_the_way.ticket.state.store(SENT, Ordering::SeqCst);
                }
                Ok(())
            });
            match sent.await.unwrap_or_else(Err) {
                Err(Refused::NotConnected | Refused::NotReady | Refused::Closed) => {}
                done => return done,
            }
            // This line takes nothing, so wait for another. The handle goes first: to wait must not
            // keep the connection open.
            let mut states = link.states();
            drop(link);
            let next = states
                .wait_for(|state| state.ended().is_some() || (state.is_ready() && *state != seen));
            if next.await.map_or(true, |state| state.ended().is_some()) {
                return Err(Refused::Closed);
            }
        }
    }

    /// Queues this answer unless there has been another: the connection sends it as soon as it can,
    /// also after a reconnect, and not at all once the deadline has passed. It never waits and
    /// cannot fail.
    pub fn answer_later(&self, answer: Answer) {
        let state = &self.ticket.state;
        let first = state.compare_exchange(OPEN, LEFT, Ordering::SeqCst, Ordering::SeqCst);
        if first.is_ok() {
            self.left.leave(Arc::clone(&self.ticket), answer);
        }
    }
}

impl Deref for InboundMessage {
    type Target = Message;

    fn deref(&self) -> &Message {
        &self.message
    }
}

impl Drop for InboundMessage {
    fn drop(&mut self) {
        if self.guards {
            let reason = Some(Str::from_static(DROPPED));
            self.answer_later(Answer::reject(reason));
        }
    }
}

rpc_core::debug_fields!([] InboundMessage, this => {
    id: this.message.id,
    answered: this.is_answered(),
});

/// No response yet.
const OPEN: u8 = 0;
/// A response is queued for the connection's task.
const LEFT: u8 = 1;
/// A response was sent.
const SENT: u8 = 2;

/// The id of a message, and whether it has a response.
#[derive(Debug)]
pub(super) struct Ticket {
    pub(super) id: MessageId,
    pub(super) deadline: Instant,
    state: AtomicU8,
    /// Responses that the connection's task has yet to send or refuse. A queued answer waits for
    /// them, because it is needed only if they are refused.
    on_the_way: AtomicUsize,
}

impl Ticket {
    pub(super) fn is_sent(&self) -> bool {
        self.state.load(Ordering::SeqCst) == SENT
    }

    pub(super) fn is_on_the_way(&self) -> bool {
        self.on_the_way.load(Ordering::SeqCst) > 0
    }
}

/// A response in transit to the connection's task: dropped when it was sent or refused.
struct OnTheWay {
    ticket: Arc<Ticket>,
    left: Arc<LeftAnswers>,
}

impl OnTheWay {
    fn new(message: &InboundMessage) -> Self {
        message.ticket.on_the_way.fetch_add(1, Ordering::SeqCst);
        Self {
            ticket: Arc::clone(&message.ticket),
            left: Arc::clone(&message.left),
        }
    }
}

impl Drop for OnTheWay {
    fn drop(&mut self) {
        let was_last = self.ticket.on_the_way.fetch_sub(1, Ordering::SeqCst) == 1;
        if was_last && self.ticket.state.load(Ordering::SeqCst) == LEFT {
            self.left.wake();
        }
    }
}
