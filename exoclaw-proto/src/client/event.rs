//! [`ClientEvent`]: what the application learns from a [`ClientConn`](super::ClientConn).

use rpc_core::{CallError, CallId, CloseReason, DecodeError, Json};

use crate::error::RpcError;
use crate::frame::{Hello, StreamEvent, Usage};

/// What happened on a connection.
///
/// `Ready` comes once and before every answer; if the gateway says no hello, `Closed` comes instead
/// of it. `Closed` is the last event, and every request and chat has ended before it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ClientEvent {
    /// The gateway has said hello. Commands are taken from now on.
    Ready(Hello),
    /// A request that is not streamed has ended.
    Reply {
        /// Which.
        id: CallId,
        /// How; the value may be null.
        result: Result<Json, CallError<RpcError>>,
    },
    /// One step of a chat.
    Chat {
        /// Which.
        id: CallId,
        /// The step: neither `done` nor `error`, which are told as the end.
        event: StreamEvent,
    },
    /// A chat has ended.
    ChatEnded {
        /// Which.
        id: CallId,
        /// How.
        result: Result<ChatSummary, CallError<RpcError>>,
    },
    /// The gateway complains about something that it could match to no request: the id is `"0"` or
    /// missing. The connection goes on.
    GatewayError(RpcError),
    /// A frame could not be read and was skipped. Requests and chats go on waiting.
    Warning(DecodeError),
    /// The connection has ended.
    Closed(CloseReason),
}

/// What a chat that has ended well came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChatSummary {
    /// What all calls of the model cost together.
    pub usage: Usage,
    /// How many frames the chat had, without the last one.
    pub frames: u64,
    /// How many bytes of text the model has written.
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

impl ClientEvent {
    /// About how many bytes of the frame the event keeps.
    pub(crate) fn weight(&self) -> usize {
        size_of::<Self>()
            + match self {
                Self::Ready(hello) => hello.raw().map_or(0, str::len),
                Self::Reply {
                    result: Ok(answer), ..
                } => answer.get().len(),
                Self::Reply {
                    result: Err(CallError::Remote(error)),
                    ..
                }
                | Self::ChatEnded {
                    result: Err(CallError::Remote(error)),
                    ..
                }
                | Self::GatewayError(error) => error.message().len(),
                Self::Chat { event, .. } => event.weight(),
                _ => 0,
            }
    }
}
