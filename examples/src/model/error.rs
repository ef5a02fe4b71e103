//! [`ModelError`]: why there is no answer, in words that anybody may read.

use std::fmt;
use std::time::Duration;

/// The longest text of a provider that is passed on, in characters.
const MAX_WORDS: usize = 300;

/// Why there is no answer, or none to the end. Asking again is safe: a model keeps nothing. It may
/// be charged again.
///
/// The texts may be shown to strangers: no address and no key stands in them, and what a provider
/// says is cut to a length and holds no control characters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The model cannot be asked like this: a bad address, a bad key. Asking again fails again.
    #[error("the model is not set up: {message}")]
    Setup {
        /// What is wrong.
        message: String,
    },
    /// The provider wants a key, and there is none. Asking again fails again.
    #[error("no API key for provider '{provider}'. Set {variable} env var.")]
    NoKey {
        /// The provider.
        provider: &'static str,
        /// The environment variable that can hold the key.
        variable: &'static str,
    },
    /// There is no connection to the provider, after every attempt, or it was lost before the
    /// answer.
    #[error("{message}")]
    Unreachable {
        /// What happened, in a few words such as `connection refused`. The log has the details.
        message: String,
    },
    /// The provider took too long.
    #[error("{}", wait.text(*after))]
    TimedOut {
        /// What was waited for.
        wait: Wait,
        /// How long.
        after: Duration,
    },
    /// The provider refused, after every attempt if another one could have helped.
    #[error("{}: {message}", StatusLine(*status))]
    Status {
        /// The HTTP status.
        status: u16,
        /// The beginning of what the provider says about it, as it was sent.
        message: String,
    },
    /// The provider reported an error in place of an answer, or in the middle of one.
    #[error("{message}")]
    Provider {
        /// The provider's words.
        message: String,
    },
    /// The answer broke off.
    #[error("the answer broke off")]
    Cut,
    /// The answer is larger than anybody would read.
    #[error("the answer is larger than {max} bytes")]
    TooLarge {
        /// The limit in bytes.
        max: usize,
    },
    /// One event of a streamed answer is larger than any that a provider sends.
    #[error("an event of the answer is larger than {max} bytes")]
    EventTooLarge {
        /// The limit in bytes.
        max: usize,
    },
    /// The model wants more tools at once than anybody would run.
    #[error("the answer has more than {max} calls of tools")]
    TooManyCalls {
        /// The limit.
        max: usize,
    },
    /// This is no answer as the interface describes it.
    #[error("this is no answer of a model: {message}")]
    BadAnswer {
        /// What is wrong with it.
        message: String,
    },
}

/// What of an answer did not come in time.
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

    /// The same with the words that came from outside changed.
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

/// What a provider says in an answer that reports an error: the text of `error.message`, `error`,
/// `message` or `detail`, else the beginning of the answer. Cut to 300 characters, control
/// characters left out.
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

/// The beginning of what a provider says, if it says anything.
pub(super) fn quote(words: &str) -> String {
    match excerpt(words) {
        words if words.is_empty() => "no reason given".to_owned(),
        words => words,
    }
}

/// The beginning of a text on one line.
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
            (
                ModelError::NoKey {
                    provider: "anthropic",
                    variable: "ANTHROPIC_API_KEY",
                },
                "no API key for provider 'anthropic'. Set ANTHROPIC_API_KEY env var.",
            ),
        ] {
            assert_eq!(error.to_string(), text);
        }
    }
}
