//! The commands of [`ClientConn`]: each is carried out whole, or refused with nothing changed.

use std::time::Duration;

use rpc_core::Instant;
use rpc_core::Refused;
use rpc_core::timers::later;
use serde::Serialize;

use super::run::{Kind, Pending, Run};
use super::{CallId, ClientConn};
use crate::frame::ChatRequest;
use crate::id::TaskId;

/// A request to encode into the outbox, borrowed from the caller.
#[derive(Serialize)]
struct Frame<'a, P> {
    id: CallId,
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<P>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Payload<'a> {
    Request(&'a ChatRequest),
    RequestId(CallId),
    TaskId(&'a TaskId),
}

/// Refuses a request that servers would refuse.
pub(crate) fn check_request(request: &ChatRequest) -> Result<(), Refused> {
    let checked = request.validate();
    checked.map_err(|fault| Refused::invalid("chat request", fault.to_string()))
}

impl ClientConn {
    /// Starts a chat. [`Chat`](super::ClientEvent::Chat) events follow; the last one says how the
    /// chat [ended](super::ChatUpdate::Ended), unless it is [cancelled](Self::cancel).
    ///
    /// A server runs one chat of a connection at a time and queues up to 25 more.
    ///
    /// # Errors
    /// [`Refused::Invalid`] for a request that breaks a rule of the protocol,
    /// [`Refused::TooManyCalls`], [`Refused::QueueFull`], [`Refused::TooLarge`] and
    /// [`Refused::Closed`]; [`Refused::is_retryable`] says which of these are temporary.
    pub fn chat(&mut self, request: &ChatRequest, now: Instant) -> Result<CallId, Refused> {
        check_request(request)?;
        let run = Run::new(self.config.chat_idle_timeout, now);
        let deadline = run.deadline(now);
        let payload = Payload::Request(request);
        let id = self.send("chat.start", Some(payload), Kind::Chat(run), deadline)?;
        if let Some(call) = self.calls.get(id) {
            self.progress.sent(call.frame, now);
        }
        Ok(id)
    }

    /// Aborts a running or waiting chat. A [`Reply`](super::ClientEvent::Reply)
    /// follows, and the chat ends as [aborted](super::Outcome::Aborted), unless its end is already
    /// on the way.
    ///
    /// Known servers report nothing more about an aborted chat, but let it run on.
    ///
    /// # Errors
    /// [`Refused::UnknownId`] if this is not a chat in flight; otherwise as for
    /// [`chat`](Self::chat). Safe to repeat.
    pub fn abort(&mut self, chat: CallId, now: Instant) -> Result<CallId, Refused> {
        if self.run_mut(chat).is_none() {
            return Err(Refused::UnknownId);
        }
        let id = self.send_abort(chat, false, now)?;
        if let Some(run) = self.run_mut(chat) {
            run.aborting = true;
        }
        Ok(id)
    }

    /// Requests the server's status. A [`Reply`](super::ClientEvent::Reply) follows.
    ///
    /// # Errors
    /// As for [`chat`](Self::chat). Safe to repeat.
    pub fn status(&mut self, now: Instant) -> Result<CallId, Refused> {
        let deadline = later(now, self.config.call_timeout);
        self.send("status.get", None, Kind::Status, Some(deadline))
    }

    /// Requests the state of a task of any connection. A
    /// [`Reply`](super::ClientEvent::Reply) follows.
    ///
    /// # Errors
    /// As for [`chat`](Self::chat). Safe to repeat.
    pub fn task_status(&mut self, task_id: &TaskId, now: Instant) -> Result<CallId, Refused> {
        let deadline = later(now, self.config.call_timeout);
        let payload = Payload::TaskId(task_id);
        self.send("task.status", Some(payload), Kind::Task, Some(deadline))
    }

    /// Sets how long a chat waits for each next message, from now on; `None` is for ever. Returns
    /// `false` if the chat has ended.
    pub fn set_idle_timeout(&mut self, chat: CallId, idle: Option<Duration>, now: Instant) -> bool {
        if self.core.is_closed() {
            return false;
        }
        let Some(run) = self.run_mut(chat) else {
            return false;
        };
        run.idle = idle;
        let deadline = run.deadline(now);
        self.calls.extend(chat, deadline)
    }

    /// Forgets a request: no event about it follows. A chat is also aborted at the server, as soon
    /// as there is room for the request. Returns `false` if the request has ended.
    ///
    /// Events produced before can still be polled.
    pub fn cancel(&mut self, id: CallId, now: Instant) -> bool {
        if let Some(call) = self.calls.get_mut(id)
            && let Kind::Abort { quiet, .. } = &mut call.kind
        {
            // The chat still waits for what it brings about.
            return !std::mem::replace(quiet, true);
        }
        let Some(call) = self.take(id) else {
            return false;
        };
        if let Kind::Chat(_) = call.kind {
            self.defer_abort(id, now);
        }
        true
    }

    /// Returns whether this is a chat in flight.
    /// Returns the state of a chat, if this is one.
    pub(super) fn run_mut(&mut self, id: CallId) -> Option<&mut Run> {
        match &mut self.calls.get_mut(id)?.kind {
            Kind::Chat(run) => Some(run),
            _ => None,
        }
    }

    /// Queues the abort of a chat that the application has given up.
    pub(super) fn defer_abort(&mut self, chat: CallId, now: Instant) {
        if !self.core.is_closed() {
            self.deferred.push_back((chat, now));
            self.flush_deferred();
        }
    }

    /// Sends the queued aborts for which there is room.
    pub(super) fn flush_deferred(&mut self) {
        while let Some((chat, since)) = self.deferred.front().copied() {
            match self.send_abort(chat, true, since) {
                Ok(_) | Err(Refused::Closed) => self.deferred.pop_front(),
                Err(_) => return,
            };
        }
    }

    fn send_abort(&mut self, chat: CallId, quiet: bool, now: Instant) -> Result<CallId, Refused> {
        let deadline = later(now, self.config.call_timeout);
        let payload = Payload::RequestId(chat);
        let kind = Kind::Abort { chat, quiet };
        self.send("chat.abort", Some(payload), kind, Some(deadline))
    }

    fn send(
        &mut self,
        method: &str,
        payload: Option<Payload<'_>>,
        kind: Kind,
        deadline: Option<Instant>,
    ) -> Result<CallId, Refused> {
        if self.core.is_closed() {
            return Err(Refused::Closed);
        }
        let max = self.calls.capacity_limit();
        let id = self.calls.next_id().ok_or(Refused::TooManyCalls { max })?;
        let frame = self.core.send_json(&Frame {
            id,
            kind: method,
            payload,
        })?;
        let call = Pending {
            frame,
            answered: false,
            kind,
        };
        let id = self.calls.insert(call, deadline)?;
        self.unanswered += 1;
        Ok(id)
    }
}
