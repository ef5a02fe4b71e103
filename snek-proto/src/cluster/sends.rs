//! [`Sends`]: the messages on their way into the stream, one at a time per channel and sender.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use rpc_core::timers::later;
use rpc_core::{Instant, Str, Text};

use super::{NodeEvent, Output, Publish, Request};
use crate::error::RpcError;
use crate::hub::BUSY;
use crate::id::ChannelUid;

/// The number of a message that a node stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SendId(pub(super) u64);

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
    timeout: Duration,
    max_messages: usize,
    max_bytes: usize,
    /// Makes the keys unique among all nodes.
    node: Str,
    next: u64,
    messages: usize,
    bytes: usize,
    queues: HashMap<SendKey, Queue>,
    lines: HashMap<SendId, SendKey>,
}

#[derive(Default)]
struct Queue {
    /// The message that is being stored.
    flight: Option<Message>,
    waiting: VecDeque<Message>,
    partial: Option<Text>,
    typing: Option<Text>,
}

struct Message {
    id: SendId,
    event: Text,
    until: Instant,
}

impl Sends {
    pub(super) fn new(
        node: Str,
        timeout: Duration,
        (max_messages, max_bytes): (usize, usize),
    ) -> Self {
        Self {
            timeout,
            max_messages,
            max_bytes,
            node,
            next: 0,
            messages: 0,
            bytes: 0,
            queues: HashMap::new(),
            lines: HashMap::new(),
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
        queue.waiting.push_back(Message {
            id,
            event,
            until: later(now, self.timeout),
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

    pub(super) fn handle_stored(
        &mut self,
        id: SendId,
        result: Result<(), SendError>,
        now: Instant,
        out: &mut Output,
    ) {
        let Some(line) = self.lines.get(&id).cloned() else {
            return;
        };
        let queue = self.queues.get_mut(&line);
        let stored = queue.and_then(|queue| queue.flight.take_if(|it| it.id == id));
        if let Some(message) = stored {
            self.finish(&message, result, out);
            self.drive(&line, now, out);
        }
    }

    /// Asks again for a message that is being stored.
    pub(super) fn store_again(&self, id: SendId, out: &mut Output) {
        if let Some(line) = self.lines.get(&id)
            && let Some(queue) = self.queues.get(line)
            && let Some(message) = queue.flight.as_ref().filter(|it| it.id == id)
        {
            out.requests.push_back(self.publish(line, message));
        }
    }

    fn publish(&self, line: &SendKey, message: &Message) -> Request {
        Request::Publish(Publish {
            id: message.id,
            channel: line.0.clone(),
            key: format!("{}-{}", self.node, message.id.0).into(),
            event: message.event.clone(),
            until: message.until,
        })
    }

    /// Ends all: none is tried again.
    pub(super) fn end(&mut self, out: &mut Output) {
        for (_, queue) in self.queues.drain() {
            let flight = queue.flight.map(|it| (it, SendError::Unknown));
            let waiting = queue.waiting.into_iter();
            let waiting = waiting.map(|it| (it, SendError::NotSent));
            for (Message { id, .. }, error) in flight.into_iter().chain(waiting) {
                let result = Err(error);
                out.events.push_back(NodeEvent::Sent { id, result });
            }
        }
        self.lines.clear();
        (self.messages, self.bytes) = (0, 0);
    }

    /// Does what a line can do now.
    fn drive(&mut self, line: &SendKey, now: Instant, out: &mut Output) {
        while let Some(queue) = self.queues.get_mut(line).filter(|it| it.flight.is_none()) {
            if let Some(message) = queue.waiting.pop_front() {
                if message.until <= now {
                    self.finish(&message, Err(SendError::NotSent), out);
                    continue;
                }
                out.requests.push_back(self.publish(line, &message));
                if let Some(queue) = self.queues.get_mut(line) {
                    queue.flight = Some(message);
                }
                return;
            }
            let fleeting = [queue.typing.take(), queue.partial.take()];
            self.queues.remove(line);
            for event in fleeting.into_iter().flatten() {
                let channel = line.0.clone();
                out.requests.push_back(Request::Cast { channel, event });
            }
        }
    }

    fn finish(&mut self, message: &Message, result: Result<(), SendError>, out: &mut Output) {
        self.messages -= 1;
        self.bytes -= message.event.len();
        self.lines.remove(&message.id);
        let id = message.id;
        out.events.push_back(NodeEvent::Sent { id, result });
    }
}
