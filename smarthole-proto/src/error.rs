//! [`ErrorCode`] and [`RegistrationError`]: why a registration is refused.

use std::fmt;

use rpc_core::decode::SharedStr;

/// The code of a refused registration. SmartHole specification, *Registration Response*.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorCode {
    /// The name breaks the rules for names.
    InvalidName,
    /// The description is empty or too long.
    InvalidDescription,
    /// A client of this name is connected.
    DuplicateName,
    /// This connection has registered a client already.
    AlreadyRegistered,
    /// Anything else is wrong with the registration.
    ValidationError,
    /// A code that this crate does not know.
    Other(SharedStr),
}

impl ErrorCode {
    /// The code on the wire.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::InvalidName => "INVALID_NAME",
            Self::InvalidDescription => "INVALID_DESCRIPTION",
            Self::DuplicateName => "DUPLICATE_NAME",
            Self::AlreadyRegistered => "ALREADY_REGISTERED",
            Self::ValidationError => "VALIDATION_ERROR",
            Self::Other(code) => code,
        }
    }

    /// The code that is written like this; never fails, because servers may have codes of their own.
    #[must_use]
    pub fn parse(code: &str) -> Self {
        match code {
            "INVALID_NAME" => Self::InvalidName,
            "INVALID_DESCRIPTION" => Self::InvalidDescription,
            "DUPLICATE_NAME" => Self::DuplicateName,
            "ALREADY_REGISTERED" => Self::AlreadyRegistered,
            "VALIDATION_ERROR" => Self::ValidationError,
            other => Self::Other(other.into()),
        }
    }

    /// Whether the same registration may be taken later: a name gets free when its owner goes, for
    /// example the lost connection of this very client.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::DuplicateName | Self::Other(_) => true,
            Self::InvalidName
            | Self::InvalidDescription
            | Self::AlreadyRegistered
            | Self::ValidationError => false,
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a registration is refused: a code for programs and words for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
#[non_exhaustive]
pub struct RegistrationError {
    /// For programs.
    pub code: ErrorCode,
    /// For people; never match on it.
    pub message: SharedStr,
}

impl RegistrationError {
    /// A refusal.
    pub fn new(code: ErrorCode, message: impl Into<SharedStr>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    /// A client of this name is connected.
    #[must_use]
    pub fn duplicate_name(name: &str) -> Self {
        let message = format!("A client with name '{name}' is already registered");
        Self::new(ErrorCode::DuplicateName, message)
    }

    /// This connection has registered a client already.
    #[must_use]
    pub fn already_registered() -> Self {
        let message = SharedStr::from_static("This connection is already registered");
        Self::new(ErrorCode::AlreadyRegistered, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_read_as_it_is_written() {
        for code in [
            "INVALID_NAME",
            "INVALID_DESCRIPTION",
            "DUPLICATE_NAME",
            "ALREADY_REGISTERED",
            "VALIDATION_ERROR",
            "LATER",
        ] {
            let read = ErrorCode::parse(code);
            assert_eq!(read.as_str(), code);
            assert_eq!(matches!(read, ErrorCode::Other(_)), code == "LATER");
        }
    }
}
