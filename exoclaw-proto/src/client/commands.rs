//! The commands of [`ClientConn`]. A refused command changes nothing.

use std::time::Duration;

use rpc_core::timers::later;
use rpc_core::{CallId, Instant, Machine, Refused};
use serde::Serialize;

use super::pending::{Kind, Pending};
use super::{ChatSummary, ClientConn, ClientState};
use crate::codec::{encode_request, encode_tagged};
use crate::frame::{Call, ChatSend, Method};

impl ClientConn {
    /// Checks that the gateway responds. Not the WebSocket ping, which is automatic.
    ///
    /// # Errors
    /// As for [`call`](Self::call). Safe to repeat.
    pub fn ping(&mut self, now: Instant) -> Result<CallId, Refused> {
        self.request(&Call::Ping, now)
    }

    /// Sends a chat message. [`Chat`](super::ClientEvent::Chat) events follow and then
    /// [`ChatEnded`](super::ClientEvent::ChatEnded), exactly once, unless the chat is
    /// [cancelled](Self::cancel).
    ///
    /// # Errors
    /// As for [`call`](Self::call). Repeating a chat that may have reached the gateway may cost
    /// tokens twice, and appear twice in the session.
    pub fn chat_send(&mut self, chat: &ChatSend, now: Instant) -> Result<CallId, Refused> {
        let summary = ChatSummary::default();
        let idle = self.config.chat_idle_timeout;
        let total = self.config.chat_total_timeout;
        let until = total.map(|total| later(now, total));
        let encode =
            |buffer: &mut String, id| encode_request(buffer, id, Method::ChatSend.name(), chat);
        self.send(encode, Kind::Chat(summary), idle, until, now)
    }

    /// Sends any typed call: a chat is streamed, everything else gets one
    /// [`Reply`](super::ClientEvent::Reply).
    ///
    /// # Errors
    /// As for [`call`](Self::call).
    pub fn request(&mut self, call: &Call, now: Instant) -> Result<CallId, Refused> {
        if let Call::ChatSend(chat) = call {
            return self.chat_send(chat, now);
        }
        let encode = |buffer: &mut String, id| encode_tagged(buffer, &id, call);
        let idle = Some(self.config.call_timeout);
        self.send(encode, Kind::Unary, idle, None, now)
    }

    /// Calls any method. `params` is any JSON value, usually an object. A
    /// [`Reply`](super::ClientEvent::Reply) with this id follows exactly once, unless the call is
    /// [cancelled](Self::cancel).
    ///
    /// For a method with a streamed answer it reports only the end: use
    /// [`chat_send`](Self::chat_send) for chats.
    ///
    /// # Errors
    /// [`Refused::NotReady`] before the hello, [`Refused::Closed`], [`Refused::TooManyCalls`],
    /// [`Refused::QueueFull`], [`Refused::TooLarge`], and [`Refused::Encode`] for parameters that
    /// are not JSON. [`Refused::is_retryable`] says which of them are temporary.
    pub fn call(
        &mut self,
        method: &str,
        params: &impl Serialize,
        now: Instant,
    ) -> Result<CallId, Refused> {
        let encode = |buffer: &mut String, id| encode_request(buffer, id, method, params);
        let idle = Some(self.config.call_timeout);
        self.send(encode, Kind::Unary, idle, None, now)
    }

    /// Sets how long a request in flight waits for the gateway's next [progress](Self#timeouts),
    /// from `now` and from each progress on; `None` waits for ever. Returns `false` if the request
    /// has ended.
    pub fn set_timeout(&mut self, id: CallId, timeout: Option<Duration>, now: Instant) -> bool {
        let Some(pending) = self.awaited(id) else {
            return false;
        };
        pending.idle = timeout;
        let deadline = pending.deadline(now);
        self.calls.extend(id, deadline)
    }

    /// Sets the total timeout of a request in flight, from `now`, whatever its progress; `None`
    /// waits for ever. Restarts its wait for progress. Returns `false` if the request has ended.
    pub fn set_total_timeout(
        &mut self,
        id: CallId,
        timeout: Option<Duration>,
        now: Instant,
    ) -> bool {
        let Some(pending) = self.awaited(id) else {
            return false;
        };
        pending.until = timeout.map(|timeout| later(now, timeout));
        let deadline = pending.deadline(now);
        self.calls.extend(id, deadline)
    }

    /// Forgets a request or a chat: no event about it follows, and its frames are dropped. The
    /// gateway does not learn of it, because the protocol has no cancellation, and continues to the
    /// end. Returns `false` if it has ended.
    ///
    /// Earlier events can still be polled.
    pub fn cancel(&mut self, id: CallId) -> bool {
        self.forget(id, None).is_some()
    }

    /// Returns a request that was not cancelled.
    fn awaited(&mut self, id: CallId) -> Option<&mut Pending> {
        let pending = self.calls.get_mut(id)?;
        (!self.core.is_closed() && !pending.is_forgotten()).then_some(pending)
    }

    fn send(
        &mut self,
        encode: impl FnOnce(&mut String, CallId) -> Result<(), Refused>,
        kind: Kind,
        idle: Option<Duration>,
        until: Option<Instant>,
        now: Instant,
    ) -> Result<CallId, Refused> {
        match self.state() {
            ClientState::Ready => {}
            ClientState::Closed => return Err(Refused::Closed),
            ClientState::AwaitHello => return Err(Refused::NotReady),
        }
        let max = self.config.limits.max_pending;
        let id = self.calls.next_id().filter(|_| self.in_flight() < max);
        let id = id.ok_or(Refused::TooManyCalls { max })?;
        let frame = self.core.send_with(|buffer| encode(buffer, id))?;
        let pending = Pending {
            frame,
            idle,
            until,
            kind,
        };
        let deadline = pending.deadline(now);
        let id = self.calls.insert(pending, deadline)?;
        self.progress.sent(frame, now);
        Ok(id)
    }
}
