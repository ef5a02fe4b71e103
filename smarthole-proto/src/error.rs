//! [`ErrorCode`] and [`RegistrationError`]: why a registration is refused.

use rpc_core::{Str, words};

words! {
    /// The code of a refused registration. SmartHole specification, *Registration Response*.
    pub enum ErrorCode {
        /// The name violates the rules for names.
        "INVALID_NAME" => InvalidName,
        /// The description is empty or too long.
        "INVALID_DESCRIPTION" => InvalidDescription,
        /// A client with this name is connected.
        "DUPLICATE_NAME" => DuplicateName,
        /// This connection has registered a client already.
        "ALREADY_REGISTERED" => AlreadyRegistered,
        /// The registration is invalid in another way.
        "VALIDATION_ERROR" => ValidationError,
        .. => Other,
    }
}

impl ErrorCode {
    /// Returns whether the same registration may be accepted later: a name becomes free when its
    /// owner leaves, for example the lost connection of this very client.
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

/// Why a registration is refused: a code for programs and a message for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {message}", code.name())]
#[non_exhaustive]
pub struct RegistrationError {
    /// For programs.
    pub code: ErrorCode,
    /// For people; never match on it.
    pub message: Str,
}

impl RegistrationError {
    /// Creates an error.
    pub fn new(code: ErrorCode, message: impl Into<Str>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    /// Returns the error for a name that a connected client has.
    #[must_use]
    pub fn duplicate_name(name: &str) -> Self {
        let message = format!("A client with name '{name}' is already registered");
        Self::new(ErrorCode::DuplicateName, message)
    }

    /// Returns the error for a connection that has registered a client already.
    #[must_use]
    pub fn already_registered() -> Self {
        let message = Str::from_static("This connection is already registered");
        Self::new(ErrorCode::AlreadyRegistered, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_code_round_trips() {
        for code in [
            "INVALID_NAME",
            "INVALID_DESCRIPTION",
            "DUPLICATE_NAME",
            "ALREADY_REGISTERED",
            "VALIDATION_ERROR",
            "LATER",
        ] {
            let read = ErrorCode::from(Str::from(code));
            assert_eq!(read.name(), code);
            assert_eq!(matches!(read, ErrorCode::Other(_)), code == "LATER");
        }
    }
}
