//! [`Sends`]: the messages on their way into the stream, one at a time per channel and sender.

use std::collections::{HashMap, VecDeque};

use rpc_core::store::{Publish, PublishConfig, PublishReply};
use rpc_core::{Instant, Str, Text};

use super::deadlines::{Deadlines, set};
use super::{Attempt, NodeEvent, Output, Request};
use crate::error::RpcError;
use crate::hub::BUSY;
use crate::id::ChannelUid;

/// The number of a message that a node stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SendId(pub(super) u64);

/// The stream's answer to an attempt to store a message, or why another attempt would be refused too.
pub(crate) type SendReply = Result<PublishReply, SendError>;

/// Why a message is not known to be stored. Its text is the error text of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum SendError {
    /// No attempt was answered in time. Sending the message again may post it twice.
    #[error("the cluster does not answer; the message may have been delivered")]
    Unknown,
    /// Nothing was sent in time. Sending the message again is safe.
    #[error("the cluster does not answer; the message was not sent")]
    NotSent,
    /// The stream has no room. Sending the message again is safe.
    #[error("the cluster has no room for the message; it was not sent")]
    Full,
    /// The stream does not accept messages of this size.
    #[error("the message is too large for the cluster; it was not sent")]
    TooLarge,
    /// The stream does not accept the message.
    #[error("the cluster refuses the message; it was not sent")]
    Refused,
}

/// What is sent and not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fleeting {
    Partial,
    Typing,
}

/// A channel and a sender.
pub(super) type SendKey = (ChannelUid, Str);

/// The messages that a node has accepted and whose outcome is open.
///
/// A sender's next message to a channel waits for the outcome of the one before, and what is partial
/// waits behind what is final. So the order of each sender is kept, whatever has to be repeated.
pub(super) struct Sends {
    publish: PublishConfig,
    max_messages: usize,
    max_bytes: usize,
    /// Makes the keys unique among all nodes.
    node: Str,
    entropy: u64,
    next: u64,
    messages: usize,
    bytes: usize,
    queues: HashMap<SendKey, Queue>,
    lines: HashMap<SendId, SendKey>,
    deadlines: Deadlines<SendKey>,
}

#[derive(Default)]
struct Queue {
    flight: Option<Flight>,
    waiting: VecDeque<Waiting>,
    partial: Option<Text>,
    typing: Option<Text>,
}

struct Flight {
    message: Waiting,
    publish: Publish,
    /// The reply that ended it, if the stream has refused.
    refusal: SendError,
}

struct Waiting {
    id: SendId,
    event: Text,
    deadline: Instant,
}

impl Sends {
    pub(super) fn new(
        node: Str,
        publish: PublishConfig,
        (max_messages, max_bytes): (usize, usize),
        entropy: u64,
        now: Instant,
    ) -> Self {
        Self {
            publish,
            max_messages,
            max_bytes,
            node,
            entropy,
            next: 0,
            messages: 0,
            bytes: 0,
            queues: HashMap::new(),
            lines: HashMap::new(),
            deadlines: Deadlines::new(usize::MAX, now),
        }
    }

    /// Accepts a final message. What the sender has in progress in the channel is replaced by it.
    pub(super) fn send(
        &mut self,
        line: &SendKey,
        event: Text,
        now: Instant,
        out: &mut Output,
    ) -> Result<SendId, RpcError> {
        if self.messages >= self.max_messages || self.bytes + event.len() > self.max_bytes {
            return Err(BUSY);
        }
        self.next += 1;
        let id = SendId(self.next);
        self.messages += 1;
        self.bytes += event.len();
        self.lines.insert(id, line.clone());
        let queue = self.queues.entry(line.clone()).or_default();
        (queue.partial, queue.typing) = (None, None);
        queue.waiting.push_back(Waiting {
            id,
            event,
            deadline: rpc_core::timers::later(now, self.publish.deadline),
        });
        self.drive(line, now, out);
        Ok(id)
    }

    /// Accepts what is not stored: it goes out at once, or behind the sender's final messages, where
    /// only the last one is kept.
    pub(super) fn cast(&mut self, line: SendKey, what: Fleeting, event: Text, out: &mut Output) {
        match (self.queues.get_mut(&line), what) {
            (Some(queue), Fleeting::Partial) => queue.partial = Some(event),
            (Some(queue), Fleeting::Typing) => queue.typing = Some(event),
            (None, _) => out.requests.push_back(Request::Cast {
                channel: line.0,
                event,
            }),
        }
    }

    pub(super) fn handle_reply(
        &mut self,
        id: SendId,
        attempt: u64,
        reply: SendReply,
        now: Instant,
        out: &mut Output,
    ) {
        let Some(line) = self.lines.get(&id).cloned() else {
            return;
        };
        let flight = self.queues.get_mut(&line);
        let flight = flight.and_then(|queue| queue.flight.as_mut());
        let Some(flight) = flight.filter(|flight| flight.message.id == id) else {
            return;
        };
        let reply = reply.unwrap_or_else(|refusal| {
            flight.refusal = refusal;
            PublishReply::Refused
        });
        flight.publish.handle_reply(attempt, reply, now);
        self.drive(&line, now, out);
    }

    pub(super) fn handle_timeout(&mut self, now: Instant, out: &mut Output) {
        while let Some((line, ())) = self.deadlines.pop_expired(now) {
            let flight = self.queues.get_mut(&line);
            if let Some(flight) = flight.and_then(|queue| queue.flight.as_mut()) {
                flight.publish.handle_timeout(now);
            }
            self.drive(&line, now, out);
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.deadlines.poll_timeout()
    }

    /// Ends all: none is tried again.
    pub(super) fn end(&mut self, out: &mut Output) {
        for (_, queue) in self.queues.drain() {
            if let Some(flight) = queue.flight {
                let result = Err(SendError::Unknown);
                let id = flight.message.id;
                out.events.push_back(NodeEvent::Sent { id, result });
            }
            for Waiting { id, .. } in queue.waiting {
                let result = Err(SendError::NotSent);
                out.events.push_back(NodeEvent::Sent { id, result });
            }
        }
        self.lines.clear();
        while self.deadlines.pop_any().is_some() {}
        (self.messages, self.bytes) = (0, 0);
    }

    /// Does what a line can do now.
    fn drive(&mut self, line: &SendKey, now: Instant, out: &mut Output) {
        loop {
            let Some(queue) = self.queues.get_mut(line) else {
                return;
            };
            if let Some(flight) = &mut queue.flight {
                if let Some(number) = flight.publish.poll_request() {
                    let id = flight.message.id;
                    out.requests.push_back(Request::Publish(Attempt {
                        id,
                        number,
                        channel: line.0.clone(),
                        key: format!("{}-{}", self.node, id.0).into(),
                        event: flight.message.event.clone(),
                    }));
                }
                let Some(outcome) = flight.publish.poll_event() else {
                    let timeout = flight.publish.poll_timeout();
                    set(&mut self.deadlines, line, timeout);
                    return;
                };
                let refusal = flight.refusal;
                let result = outcome
                    .map(|_| ())
                    .map_err(|error| match error.maybe_stored {
                        false => refusal,
                        true => SendError::Unknown,
                    });
                if let Some(flight) = queue.flight.take() {
                    self.finish(&flight.message, result, out);
                }
                continue;
            }
            if let Some(message) = queue.waiting.pop_front() {
                let left = message.deadline.saturating_duration_since(now);
                if left.is_zero() {
                    self.finish(&message, Err(SendError::NotSent), out);
                    continue;
                }
                let entropy = self.entropy ^ message.id.0.rotate_left(32);
                let mut config = self.publish;
                config.deadline = left;
                queue.flight = Some(Flight {
                    message,
                    publish: Publish::new(config, entropy, now),
                    refusal: SendError::Refused,
                });
                continue;
            }
            let fleeting = [queue.typing.take(), queue.partial.take()];
            self.queues.remove(line);
            set(&mut self.deadlines, line, None);
            for event in fleeting.into_iter().flatten() {
                let channel = line.0.clone();
                out.requests.push_back(Request::Cast { channel, event });
            }
            return;
        }
    }

    fn finish(&mut self, message: &Waiting, result: Result<(), SendError>, out: &mut Output) {
        self.messages -= 1;
        self.bytes -= message.event.len();
        self.lines.remove(&message.id);
        let id = message.id;
        out.events.push_back(NodeEvent::Sent { id, result });
    }
}
