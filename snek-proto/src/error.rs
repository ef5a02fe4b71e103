//! [`RpcError`], the server's answer to a failed call, and [`BotError`], the error of bots.

use std::borrow::Cow;
use std::time::Duration;

use rpc_core::{CallError, CloseReason, Delivery, Json, Refused, Str};

/// A server's answer to a call that failed. Repeating the call unchanged usually fails again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RpcError {
    message: Str,
    data: Json,
}

impl RpcError {
    /// Creates an error with this text and no details.
    pub fn new(message: impl Into<Str>) -> Self {
        Self {
            message: message.into(),
            data: Json::NULL,
        }
    }

    pub(crate) const fn fixed(message: &'static str) -> Self {
        Self {
            message: Str::from_static(message),
            data: Json::NULL,
        }
    }

    /// Returns the error of a failed answer: the text of `error`, else of `data`'s `error`,
    /// `exception` or `message`, else `data` if it is a string, else its JSON.
    pub(crate) fn from_answer(data: Option<Json>, error: Option<Json>) -> Self {
        let inner = |name| data.as_ref()?.member(name);
        let message = error
            .clone()
            .or_else(|| inner("error"))
            .or_else(|| inner("exception"))
            .or_else(|| inner("message"))
            .or_else(|| data.clone());
        let message = message.map_or_else(
            || Str::from_static("the call failed"),
            |it| it.as_str().unwrap_or_else(|| it.get().into()).into(),
        );
        let data = data.or(error).unwrap_or_default();
        Self { message, data }
    }

    /// Returns the server's error text.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the whole `data` of the answer, or its `error` if it had no `data`.
    #[must_use]
    pub const fn data(&self) -> &Json {
        &self.data
    }
}

/// An error of a bot. The variants have the names of the specification's section 13.
///
/// `RPCError` is spelt [`RpcError`](Self::RpcError) here; [`name`](Self::name) gives the
/// specification's spelling.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(clippy::enum_variant_names, reason = "the specification's names")]
pub enum BotError {
    /// Connecting or sending failed for good, after every attempt.
    #[error("gave up after {attempts} attempts: {cause}")]
    ConnectionError {
        /// How many attempts were made.
        attempts: u32,
        /// The error of the last one.
        #[source]
        cause: Box<CallError<RpcError>>,
    },
    /// The server refused the login. A retry with the same credentials fails again.
    #[error("authentication failed: {message}")]
    AuthenticationError {
        /// The server's error text.
        message: String,
    },
    /// One call failed: the server refused it, it timed out, or the connection was lost.
    #[error("the call failed: {0}")]
    RpcError(#[source] Box<CallError<RpcError>>),
    /// A tool failed, or a tool loop was stopped.
    #[error("tool{}{tool}: {message}", if tool.is_empty() { "" } else { " " })]
    ToolError {
        /// The tool's name; empty if the error concerns no single tool.
        tool: String,
        /// The error text.
        message: String,
    },
    /// A database operation of the application failed.
    #[error("database: {message}")]
    DatabaseError {
        /// The error text.
        message: String,
    },
    /// An argument breaks a rule of the protocol; nothing was sent.
    #[error("invalid {what}: {why}")]
    ValidationError {
        /// The argument.
        what: Cow<'static, str>,
        /// The rule that it breaks.
        why: String,
    },
    /// The circuit breaker is open; nothing was called.
    #[error("the circuit breaker is open for another {retry_after:?}")]
    CircuitBreakerOpenError {
        /// How long to wait before the next call.
        retry_after: Duration,
    },
    /// The application failed in another way: see [`failed`](Self::failed).
    #[error("{message}")]
    Failed {
        /// The error text.
        message: String,
    },
}

impl BotError {
    /// Creates an error of the application with this text. An [`io::Error`](std::io::Error) and a
    /// boxed error become one with `?`.
    pub fn failed(message: impl Into<String>) -> Self {
        let message = message.into();
        Self::Failed { message }
    }

    /// Returns the specification's name, which is the base's for [`Failed`](Self::Failed).
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::ConnectionError { .. } => "ConnectionError",
            Self::AuthenticationError { .. } => "AuthenticationError",
            Self::RpcError(_) => "RPCError",
            Self::ToolError { .. } => "ToolError",
            Self::DatabaseError { .. } => "DatabaseError",
            Self::ValidationError { .. } => "ValidationError",
            Self::CircuitBreakerOpenError { .. } => "CircuitBreakerOpenError",
            Self::Failed { .. } => "BotError",
        }
    }

    /// Returns whether the call may have reached the server; `None` if no call is involved.
    #[must_use]
    pub const fn delivery(&self) -> Option<Delivery> {
        match self {
            Self::ConnectionError { cause, .. } | Self::RpcError(cause) => Some(cause.delivery()),
            Self::AuthenticationError { .. } => Some(Delivery::Delivered),
            Self::ValidationError { .. } => Some(Delivery::NotSent),
            Self::ToolError { .. }
            | Self::DatabaseError { .. }
            | Self::CircuitBreakerOpenError { .. }
            | Self::Failed { .. } => None,
        }
    }

    /// Returns whether the same operation may succeed later. Check [`delivery`](Self::delivery)
    /// first if a second execution would do harm.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::ConnectionError { cause, .. } | Self::RpcError(cause) => cause.is_retryable(),
            Self::CircuitBreakerOpenError { .. } => true,
            Self::AuthenticationError { .. }
            | Self::ToolError { .. }
            | Self::DatabaseError { .. }
            | Self::ValidationError { .. }
            | Self::Failed { .. } => false,
        }
    }
}

impl From<CallError<RpcError>> for BotError {
    fn from(error: CallError<RpcError>) -> Self {
        match error {
            CallError::Refused(refused) => refused.into(),
            CallError::Closed {
                reason: CloseReason::Authentication { message },
                ..
            } => Self::AuthenticationError { message },
            other => Self::RpcError(Box::new(other)),
        }
    }
}

impl From<Refused> for BotError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Invalid { what, why } => Self::ValidationError {
                what: Cow::Borrowed(what),
                why,
            },
            other => Self::RpcError(Box::new(CallError::Refused(other))),
        }
    }
}

rpc_core::from_failures!(BotError, Self::failed);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{CallValue, ServerFrame};
    use rpc_core::Limits;

    fn outcome(text: &str) -> Result<CallValue, RpcError> {
        let frame = ServerFrame::decode(text, &Limits::default()).unwrap();
        frame.into_result()
    }

    #[test]
    fn a_failure_has_the_servers_message() {
        for (rest, message) in [
            (
                r#""success":false,"error":"top","data":{"error":"inner"}"#,
                "top",
            ),
            (
                r#""success":false,"data":{"message":"m","exception":"e"}"#,
                "e",
            ),
            (r#""success":false,"data":{"message":"m"}"#, "m"),
            (
                r#""success":false,"data":{"error":{"code":1}}"#,
                r#"{"code":1}"#,
            ),
            (r#""success":false,"data":"plain""#, "plain"),
            (r#""success":false,"data":[1, 2]"#, "[1, 2]"),
            (r#""success":false"#, "the call failed"),
            (r#""error":"no success member""#, "no success member"),
        ] {
            let error = outcome(&format!(r#"{{"callId":"1",{rest}}}"#)).unwrap_err();
            assert_eq!(error.message(), message, "{rest}");
        }
    }

    #[test]
    fn a_failure_keeps_its_data_or_error() {
        for (rest, data) in [
            (
                r#""error":"top","data":{"error":"inner"}"#,
                r#"{"error":"inner"}"#,
            ),
            (r#""error":"top","data":null"#, r#""top""#),
            (r#""data":"plain""#, r#""plain""#),
            (r#""error":null"#, "null"),
        ] {
            let text = format!(r#"{{"callId":"1","success":false,{rest}}}"#);
            assert_eq!(outcome(&text).unwrap_err().data().get(), data, "{rest}");
        }
    }

    #[test]
    fn an_error_key_inside_a_value_is_not_a_failure() {
        for rest in [
            r#""data":{"error":"x"}"#,
            r#""success":true,"data":{"error":"x"}"#,
            r#""success":true,"error":"x","data":1"#,
            r#""error":null,"data":1"#,
            r#""success":null,"data":1"#,
        ] {
            assert!(
                outcome(&format!(r#"{{"callId":"1",{rest}}}"#)).is_ok(),
                "{rest}"
            );
        }
    }

    #[test]
    fn an_error_of_the_application_is_its_text() {
        let boxed: Box<dyn std::error::Error + Send + Sync> = "disk full".into();
        let io = std::io::Error::other("disk full");
        for error in [
            BotError::from(boxed),
            io.into(),
            BotError::failed("disk full"),
        ] {
            assert_eq!(error.to_string(), "disk full");
            assert_eq!((error.name(), error.delivery()), ("BotError", None));
        }
    }

    #[test]
    fn a_refused_argument_is_a_validation_error() {
        let refused = Refused::Invalid {
            what: "channel_uid",
            why: "empty".to_owned(),
        };
        let error = BotError::from(CallError::<RpcError>::from(refused));
        assert_eq!(error.name(), "ValidationError");
        assert_eq!(error.delivery(), Some(Delivery::NotSent));
    }

    #[test]
    fn a_refused_login_is_an_authentication_error() {
        let reason = CloseReason::Authentication {
            message: "no".to_owned(),
        };
        let delivery = Delivery::Unknown;
        let error = BotError::from(CallError::<RpcError>::Closed { reason, delivery });
        assert_eq!(
            error,
            BotError::AuthenticationError {
                message: "no".to_owned()
            }
        );
        assert!(!error.is_retryable());
    }
}
