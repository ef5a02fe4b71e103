//! [`RpcError`], the gateway's answer to a failed request, and its [`ErrorKind`].

use rpc_core::{CallError, DecodeError, Json, Refused, Str};

use crate::budget::Exceeded;
use crate::frame::Method;
use crate::limits::AUTH_FAILED;

/// The prefix of the error for text that is not a request.
pub(crate) const PARSE_ERROR: &str = "parse error: ";
/// The prefix of the error for a method that the gateway does not have.
pub(crate) const UNKNOWN_METHOD: &str = "unknown method: ";
/// The prefix of the error for a chat over a token budget.
pub(crate) const BUDGET_EXCEEDED: &str = "token budget exceeded (";
/// The prefix of the error of a model's provider.
pub(crate) const PROVIDER_ERROR: &str = "provider error: ";
/// The prefix of the error for a chat without an agent.
pub(crate) const NO_AGENT: &str = "no agent configured for ";

const PREFIXES: [(&str, ErrorKind); 5] = [
    (PARSE_ERROR, ErrorKind::Parse),
    (UNKNOWN_METHOD, ErrorKind::UnknownMethod),
    (BUDGET_EXCEEDED, ErrorKind::BudgetExceeded),
    (PROVIDER_ERROR, ErrorKind::Provider),
    (NO_AGENT, ErrorKind::NoAgent),
];

/// Most characters of an unknown method's name in an error: the name comes from a stranger.
const NAME_SHOWN: usize = 128;

/// A gateway's answer to a failed request or chat. Exoclaw specification, *Error Response* and
/// *Error Handling*.
///
/// The protocol has no error codes: [`kind`](Self::kind) recognises the known prefixes. Repeating
/// the request unchanged is safe to try for [`ErrorKind::Provider`] only, and may cost tokens.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RpcError {
    message: Str,
}

/// The kind of an error of the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The text was not a request.
    Parse,
    /// The gateway has no such method.
    UnknownMethod,
    /// The method's parameters are wrong.
    InvalidParams,
    /// The token was refused.
    Authentication,
    /// A token budget is used up: [`budget::Exceeded::parse`](crate::budget::Exceeded::parse) reads
    /// the numbers.
    BudgetExceeded,
    /// No agent is configured for this channel, account and peer.
    NoAgent,
    /// The model's provider failed.
    Provider,
    /// Anything else.
    Other,
}

impl RpcError {
    /// Creates an error with this text.
    pub fn new(message: impl Into<Str>) -> Self {
        Self {
            message: message.into(),
        }
    }

    /// Creates the error for text that is not a request, with the reason.
    #[must_use]
    pub fn parse(why: &str) -> Self {
        Self::new(format!("{PARSE_ERROR}{why}"))
    }

    /// Creates the error for an unknown method. Cuts off a long name.
    #[must_use]
    pub fn unknown_method(method: &str) -> Self {
        Self::new(format!("{UNKNOWN_METHOD}{method:.NAME_SHOWN$}"))
    }

    /// Creates the error for wrong parameters, with the reason. Cuts off a long name.
    #[must_use]
    pub fn invalid_params(method: &str, why: &str) -> Self {
        Self::new(format!("invalid {method:.NAME_SHOWN$} params: {why}"))
    }

    /// Creates the error of the model's provider. Leave out its address: strangers can read the
    /// text.
    #[must_use]
    pub fn provider(why: &str) -> Self {
        Self::new(format!("{PROVIDER_ERROR}{why}"))
    }

    /// Returns the gateway's error text.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the kind of the error, from its prefix.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        let text = self.message();
        let params = || {
            let method = text.strip_prefix("invalid ")?.split_once(" params: ")?.0;
            Method::parse(method)
        };
        match PREFIXES.iter().find(|(start, _)| text.starts_with(start)) {
            Some((_, kind)) => *kind,
            None if text == AUTH_FAILED => ErrorKind::Authentication,
            None if params().is_some() => ErrorKind::InvalidParams,
            None => ErrorKind::Other,
        }
    }
}

/// Takes the text of the error, which the client reads.
impl From<Exceeded> for RpcError {
    fn from(error: Exceeded) -> Self {
        Self::new(error.to_string())
    }
}

/// Says that the parameters are invalid, and why.
impl From<DecodeError> for RpcError {
    fn from(error: DecodeError) -> Self {
        Self::new(format!("invalid params: {error}"))
    }
}

impl From<Refused> for RpcError {
    fn from(error: Refused) -> Self {
        Self::new(error.to_string())
    }
}

rpc_core::from_failures!(RpcError, Self::new);

impl From<CallError<Self>> for RpcError {
    fn from(error: CallError<Self>) -> Self {
        match error {
            CallError::Remote(error) => error,
            error => Self::provider(&error.to_string()),
        }
    }
}

/// Returns the text of an `error` member: a string as it is, the `message` of an object, else the
/// JSON.
pub(crate) fn readable(error: Json) -> Str {
    if let Some(text) = error.as_str() {
        return text.into();
    }
    let message = error.member("message");
    match message.as_ref().and_then(Json::as_str) {
        Some(text) => text.into(),
        None => error.into_text(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_classified_by_their_prefix() {
        for (text, kind) in [
            ("parse error: expected ident", ErrorKind::Parse),
            ("unknown method: nope", ErrorKind::UnknownMethod),
            (
                "invalid chat.send params: missing field",
                ErrorKind::InvalidParams,
            ),
            ("invalid nope params: x", ErrorKind::Other),
            (
                "token budget exceeded (daily: 65/60)",
                ErrorKind::BudgetExceeded,
            ),
            ("no agent configured for a:b:c", ErrorKind::NoAgent),
            ("provider error: connection refused", ErrorKind::Provider),
            ("auth_failed", ErrorKind::Authentication),
            ("401 Unauthorized: no", ErrorKind::Other),
        ] {
            assert_eq!(RpcError::new(text).kind(), kind, "{text}");
        }
    }

    #[test]
    fn our_own_errors_are_classified() {
        let made = RpcError::invalid_params("chat.send", "x");
        assert_eq!(made.message(), "invalid chat.send params: x");
        assert_eq!(made.kind(), ErrorKind::InvalidParams);
        assert_eq!(RpcError::provider("x").kind(), ErrorKind::Provider);
        assert_eq!(
            RpcError::unknown_method("x").kind(),
            ErrorKind::UnknownMethod
        );
        assert_eq!(RpcError::parse("x").kind(), ErrorKind::Parse);
    }
}
