//! [`ClientEvent`]: what the application learns from a [`ClientConn`](super::ClientConn).

use rpc_core::decode::{self, DecodeError, FrameCopy, RawJson, SharedJson, SharedStr};
use rpc_core::{CallError, CallId, CloseReason, Limits};
use serde::Deserialize;

use crate::error::RpcError;
use crate::frame::{BorrowedEvent, Hello, StreamEvent, ToolResult, ToolUse, Usage};

/// What happened on a connection.
///
/// `Ready` comes once and before every answer; if the gateway says no hello, `Closed` comes instead
/// of it. `Closed` is the last event, and every request and chat has ended before it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ClientEvent {
    /// The gateway has said hello. Commands are taken from now on.
    Ready(Hello<'static>),
    /// A request that is not streamed has ended.
    Reply {
        /// Which.
        id: CallId,
        /// How.
        result: Result<Answer, CallError<RpcError>>,
    },
    /// One step of a chat.
    Chat {
        /// Which.
        id: CallId,
        /// The step.
        event: ChatEvent,
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

/// One step of a chat that goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChatEvent {
    /// More of the model's text, as the provider cut it; may be empty.
    Text(SharedStr),
    /// The model asks the gateway for a tool.
    ToolUse(ToolUse),
    /// The gateway has run a tool.
    ToolResult(ToolResult),
    /// What one call of the model cost. There may be several: [`ChatSummary::usage`] is the sum.
    Usage(Usage),
    /// A step that this crate does not know. Ignore it, or read it yourself.
    Unknown {
        /// Its name.
        event: SharedStr,
        /// Its data, raw; `None` if there is none.
        data: Option<SharedJson>,
    },
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

/// The value of a request that succeeded, owned and raw.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    data: SharedJson,
}

impl Answer {
    pub(super) fn copied(data: &RawJson<'_>) -> Self {
        Self { data: data.into() }
    }

    /// The value, raw; may be `null`.
    #[must_use]
    pub const fn data(&self) -> &SharedJson {
        &self.data
    }

    /// Reads the value as a `T`.
    ///
    /// # Errors
    /// [`DecodeError`] if it is no `T`.
    pub fn parse<'a, T: Deserialize<'a>>(&'a self) -> Result<T, DecodeError> {
        self.data.parse()
    }

    /// Reads the value as a list of at most [`Limits::max_items`] items.
    ///
    /// # Errors
    /// [`DecodeError`] if it is no such list.
    pub fn parse_list<'a, T: Deserialize<'a>>(
        &'a self,
        limits: &Limits,
    ) -> Result<Vec<T>, DecodeError> {
        decode::parse_list(self.data.get(), limits)
    }
}

impl ChatSummary {
    /// Counts one step.
    pub(super) fn add(&mut self, event: &BorrowedEvent<'_>) {
        self.frames += 1;
        match event {
            StreamEvent::Usage(usage) => self.usage.add(*usage),
            StreamEvent::Text(text) => self.text_bytes += text.len() as u64,
            _ => {}
        }
    }
}

impl ChatEvent {
    /// Copies a step that was decoded from `text`; `None` for one that ends the stream.
    pub(super) fn copied(event: &BorrowedEvent<'_>, text: &str) -> Option<Self> {
        Some(match event {
            // One copy of the chunk alone is the least that it can cost.
            StreamEvent::Text(chunk) => Self::Text(SharedStr::from(&**chunk)),
            StreamEvent::Usage(usage) => Self::Usage(*usage),
            StreamEvent::Done | StreamEvent::Error(_) => return None,
            other => {
                let shared = Self::cut(other, &FrameCopy::of(text))?;
                // Pieces keep the whole frame: too much where they are a small part of it.
                if text.len() > 2 * shared.weight() {
                    return Self::cut(other, &FrameCopy::of(""));
                }
                shared
            }
        })
    }

    fn cut(event: &BorrowedEvent<'_>, copy: &FrameCopy<'_>) -> Option<Self> {
        match event.to_shared(copy) {
            StreamEvent::ToolUse(tool) => Some(Self::ToolUse(tool)),
            StreamEvent::ToolResult(result) => Some(Self::ToolResult(result)),
            StreamEvent::Unknown { event, data } => Some(Self::Unknown { event, data }),
            _ => None,
        }
    }

    /// About how many bytes of the frame the event keeps.
    #[must_use]
    pub fn weight(&self) -> usize {
        size_of::<Self>()
            + match self {
                Self::Text(text) => text.len(),
                Self::ToolUse(tool) => tool.id.len() + tool.name.len() + tool.input.get().len(),
                Self::ToolResult(result) => result.tool_use_id.len() + result.content.len(),
                Self::Usage(_) => 0,
                Self::Unknown { event, data } => {
                    event.len() + data.as_ref().map_or(0, |data| data.get().len())
                }
            }
    }
}

impl ClientEvent {
    /// About how many bytes of the frame the event keeps.
    #[must_use]
    pub fn weight(&self) -> usize {
        size_of::<Self>()
            + match self {
                Self::Ready(hello) => hello.raw().map_or(0, str::len),
                Self::Reply {
                    result: Ok(answer), ..
                } => answer.data().get().len(),
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
