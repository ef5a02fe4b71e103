//! [`Input`]: a text of a user; [`HubError`]: why a hub refuses an operation.

use rpc_core::Str;

use crate::frame::InputMethod;
use crate::id::MessageId;

/// A text of a user.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Input {
    /// The whole text: the hub finds a prefix that names a client.
    pub text: Str,
    /// How the user entered it.
    pub method: InputMethod,
    /// The confidence of the speech recognition. Clients get it if the input was voice and this is
    /// a number from 0 to 1.
    pub confidence: Option<f64>,
}

impl Input {
    /// Creates a typed input.
    pub fn text(text: impl Into<Str>) -> Self {
        Self {
            text: text.into(),
            method: InputMethod::Text,
            confidence: None,
        }
    }

    /// Creates a spoken input, with the confidence of the speech recognition, if known.
    pub fn voice(text: impl Into<Str>, confidence: Option<f64>) -> Self {
        Self {
            text: text.into(),
            method: InputMethod::Voice,
            confidence,
        }
    }

    /// Returns the confidence that clients get.
    pub(super) fn shown_confidence(&self) -> Option<f64> {
        self.confidence
            .filter(|sure| self.method == InputMethod::Voice && (0.0..=1.0).contains(sure))
    }
}

/// An operation that a hub refused; nothing changed, and no client got anything.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HubError {
    /// No client is registered. Retry when there is one.
    #[error("no client is connected")]
    NoClients,
    /// The text is empty, or nothing but white space.
    #[error("there is no text")]
    Blank,
    /// The message for clients is larger than the limit; it would be refused again.
    #[error("a message of {size} bytes is larger than the limit of {max}")]
    TooLarge {
        /// The message's size in bytes.
        size: usize,
        /// The limit.
        max: usize,
    },
    /// Too much is open already, or frames and events are not taken as fast as they are produced.
    /// Retry after taking some, or when some messages have settled.
    #[error("too many messages are open")]
    Busy,
    /// The server is shutting down and accepts nothing new; a [`Hub`](super::Hub) on its own never
    /// returns this. Retry with the next server.
    #[error("the server is going away")]
    Closed,
    /// The server ended while the message was open, so its outcome is unknown; a
    /// [`Hub`](super::Hub) on its own never returns this. The message may have been handled: ask
    /// the user before submitting it again.
    #[error("the server has ended before message {message} was settled")]
    Ended {
        /// The message.
        message: MessageId,
    },
    /// The question has been decided already, or was never asked.
    #[error("no such question to the router is open")]
    UnknownRoute,
}

impl HubError {
    /// Returns whether the same operation may succeed later. Retrying is safe: nothing has
    /// happened.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        matches!(self, Self::NoClients | Self::Busy)
    }
}
