//! The commands of [`ClientConn`]. A refused command changes nothing.

use std::borrow::Borrow;
use std::time::Duration;

use rpc_core::timers::later;
use rpc_core::{CallId, Instant, Match, Refused};
use serde::Serialize;

use super::{ClientConn, ClientState, Pending, Purpose};
#[cfg(feature = "tokio")]
use crate::codec::encode_call_id;
use crate::codec::encode_request;
use crate::color::is_html_color;
use crate::frame::{Final, NoArgs, NoKwargs};
use crate::id::is_channel_uid;

impl ClientConn {
    /// Posts a message, or the whole text so far of a streamed message. Send partial texts in
    /// order, and always end with a final one.
    ///
    /// # Errors
    /// [`Refused::Invalid`] if the channel uid is invalid; otherwise as for [`call`](Self::call).
    /// Repeating a message without an answer may post it twice.
    pub fn send_message(
        &mut self,
        channel: &(impl Borrow<str> + ?Sized),
        text: &str,
        is_final: Final,
        now: Instant,
    ) -> Result<CallId, Refused> {
        let channel = checked_channel(channel.borrow())?;
        let args = (channel, text, is_final);
        self.call("send_message", &args, &NoKwargs {}, now)
    }

    /// Posts like [`send_message`](Self::send_message), without waiting for the answer. This
    /// crate's server posts messages in the order of their arrival; the protocol does not promise
    /// it, so with another server wait for each answer where the order matters.
    ///
    /// # Errors
    /// As for [`send_message`](Self::send_message).
    pub fn notify_message(
        &mut self,
        channel: &(impl Borrow<str> + ?Sized),
        text: &str,
        is_final: Final,
    ) -> Result<CallId, Refused> {
        let channel = checked_channel(channel.borrow())?;
        self.notify("send_message", &(channel, text, is_final), &NoKwargs {})
    }

    /// Shows a typing indicator in a colour like `#FF6B35`, without waiting for the answer.
    ///
    /// # Errors
    /// [`Refused::Invalid`] if the channel uid or the colour is invalid; otherwise as for
    /// [`call`](Self::call). Safe to repeat.
    pub fn set_typing(
        &mut self,
        channel: &(impl Borrow<str> + ?Sized),
        color: &str,
    ) -> Result<CallId, Refused> {
        let channel = checked_channel(channel.borrow())?;
        if !is_html_color(color) {
            return Err(Refused::invalid("color", "it is not # and six hex digits"));
        }
        self.notify("set_typing", &(channel, color), &NoKwargs {})
    }

    /// Tells the platform that the user is active. Not the WebSocket ping, which is automatic.
    ///
    /// # Errors
    /// As for [`call`](Self::call). Safe to repeat.
    pub fn ping(&mut self, now: Instant) -> Result<CallId, Refused> {
        self.call("ping", &NoArgs::default(), &NoKwargs {}, now)
    }

    /// Calls any method. `args` must be written as a JSON array (a tuple, a slice), `kwargs` as an
    /// object (a struct, a map, [`NoKwargs`]). A [`Reply`](super::ClientEvent::Reply) with this id
    /// follows exactly once, unless the call is [cancelled](Self::cancel).
    ///
    /// # Errors
    /// [`Refused::NotReady`] before the opening is done, [`Refused::Closed`],
    /// [`Refused::TooManyCalls`], [`Refused::QueueFull`], [`Refused::TooLarge`],
    /// [`Refused::Invalid`] and [`Refused::Encode`] for invalid arguments.
    /// [`Refused::is_retryable`] says which of them are temporary.
    pub fn call(
        &mut self,
        method: &str,
        args: &impl Serialize,
        kwargs: &impl Serialize,
        now: Instant,
    ) -> Result<CallId, Refused> {
        let deadline = Some(later(now, self.config.call_timeout));
        self.send(deadline, |buffer, id| {
            encode_request(buffer, method, args, kwargs, id)
        })
    }

    /// Like [`call`](Self::call), with a request that is encoded up to its id.
    #[cfg(feature = "tokio")]
    pub(crate) fn call_encoded(&mut self, request: &str, now: Instant) -> Result<CallId, Refused> {
        let deadline = Some(later(now, self.config.call_timeout));
        self.send(deadline, |buffer, id| {
            buffer.push_str(request);
            encode_call_id(buffer, id)
        })
    }

    /// Calls any method without waiting for the answer, which is dropped when it arrives.
    ///
    /// # Errors
    /// As for [`call`](Self::call).
    pub fn notify(
        &mut self,
        method: &str,
        args: &impl Serialize,
        kwargs: &impl Serialize,
    ) -> Result<CallId, Refused> {
        self.notify_with(|buffer, id| encode_request(buffer, method, args, kwargs, id))
    }

    /// Like [`notify`](Self::notify), with a request that is encoded up to its id.
    #[cfg(feature = "tokio")]
    pub(crate) fn notify_encoded(&mut self, request: &str) -> Result<CallId, Refused> {
        self.notify_with(|buffer, id| {
            buffer.push_str(request);
            encode_call_id(buffer, id)
        })
    }

    fn notify_with(
        &mut self,
        encode: impl FnOnce(&mut String, CallId) -> Result<(), Refused>,
    ) -> Result<CallId, Refused> {
        let id = self.send(None, encode)?;
        // Registered for a moment, so that no later call can get the same id.
        self.cancel(id);
        Ok(id)
    }

    /// Sets the timeout of a call in flight, from `now`; `None` waits for ever. Returns `false` if
    /// the call has ended.
    pub fn set_timeout(&mut self, id: CallId, timeout: Option<Duration>, now: Instant) -> bool {
        let deadline = timeout.map(|timeout| later(now, timeout));
        !self.core.is_closed() && self.calls.extend(id, deadline)
    }

    /// Forgets a call: no reply event follows, and its answer is dropped. The server does not learn
    /// of it, because the protocol has no cancellation. Returns `false` if the call has ended.
    pub fn cancel(&mut self, id: CallId) -> bool {
        matches!(self.calls.complete(id), Match::Live(_))
    }

    fn send(
        &mut self,
        deadline: Option<Instant>,
        encode: impl FnOnce(&mut String, CallId) -> Result<(), Refused>,
    ) -> Result<CallId, Refused> {
        match self.state() {
            ClientState::Ready => {}
            ClientState::Closed => return Err(Refused::Closed),
            _ => return Err(Refused::NotReady),
        }
        let max = self.calls.capacity_limit();
        let id = self.calls.next_id().ok_or(Refused::TooManyCalls { max })?;
        let frame = self.core.send_with(|buffer| encode(buffer, id))?;
        let purpose = Purpose::Command;
        let pending = Pending { purpose, frame };
        Ok(self.calls.insert(pending, deadline)?)
    }
}

pub(crate) fn checked_channel(uid: &str) -> Result<&str, Refused> {
    let why = "it is not made of letters, digits, _ and -";
    let uid = Some(uid).filter(|uid| is_channel_uid(uid));
    uid.ok_or_else(|| Refused::invalid("channel_uid", why))
}
