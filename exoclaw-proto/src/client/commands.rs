//! The commands of [`ClientConn`]: each is taken whole or refused with nothing changed.

use std::time::{Duration, Instant};

use rpc_core::decode::RawJson;
use rpc_core::timers::later;
use rpc_core::{CallId, CloseFrame, CloseReason, Match, Refused};
use serde::Serialize;

use super::pending::{Kind, Pending, Run};
use super::{ChatSummary, ClientConn, ClientState};
use crate::codec::encode_request;
use crate::frame::{Call, ChatSend, Method, SessionRef};

/// A call whose texts are borrowed from the caller.
type Borrowed<'a> = Call<&'a str, RawJson<'static>>;

impl ClientConn {
    /// Asks whether the gateway is there. Not the WebSocket ping, which is automatic.
    ///
    /// # Errors
    /// As for [`call`](Self::call). Safe to repeat.
    pub fn ping(&mut self, now: Instant) -> Result<CallId, Refused> {
        self.request(&Borrowed::Ping, now)
    }

    /// Asks for version, plugins and sessions. The answer parses as a
    /// [`Status`](crate::frame::Status).
    ///
    /// # Errors
    /// As for [`call`](Self::call). Safe to repeat.
    pub fn status(&mut self, now: Instant) -> Result<CallId, Refused> {
        self.request(&Borrowed::Status, now)
    }

    /// Asks for the plugins. The answer parses as a list of [`Plugin`](crate::frame::Plugin)s.
    ///
    /// # Errors
    /// As for [`call`](Self::call). Safe to repeat.
    pub fn plugin_list(&mut self, now: Instant) -> Result<CallId, Refused> {
        self.request(&Borrowed::PluginList, now)
    }

    /// Says something. [`Chat`](super::ClientEvent::Chat) events follow and then
    /// [`ChatEnded`](super::ClientEvent::ChatEnded), exactly once, unless the chat is
    /// [cancelled](Self::cancel).
    ///
    /// # Errors
    /// As for [`call`](Self::call). Repeating a chat that may have reached the gateway may cost
    /// tokens twice, and the session remembers both.
    pub fn chat_send<S: AsRef<str>>(
        &mut self,
        chat: &ChatSend<S>,
        now: Instant,
    ) -> Result<CallId, Refused> {
        let run = self.new_run(now);
        let deadline = run.deadline(now);
        self.send(Method::ChatSend.name(), chat, Kind::Chat(run), deadline)
    }

    /// Asks for the last turns of a session, at most `limit`. A future method: gateways may not
    /// have it. The answer parses as a list of [`Turn`](crate::frame::Turn)s.
    ///
    /// # Errors
    /// As for [`call`](Self::call). Safe to repeat.
    pub fn chat_history<S: AsRef<str>>(
        &mut self,
        session: &SessionRef<S>,
        limit: Option<u64>,
        now: Instant,
    ) -> Result<CallId, Refused> {
        let session = borrowed(session);
        self.request(&Borrowed::ChatHistory { session, limit }, now)
    }

    /// Asks for the sessions. A future method: gateways may not have it. The answer parses as a
    /// list of [`Session`](crate::frame::Session)s.
    ///
    /// # Errors
    /// As for [`call`](Self::call). Safe to repeat.
    pub fn session_list(&mut self, now: Instant) -> Result<CallId, Refused> {
        self.request(&Borrowed::SessionList, now)
    }

    /// Forgets the turns of a session. A future method: gateways may not have it. The answer parses
    /// as [`Cleared`](crate::frame::Cleared).
    ///
    /// # Errors
    /// As for [`call`](Self::call). Safe to repeat.
    pub fn session_clear<S: AsRef<str>>(
        &mut self,
        session: &SessionRef<S>,
        now: Instant,
    ) -> Result<CallId, Refused> {
        self.request(&Borrowed::SessionClear(borrowed(session)), now)
    }

    /// Loads a plugin. A future method: gateways may not have it.
    ///
    /// # Errors
    /// As for [`call`](Self::call).
    pub fn plugin_load(&mut self, name: &str, path: &str, now: Instant) -> Result<CallId, Refused> {
        self.request(&Borrowed::PluginLoad { name, path }, now)
    }

    /// Unloads a plugin. A future method: gateways may not have it.
    ///
    /// # Errors
    /// As for [`call`](Self::call).
    pub fn plugin_unload(&mut self, name: &str, now: Instant) -> Result<CallId, Refused> {
        self.request(&Borrowed::PluginUnload { name }, now)
    }

    /// Asks what is used of the token budgets, for the whole gateway or also for one session. A
    /// future method: gateways may not have it. The answer parses as a
    /// [`BudgetStatus`](crate::frame::BudgetStatus).
    ///
    /// # Errors
    /// As for [`call`](Self::call). Safe to repeat.
    pub fn budget_status<S: AsRef<str>>(
        &mut self,
        session: Option<&SessionRef<S>>,
        now: Instant,
    ) -> Result<CallId, Refused> {
        self.request(&Borrowed::BudgetStatus(session.map(borrowed)), now)
    }

    /// Searches what is remembered about a session's user. A future method: gateways may not have
    /// it. The answer parses as a list of [`Fact`](crate::frame::Fact)s.
    ///
    /// # Errors
    /// As for [`call`](Self::call). Safe to repeat.
    pub fn memory_search<S: AsRef<str>>(
        &mut self,
        session: &SessionRef<S>,
        query: &str,
        limit: Option<u64>,
        now: Instant,
    ) -> Result<CallId, Refused> {
        let session = borrowed(session);
        let call = Borrowed::MemorySearch {
            session,
            query,
            limit,
        };
        self.request(&call, now)
    }

    /// Sends any typed call: a chat is streamed, everything else gets one
    /// [`Reply`](super::ClientEvent::Reply).
    ///
    /// # Errors
    /// As for [`call`](Self::call).
    pub fn request<S: AsRef<str>, J: Serialize>(
        &mut self,
        call: &Call<S, J>,
        now: Instant,
    ) -> Result<CallId, Refused> {
        match call {
            Call::ChatSend(chat) => self.chat_send(chat, now),
            other => self.call(other.name(), other, now),
        }
    }

    /// Calls any method. `params` is any JSON value, as a rule an object. A
    /// [`Reply`](super::ClientEvent::Reply) with the id follows exactly once, unless the call is
    /// [cancelled](Self::cancel).
    ///
    /// Of a method that streams its answer only the end is told: use
    /// [`chat_send`](Self::chat_send) for chats.
    ///
    /// # Errors
    /// [`Refused::NotReady`] before the hello, [`Refused::Closed`], [`Refused::TooManyCalls`],
    /// [`Refused::QueueFull`], [`Refused::TooLarge`], and [`Refused::Encode`] for parameters that
    /// are no JSON. [`Refused::is_retryable`] says which of them pass.
    pub fn call(
        &mut self,
        method: &str,
        params: &impl Serialize,
        now: Instant,
    ) -> Result<CallId, Refused> {
        let deadline = later(now, self.config.call_timeout);
        self.send(method, params, Kind::Unary, Some(deadline))
    }

    /// Lets a request in flight wait this long from `now`; `None` for ever. Of a chat it sets how
    /// long it waits for each next frame. `false` if it has ended.
    pub fn set_timeout(&mut self, id: CallId, timeout: Option<Duration>, now: Instant) -> bool {
        if self.closed.is_some() {
            return false;
        }
        let Some(pending) = self.calls.get_mut(id) else {
            return false;
        };
        let deadline = match &mut pending.kind {
            Kind::Unary => timeout.map(|timeout| later(now, timeout)),
            Kind::Chat(run) => {
                run.idle = timeout;
                run.deadline(now)
            }
        };
        self.calls.extend(id, deadline)
    }

    /// Forgets a request or a chat: no event about it follows, and its frames are dropped. The
    /// gateway is not told, because the protocol has no way to: it goes on to the end. `false` if
    /// it has ended.
    ///
    /// Events that were made before are still there to be polled.
    pub fn cancel(&mut self, id: CallId) -> bool {
        matches!(self.calls.complete(id), Match::Live(_))
    }

    /// Closes with code 1000. What is queued is sent first; what is in flight ends at once.
    pub fn close(&mut self, now: Instant) {
        self.close_with(CloseFrame::new(CloseFrame::NORMAL, ""), now);
    }

    /// Closes with this frame. What is queued is sent first; what is in flight ends at once.
    pub fn close_with(&mut self, frame: CloseFrame, _: Instant) {
        self.shut_with(CloseReason::Local, frame);
    }

    fn new_run(&self, now: Instant) -> Run {
        let total = self.config.chat_total_timeout;
        Run {
            idle: self.config.chat_idle_timeout,
            until: total.map(|total| later(now, total)),
            summary: ChatSummary::default(),
        }
    }

    fn send(
        &mut self,
        method: &str,
        params: &impl Serialize,
        kind: Kind,
        deadline: Option<Instant>,
    ) -> Result<CallId, Refused> {
        match self.state {
            ClientState::Ready => {}
            ClientState::Closed => return Err(Refused::Closed),
            ClientState::AwaitHello => return Err(Refused::NotReady),
        }
        let max = self.calls.capacity_limit();
        let id = self.calls.next_id().ok_or(Refused::TooManyCalls { max })?;
        let frame = self
            .outbox
            .encode(|buffer| encode_request(buffer, id, method, params))?;
        Ok(self.calls.insert(Pending { frame, kind }, deadline)?)
    }
}

fn borrowed<S: AsRef<str>>(session: &SessionRef<S>) -> SessionRef<&str> {
    SessionRef {
        channel: session.channel.as_ref(),
        account: session.account.as_ref(),
        peer: session.peer.as_ref().map(AsRef::as_ref),
        guild: session.guild.as_ref().map(AsRef::as_ref),
        team: session.team.as_ref().map(AsRef::as_ref),
    }
}
