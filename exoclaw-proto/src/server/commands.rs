//! The commands of a [`ServerConn`]: answers, steps of a stream, closing.

use rpc_core::{Json, Machine, Refused};
use serde::Serialize;

use super::ServerConn;
use super::request::{Kind, Open, RequestId};
use crate::codec::{encode_error, encode_event, encode_result, encode_text};
use crate::error::RpcError;
use crate::frame::StreamEvent;

impl ServerConn {
    /// Answers a request with a value, and ends it.
    ///
    /// # Errors
    /// [`Refused::UnknownId`] if the request is not open, [`Refused::Invalid`] if it is a chat,
    /// [`Refused::QueueFull`] (retry after [`Writable`](super::ServerEvent::Writable)),
    /// [`Refused::TooLarge`], [`Refused::Encode`], [`Refused::Closed`]. The request is still open
    /// then, unless it is unknown.
    pub fn reply(&mut self, id: RequestId, result: &impl Serialize) -> Result<(), Refused> {
        if self.open(id)?.kind != Kind::Plain {
            return Err(Refused::invalid("id", "a chat is answered with a stream"));
        }
        self.queue(id, |buffer, id| encode_result(buffer, id, result))?;
        self.forget(id);
        Ok(())
    }

    /// Answers a request with an error, and ends it. For a chat, only before its first event.
    ///
    /// # Errors
    /// As for [`reply`](Self::reply); [`Refused::Invalid`] if the stream has begun.
    pub fn fail(&mut self, id: RequestId, error: &RpcError) -> Result<(), Refused> {
        if self.open(id)?.kind == (Kind::Chat { begun: true }) {
            return Err(Refused::invalid(
                "id",
                "the stream has begun; end it with `error`",
            ));
        }
        self.queue(id, |buffer, id| encode_error(buffer, id, error.message()))?;
        self.forget(id);
        Ok(())
    }

    /// Sends one step of a chat. A [terminal](StreamEvent::is_terminal) one ends it, as
    /// [`done`](Self::done) and [`error`](Self::error) do.
    ///
    /// # Errors
    /// As for [`reply`](Self::reply); [`Refused::Invalid`] if the request is not a chat. Streams
    /// get a quarter of the room for queued frames, so that [`Refused::QueueFull`] leaves room for
    /// other frames.
    pub fn event(&mut self, id: RequestId, event: &StreamEvent) -> Result<(), Refused> {
        match event {
            StreamEvent::Done => self.done(id),
            StreamEvent::Error(text) => self.error(id, text),
            event => self.step(id, |buffer, id| encode_event(buffer, id, event)),
        }
    }

    /// Sends one step that does not end a chat.
    fn step(
        &mut self,
        id: RequestId,
        encode: impl FnOnce(&mut String, &Json) -> Result<(), Refused>,
    ) -> Result<(), Refused> {
        if self.is_closed() {
            return Err(Refused::Closed);
        }
        let open = self.requests.get_mut(id.0).ok_or(Refused::UnknownId)?;
        let Kind::Chat { begun } = &mut open.kind else {
            return Err(Refused::invalid("id", "the request is not a chat"));
        };
        self.core.send_stream(|buffer| encode(buffer, &open.id))?;
        *begun = true;
        Ok(())
    }

    /// Sends more of a chat's text.
    ///
    /// # Errors
    /// As for [`event`](Self::event).
    pub fn text(&mut self, id: RequestId, text: &str) -> Result<(), Refused> {
        self.step(id, |buffer, id| encode_text(buffer, id, text))
    }

    /// Ends a chat.
    ///
    /// # Errors
    /// As for [`event`](Self::event), but with the whole room for queued frames.
    pub fn done(&mut self, id: RequestId) -> Result<(), Refused> {
        self.chat(id)?;
        self.queue(id, |buffer, id| {
            encode_event(buffer, id, &StreamEvent::Done)
        })?;
        self.forget(id);
        Ok(())
    }

    /// Ends a chat that failed: the event `error`, and `done`.
    ///
    /// # Errors
    /// As for [`done`](Self::done).
    pub fn error(&mut self, id: RequestId, error: &str) -> Result<(), Refused> {
        self.chat(id)?;
        // Both or none.
        self.core.check_room(2)?;
        let step = StreamEvent::Error(error.into());
        self.queue(id, |buffer, id| encode_event(buffer, id, &step))?;
        if self.done(id).is_err() {
            // The bytes of the first took the room of the second.
            self.too_slow();
        }
        Ok(())
    }

    /// Forgets a request; the client gets nothing more. The next one starts if they run in order.
    /// Returns `false` if the request is not open.
    pub fn forget(&mut self, id: RequestId) -> bool {
        if self.is_closed() {
            return false;
        }
        let Some(open) = self.requests.complete(id.0).live() else {
            return false;
        };
        self.request_bytes -= open.bytes;
        if self.turn == Some(id) {
            self.turn = None;
            self.next_turn();
        }
        true
    }

    fn open(&self, id: RequestId) -> Result<&Open, Refused> {
        if self.is_closed() {
            return Err(Refused::Closed);
        }
        self.requests.get(id.0).ok_or(Refused::UnknownId)
    }

    /// Checks that a request is an open chat.
    fn chat(&self, id: RequestId) -> Result<(), Refused> {
        match self.open(id)?.kind {
            Kind::Chat { .. } => Ok(()),
            Kind::Plain => Err(Refused::invalid("id", "the request is not a chat")),
        }
    }

    /// Returns whether streams may queue another frame; if not,
    /// [`Writable`](super::ServerEvent::Writable) follows. True once the connection has ended.
    #[cfg(feature = "server")]
    pub(crate) fn poll_writable(&mut self) -> bool {
        self.is_closed() || self.core.check_stream_room().is_ok()
    }

    /// Queues a frame of an open request.
    fn queue(
        &mut self,
        id: RequestId,
        encode: impl FnOnce(&mut String, &Json) -> Result<(), Refused>,
    ) -> Result<(), Refused> {
        let open = self.requests.get(id.0).ok_or(Refused::UnknownId)?;
        self.core
            .send_with(|buffer| encode(buffer, &open.id))
            .map(drop)
    }
}
