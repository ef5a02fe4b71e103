//! [`ClientEvent`]: the events of a [`ClientConn`](super::ClientConn).

use rpc_core::{CallError, CallId, CloseReason, DecodeError, Json};

use crate::error::RpcError;
use crate::frame::{Hello, StreamEvent, Usage};

/// An event of a connection.
///
/// `Ready` comes once, before every answer; if the gateway sends no hello, `Closed` comes instead.
/// `Closed` is the last event, and every request and chat has ended before it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ClientEvent {
    /// The gateway sent its hello. Commands are accepted from now on.
    Ready(Hello),
    /// A request without a stream has ended.
    Reply {
        /// The request.
        id: CallId,
        /// Its result; the value may be null.
        result: Result<Json, CallError<RpcError>>,
    },
    /// One step of a chat.
    Chat {
        /// The chat.
        id: CallId,
        /// The step: never `done` or `error`, which are reported as
        /// [`ChatEnded`](ClientEvent::ChatEnded).
        event: StreamEvent,
    },
    /// A chat has ended.
    ChatEnded {
        /// The chat.
        id: CallId,
        /// Its result.
        result: Result<ChatSummary, CallError<RpcError>>,
    },
    /// The gateway sent an error that belongs to no request: its id is `"0"` or missing. The
    /// connection continues.
    GatewayError(RpcError),
    /// A frame could not be decoded and was skipped. Requests and chats keep waiting.
    Warning(DecodeError),
    /// The connection has ended.
    Closed(CloseReason),
}

/// The summary of a successful chat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChatSummary {
    /// The total usage of all calls of the model.
    pub usage: Usage,
    /// The number of frames of the chat, without the last one.
    pub frames: u64,
    /// The number of bytes of text from the model.
    pub text_bytes: u64,
}

impl ChatSummary {
    /// Counts one step.
    pub(super) fn add(&mut self, event: &StreamEvent) {
        self.frames += 1;
        match event {
            StreamEvent::Usage(usage) => self.usage.add(*usage),
            StreamEvent::Text(text) => self.text_bytes += text.len() as u64,
            _ => {}
        }
    }
}
