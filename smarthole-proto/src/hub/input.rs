//! [`Input`]: what a user said; [`HubError`]: why a hub does not take something.

use rpc_core::Str;

use crate::frame::InputMethod;

/// What a user said.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Input {
    /// The text, whole: a prefix that names a client is found here.
    pub text: Str,
    /// How the user said it.
    pub method: InputMethod,
    /// How sure the speech recognition is. Clients are told if it was voice and this is a number
    /// from 0 to 1.
    pub confidence: Option<f64>,
}

impl Input {
    /// A typed text.
    pub fn text(text: impl Into<Str>) -> Self {
        Self {
            text: text.into(),
            method: InputMethod::Text,
            confidence: None,
        }
    }

    /// A spoken text, and how sure the speech recognition is, if it says.
    pub fn voice(text: impl Into<Str>, confidence: Option<f64>) -> Self {
        Self {
            text: text.into(),
            method: InputMethod::Voice,
            confidence,
        }
    }

    /// The confidence as clients are told it.
    pub(super) fn shown_confidence(&self) -> Option<f64> {
        self.confidence
            .filter(|sure| self.method == InputMethod::Voice && (0.0..=1.0).contains(sure))
    }
}

/// Something that a hub did not take; nothing changed, and nobody got anything.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HubError {
    /// No client is registered. Retry when there is one.
    #[error("no client is connected")]
    NoClients,
    /// The text is empty, or nothing but white space.
    #[error("there is no text")]
    Blank,
    /// The message that clients would get is larger than the limit; it would be refused again.
    #[error("a message of {size} bytes is larger than the limit of {max}")]
    TooLarge {
        /// The message's size in bytes.
        size: usize,
        /// The limit.
        max: usize,
    },
    /// Too much is open already, or frames and events are not taken as fast as they come. Retry
    /// after taking some, or when some messages have settled.
    #[error("too many messages are open")]
    Busy,
    /// The server is going away and takes nothing new; a [`Hub`](super::Hub) by itself never says
    /// so. Retry with the next server.
    #[error("the server is going away")]
    Closed,
    /// The question has been decided already, or was never asked.
    #[error("there is no such open question to the router")]
    UnknownRoute,
}

impl HubError {
    /// Whether the same may be taken later. Retrying is safe: nothing has happened.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::NoClients | Self::Busy => true,
            Self::Blank | Self::TooLarge { .. } | Self::Closed | Self::UnknownRoute => false,
        }
    }
}
