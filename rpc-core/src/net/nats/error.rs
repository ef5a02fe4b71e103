//! [`NatsError`]: why something was not done on NATS.

use std::error::Error;
use std::fmt::{Debug, Display};

use async_nats::jetstream::context::{
    CreateStreamErrorKind, GetStreamErrorKind, PublishError, PublishErrorKind,
};
use async_nats::jetstream::stream::{ConsumerErrorKind, LastRawMessageErrorKind, PurgeErrorKind};
use async_nats::jetstream::{self, ErrorCode};

/// Why a request to NATS failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NatsError {
    /// There is another revision or a later message than expected: somebody else was faster. Nothing
    /// was written. Read again, and decide again.
    #[error("somebody else was faster")]
    Conflict,
    /// No answer in time, or no connection. A write may have happened or may still happen: repeat
    /// it only with the same id or the same expected revision.
    #[error("NATS does not answer: {message}")]
    Unavailable {
        /// What was not answered.
        message: String,
    },
    /// A limit of storage is reached. Nothing was written; retrying helps once there is room.
    #[error("NATS has no room: {message}")]
    Full {
        /// The server's text.
        message: String,
    },
    /// The message is larger than the server accepts. Nothing was written; retrying fails again.
    #[error("the message is larger than NATS accepts")]
    TooLarge,
    /// The credentials are wrong, or give no right to do this. Nothing was written; retrying fails again.
    #[error("NATS refuses: {message}")]
    Denied {
        /// The server's text.
        message: String,
    },
    /// The configuration cannot be used: an address, a key, a name. Retrying fails again.
    #[error("{message}")]
    Config {
        /// What is wrong, without secrets.
        message: String,
    },
    /// JetStream answered with another error, such as a stream that somebody has deleted.
    #[error("JetStream failed: {message}")]
    JetStream {
        /// The server's code.
        code: u64,
        /// The server's text.
        message: String,
    },
}

impl NatsError {
    /// Returns whether the same request may succeed later. For writes see the variants.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::Unavailable { .. } | Self::Full { .. } | Self::JetStream { .. } => true,
            Self::Conflict | Self::TooLarge | Self::Denied { .. } | Self::Config { .. } => false,
        }
    }

    /// Whether JetStream does not know the stream.
    pub(super) fn is_gone(&self) -> bool {
        matches!(self, Self::JetStream { code, .. } if *code == ErrorCode::STREAM_NOT_FOUND.0)
    }

    pub(super) fn unavailable(error: impl Display) -> Self {
        Self::Unavailable {
            message: error.to_string(),
        }
    }

    pub(super) fn config(error: impl Display) -> Self {
        Self::Config {
            message: error.to_string(),
        }
    }

    /// Finds JetStream's own error among the sources; without one the server did not answer.
    pub(super) fn of(error: &(dyn Error + 'static)) -> Self {
        let mut source = Some(error);
        while let Some(error) = source {
            if let Some(error) = answer_in(error) {
                return Self::jetstream(&error);
            }
            source = error.source();
        }
        Self::unavailable(error)
    }

    pub(super) fn jetstream(error: &jetstream::Error) -> Self {
        let message = error.to_string();
        match error.error_code() {
            ErrorCode::STREAM_WRONG_LAST_SEQUENCE => Self::Conflict,
            ErrorCode::STREAM_STORE_FAILED
            | ErrorCode::ACCOUNT_RESOURCES_EXCEEDED
            | ErrorCode::STORAGE_RESOURCES_EXCEEDED
            | ErrorCode::MEMORY_RESOURCES_EXCEEDED
            | ErrorCode::INSUFFICIENT_RESOURCES => Self::Full { message },
            ErrorCode::STREAM_MESSAGE_EXCEEDS_MAXIMUM => Self::TooLarge,
            ErrorCode::JETSTREAM_NOT_ENABLED | ErrorCode::JETSTREAM_NOT_ENABLED_FOR_ACCOUNT => {
                Self::Config {
                    message: "JetStream is off: start nats-server with -js".to_owned(),
                }
            }
            ErrorCode::STREAM_REPLICAS_NOT_SUPPORTED => Self::Config { message },
            // The server is starting, or has no leader.
            _ if error.code() == 503 => Self::Unavailable { message },
            code => Self::JetStream {
                code: code.0,
                message,
            },
        }
    }
}

/// JetStream's answer, if this is one or holds one in its kind.
fn answer_in(error: &(dyn Error + 'static)) -> Option<jetstream::Error> {
    let found = error.downcast_ref().cloned();
    let found = found.or_else(|| {
        in_kind(error, |it| match it {
            CreateStreamErrorKind::JetStream(answer) => Some(answer),
            _ => None,
        })
    });
    let found = found.or_else(|| {
        in_kind(error, |it| match it {
            GetStreamErrorKind::JetStream(answer) => Some(answer),
            _ => None,
        })
    });
    let found = found.or_else(|| {
        in_kind(error, |it| match it {
            ConsumerErrorKind::JetStream(answer) => Some(answer),
            _ => None,
        })
    });
    let found = found.or_else(|| {
        in_kind(error, |it| match it {
            LastRawMessageErrorKind::JetStream(answer) => Some(answer),
            _ => None,
        })
    });
    found.or_else(|| {
        in_kind(error, |it| match it {
            PurgeErrorKind::JetStream(answer) => Some(answer),
            _ => None,
        })
    })
}

fn in_kind<K>(
    error: &(dyn Error + 'static),
    answer: impl Fn(K) -> Option<jetstream::Error>,
) -> Option<jetstream::Error>
where
    K: Clone + Debug + Display + PartialEq + 'static,
{
    let error = error.downcast_ref::<async_nats::error::Error<K>>()?;
    answer(error.kind())
}

impl From<PublishError> for NatsError {
    fn from(error: PublishError) -> Self {
        match error.kind() {
            PublishErrorKind::WrongLastSequence => Self::Conflict,
            PublishErrorKind::MaxPayloadExceeded => Self::TooLarge,
            // Nobody answers for the subject while the server starts, too.
            _ => Self::of(&error),
        }
    }
}
