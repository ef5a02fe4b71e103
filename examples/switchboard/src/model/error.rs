//! [`ModelError`]: why there is no answer, with texts that are safe to show.

use std::fmt;
use std::time::Duration;

use super::refusal::{Refusal, Report};

/// The longest text of a provider to pass on, in characters.
const MAX_WORDS: usize = 300;

/// The reason why there is no answer, or only a part of one. A retry is safe, because a model keeps
/// no state, but may be charged again.
///
/// The texts may be shown to strangers: they contain no address and no key, and a provider's text
/// is cut to a length and contains no control characters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// The configuration is invalid: a bad address or key. A retry fails again.
    #[error("{message}")]
    Setup {
        /// The reason.
        message: String,
    },
    /// The provider requires a key, and there is none. A retry fails again.
    #[error("{provider} needs a key: set {variable}, or name a file with {setting}")]
    NoKey {
        /// The provider.
        provider: &'static str,
        /// The environment variable that can hold the key.
        variable: String,
        /// The setting that can name a file with the key.
        setting: String,
    },
    /// After all attempts there is no connection to the provider, or it was lost before the answer.
    #[error("{message}")]
    Unreachable {
        /// The reason, such as `connection refused`, and what to do. The log has the details.
        message: String,
    },
    /// The provider took too long.
    #[error("{what} after {after:?}; try again, or raise model_timeout (--model-timeout)")]
    TimedOut {
        /// The awaited part.
        what: &'static str,
        /// The time limit.
        after: Duration,
    },
    /// The provider refused, after all attempts if a retry could have helped, or it reported an
    /// error in the middle of an answer.
    #[error("{message}")]
    Refused {
        /// The HTTP status, or `None` in an answer that has begun.
        status: Option<u16>,
        /// The reason.
        refusal: Refusal,
        /// The reason in words, what to do, and the beginning of the provider's text.
        message: String,
    },
    /// The answer broke off.
    #[error("the provider closed the connection before the end of the answer; try again")]
    Cut,
    /// The answer, or an event of it, is over the size limit.
    #[error("the answer has a part of more than {max} bytes: ask for a shorter one")]
    TooLarge {
        /// The limit in bytes.
        max: usize,
    },
    /// The answer does not fit the interface.
    #[error(
        "the answer is not one of this provider ({message}): check the provider and its address"
    )]
    BadAnswer {
        /// The reason.
        message: String,
    },
}

impl ModelError {
    /// Returns whether the provider has done nothing that it charges for.
    pub const fn is_free(&self) -> bool {
        matches!(
            self,
            Self::Setup { .. }
                | Self::NoKey { .. }
                | Self::Unreachable { .. }
                | Self::Refused {
                    status: Some(_),
                    ..
                }
        )
    }

    /// Returns why the provider has refused, if that is the reason.
    pub const fn refusal(&self) -> Option<Refusal> {
        match self {
            Self::Refused { refusal, .. } => Some(*refusal),
            _ => None,
        }
    }

    pub(super) fn bad(why: impl fmt::Display) -> Self {
        Self::BadAnswer {
            message: excerpt(&why.to_string()),
        }
    }

    pub(super) fn setup(message: impl fmt::Display) -> Self {
        let message = message.to_string();
        Self::Setup { message }
    }

    /// Creates the error of an answer that fails with these words.
    pub(crate) const fn broken(message: String) -> Self {
        Self::Refused {
            status: None,
            refusal: Refusal::Broken,
            message,
        }
    }

    /// Creates the error of an event that reports one, in the provider's words.
    pub(super) fn reported(event: &str) -> Self {
        let report = Report::read(event);
        Self::Refused {
            status: None,
            refusal: report.refusal(None),
            message: report.message,
        }
    }

    /// Creates the error of an event that may report one, if it has words for people.
    pub(super) fn in_words(event: &str) -> Option<Self> {
        Some(Self::reported(event)).filter(|error| !error.to_string().is_empty())
    }
}

/// Returns the beginning of a text on one line.
pub(super) fn excerpt(text: &str) -> String {
    let line = one_line(text);
    match line.char_indices().nth(MAX_WORDS) {
        Some((end, _)) => line.get(..end).unwrap_or_default().to_owned() + "…",
        None => line,
    }
}

/// Returns a text on one line, without control characters.
pub(super) fn one_line(text: &str) -> String {
    let chars = text.trim().chars().filter_map(|c| match c {
        '\n' | '\t' => Some(' '),
        c => (!c.is_control()).then_some(c),
    });
    chars.collect()
}
