//! [`RpcError`], what a server answers to a failed call, and [`BotError`], what bots return.

use std::borrow::Cow;
use std::time::Duration;

use rpc_core::{CallError, CloseReason, Delivery, Json, Refused};

/// A server's answer to a call that failed. Repeating the call unchanged fails again as a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RpcError {
    message: String,
    data: Json,
}

impl RpcError {
    /// An error with this text and no details.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            data: Json::NULL,
        }
    }

    /// What a failed answer says: the text of `error`, else of `data`'s `error`, `exception` or
    /// `message`, else `data` if it is a string, else its JSON.
    pub(crate) fn from_answer(data: Option<Json>, error: Option<Json>) -> Self {
        let inner = |name| data.as_ref()?.member(name);
        let message = error
            .clone()
            .or_else(|| inner("error"))
            .or_else(|| inner("exception"))
            .or_else(|| inner("message"))
            .or_else(|| data.clone());
        let message = message.map_or_else(
            || "the call failed".to_owned(),
            |it| it.as_str().unwrap_or_else(|| it.get().into()).into_owned(),
        );
        let data = data.or(error).unwrap_or_default();
        Self { message, data }
    }

    /// The server's words.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Everything that the answer held as `data`, or as `error` if it had no `data`.
    #[must_use]
    pub const fn data(&self) -> &Json {
        &self.data
    }
}

/// What can go wrong in a bot. The variants carry the names of the specification's section 13.
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
        /// How the last one ended.
        #[source]
        cause: Box<CallError<RpcError>>,
    },
    /// The server refused the login. Never worth a retry with the same credentials.
    #[error("authentication failed: {message}")]
    AuthenticationError {
        /// The server's words.
        message: String,
    },
    /// One call failed: the server refused it, it timed out, or the connection was lost.
    #[error("the call failed: {0}")]
    RpcError(#[source] Box<CallError<RpcError>>),
    /// A tool failed, or a tool loop was stopped.
    #[error("tool {tool}: {message}")]
    ToolError {
        /// The tool's name; empty if no single tool is to blame.
        tool: String,
        /// What happened.
        message: String,
    },
    /// A database operation of the application failed.
    #[error("database: {message}")]
    DatabaseError {
        /// What happened.
        message: String,
    },
    /// An argument breaks a rule of the protocol; nothing was sent.
    #[error("invalid {what}: {why}")]
    ValidationError {
        /// Which argument.
        what: Cow<'static, str>,
        /// Which rule.
        why: String,
    },
    /// The circuit breaker is open; nothing was called.
    #[error("the circuit breaker is open for another {retry_after:?}")]
    CircuitBreakerOpenError {
        /// When a call may be tried again.
        retry_after: Duration,
    },
}

impl BotError {
    /// The specification's name.
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
        }
    }

    /// Whether the call may have reached the server; `None` if no call is involved.
    #[must_use]
    pub const fn delivery(&self) -> Option<Delivery> {
        match self {
            Self::ConnectionError { cause, .. } | Self::RpcError(cause) => Some(cause.delivery()),
            Self::AuthenticationError { .. } => Some(Delivery::Delivered),
            Self::ValidationError { .. } => Some(Delivery::NotSent),
            Self::ToolError { .. }
            | Self::DatabaseError { .. }
            | Self::CircuitBreakerOpenError { .. } => None,
        }
    }

    /// Whether the same operation may succeed later. Ask [`delivery`](Self::delivery) first if a
    /// second execution would hurt.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::ConnectionError { cause, .. } | Self::RpcError(cause) => cause.is_retryable(),
            Self::CircuitBreakerOpenError { .. } => true,
            Self::AuthenticationError { .. }
            | Self::ToolError { .. }
            | Self::DatabaseError { .. }
            | Self::ValidationError { .. } => false,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Answer, ServerFrame};
    use rpc_core::Limits;

    fn outcome(text: &str) -> Result<Answer, RpcError> {
        let frame = ServerFrame::decode(text, &Limits::default()).unwrap();
        frame.into_result()
    }

    #[test]
    fn a_failure_says_what_the_server_said() {
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
    fn an_error_key_inside_a_value_is_no_failure() {
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
