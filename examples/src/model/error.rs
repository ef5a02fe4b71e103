//! [`ModelError`]: why there is no answer, with texts that are safe to show.

use std::fmt;
use std::time::Duration;

/// The longest text of a provider to pass on, in characters.
const MAX_WORDS: usize = 300;

/// The reason why there is no answer, or only a part of one. A retry is safe, because a model keeps
/// no state, but may be charged again.
///
/// The texts may be shown to strangers: they contain no address and no key, and a provider's text
/// is cut to a length and contains no control characters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
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
        variable: &'static str,
        /// The setting that can name a file with the key.
        setting: String,
    },
    /// After all attempts there is no connection to the provider, or it was lost before the answer.
    #[error("{message}")]
    Unreachable {
        /// A short reason such as `connection refused`. The log has the details.
        message: String,
    },
    /// The provider took too long.
    #[error("{}", wait.text(*after))]
    TimedOut {
        /// The awaited part.
        wait: Wait,
        /// The time limit.
        after: Duration,
    },
    /// The provider refused, after all attempts if a retry could have helped.
    #[error("{}: {message}", StatusLine(*status))]
    Status {
        /// The HTTP status.
        status: u16,
        /// The beginning of the provider's text, as it was sent.
        message: String,
    },
    /// The provider reported an error in place of an answer, or in the middle of one.
    #[error("{message}")]
    Provider {
        /// The provider's text.
        message: String,
    },
    /// The answer broke off.
    #[error("the answer broke off")]
    Cut,
    /// The answer is over the size limit.
    #[error("the answer is larger than {max} bytes")]
    TooLarge {
        /// The limit in bytes.
        max: usize,
    },
    /// An event of a streamed answer is over the size limit.
    #[error("an event of the answer is larger than {max} bytes")]
    EventTooLarge {
        /// The limit in bytes.
        max: usize,
    },
    /// The answer has too many tool calls.
    #[error("the answer has more than {max} calls of tools")]
    TooManyCalls {
        /// The limit.
        max: usize,
    },
    /// The answer does not fit the interface.
    #[error("this is no answer of a model: {message}")]
    BadAnswer {
        /// The reason.
        message: String,
    },
}

/// The part of an answer that did not arrive in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Wait {
    /// Its head, before any of its text.
    Head,
    /// The next piece.
    Piece,
    /// The end.
    End,
}

impl Wait {
    fn text(self, after: Duration) -> String {
        match self {
            Self::Head => "request timed out".to_owned(),
            Self::Piece => format!("stream idle timeout after {after:?}"),
            Self::End => format!("the answer took longer than {after:?}"),
        }
    }
}

/// A status with its name.
struct StatusLine(u16);

impl fmt::Display for StatusLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match http::StatusCode::from_u16(self.0) {
            Ok(status) => status.fmt(f),
            Err(_) => self.0.fmt(f),
        }
    }
}

impl ModelError {
    pub(super) fn bad(why: impl fmt::Display) -> Self {
        Self::BadAnswer {
            message: excerpt(&why.to_string()),
        }
    }

    #[cfg(feature = "llm")]
    pub(super) fn setup(message: impl fmt::Display) -> Self {
        let message = message.to_string();
        Self::Setup { message }
    }

    /// Returns the error with its external text changed.
    #[cfg(feature = "llm")]
    pub(super) fn with_words(self, change: impl FnOnce(&str) -> String) -> Self {
        match self {
            Self::Provider { message } => Self::Provider {
                message: change(&message),
            },
            Self::BadAnswer { message } => Self::BadAnswer {
                message: change(&message),
            },
            Self::Status { status, message } => Self::Status {
                status,
                message: change(&message),
            },
            other => other,
        }
    }
}

/// Returns the provider's text in an answer that reports an error: the text of `error.message`,
/// `error`, `message` or `detail`, otherwise the beginning of the answer. Cut to 300 characters,
/// without control characters.
#[must_use]
pub fn error_message(body: &str) -> String {
    use serde_json::Value;
    let value: Value = serde_json::from_str(body).unwrap_or_default();
    let value = value.get(0).unwrap_or(&value);
    let known = [
        value.pointer("/error/message"),
        value.get("error"),
        value.get("message"),
        value.get("detail"),
    ];
    let words = known.into_iter().flatten().find_map(Value::as_str);
    quote(words.unwrap_or(body))
}

/// Returns the beginning of a provider's text, if there is any.
pub(super) fn quote(words: &str) -> String {
    match excerpt(words) {
        words if words.is_empty() => "no reason given".to_owned(),
        words => words,
    }
}

/// Returns the beginning of a text on one line.
pub(super) fn excerpt(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.trim().chars().filter_map(|c| match c {
        '\n' | '\t' => Some(' '),
        c => (!c.is_control()).then_some(c),
    });
    out.extend(chars.by_ref().take(MAX_WORDS));
    if chars.next().is_some() {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_is_quoted_wherever_its_words_stand() {
        for (body, words) in [
            (r#"{"error":{"message":"no key"}}"#, "no key"),
            (r#"[{"error":{"message":"no key"}}]"#, "no key"),
            (
                r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
                "Overloaded",
            ),
            (r#"{"error":"no key"}"#, "no key"),
            (r#"{"detail":"Not Found"}"#, "Not Found"),
            ("  plain words\n", "plain words"),
            ("<b>\r\n\u{1b}[31mbad\0 key</b>", "<b> [31mbad key</b>"),
            ("", "no reason given"),
            ("\0", "no reason given"),
        ] {
            assert_eq!(error_message(body), words);
        }
        let long = error_message(&"ß".repeat(5000));
        assert_eq!(long.chars().count(), MAX_WORDS + 1);
    }

    #[test]
    fn the_texts_are_those_that_clients_look_for() {
        let message = "no".to_owned();
        for (error, text) in [
            (
                ModelError::Status {
                    status: 401,
                    message: message.clone(),
                },
                "401 Unauthorized: no",
            ),
            (
                ModelError::Status {
                    status: 529,
                    message: message.clone(),
                },
                "529 <unknown status code>: no",
            ),
            (
                ModelError::Status {
                    status: 599,
                    message,
                },
                "599 <unknown status code>: no",
            ),
            (
                ModelError::TimedOut {
                    wait: Wait::Head,
                    after: Duration::from_secs(45),
                },
                "request timed out",
            ),
            (
                ModelError::TimedOut {
                    wait: Wait::Piece,
                    after: Duration::from_secs(45),
                },
                "stream idle timeout after 45s",
            ),
        ] {
            assert_eq!(error.to_string(), text);
        }
    }
}
