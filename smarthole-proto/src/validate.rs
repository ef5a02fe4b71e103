//! Validation of registrations: pure functions that return the specification's codes.
//!
//! Checks run in the order of the known server: name, description, version, capabilities. Whether
//! the connection is registered already is checked before them, and whether the name is taken after
//! them, both by the owner of the connections (a [`Hub`](crate::hub::Hub), a
//! [`ServerConn`](crate::server::ServerConn)).
//!
//! ```
//! use smarthole_proto::error::ErrorCode;
//! use smarthole_proto::validate;
//!
//! assert!(validate::name("my-client").is_ok());
//! assert_eq!(validate::name("my client").unwrap_err().code, ErrorCode::InvalidName);
//! let payload = r#"{"name":"notes","description":"I keep notes."}"#;
//! assert_eq!(validate::payload(payload).unwrap().name, "notes");
//! ```

use rpc_core::json::{self, first_byte, lenient};
use rpc_core::{Json, Str};
use serde::Deserialize;

use crate::error::{ErrorCode, RegistrationError};
use crate::frame::Registration;
use crate::limits::{MAX_DESCRIPTION, MAX_NAME, defaults};

/// How the length of a description is counted. Exhaustive: there is no third way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// In UTF-16 units, as the strictest known server counts.
    Client,
    /// In Unicode scalar values, so that clients that count in either way are accepted.
    Server,
}

/// Checks a name: a letter, then letters, digits, `-` and `_`; at most 64; all ASCII.
///
/// # Errors
/// [`ErrorCode::InvalidName`] with the rule that the name breaks.
pub fn name(name: &str) -> Result<(), RegistrationError> {
    let why = if trim(name).is_empty() {
        "Name cannot be empty"
    } else if name.encode_utf16().count() > MAX_NAME {
        "Name must be 64 characters or less"
    } else if !is_name(name) {
        "Name must start with a letter and contain only alphanumeric characters, hyphens, and underscores"
    } else {
        return Ok(());
    };
    Err(invalid_name(why))
}

/// Checks a description: not blank, at most 1,024 characters.
///
/// # Errors
/// [`ErrorCode::InvalidDescription`] with the rule that the description breaks.
pub fn description(description: &str, side: Side) -> Result<(), RegistrationError> {
    let length = || match side {
        Side::Client => description.encode_utf16().count(),
        Side::Server => description.chars().count(),
    };
    let why = if trim(description).is_empty() {
        "Description cannot be empty"
    } else if length() > MAX_DESCRIPTION {
        "Description must be 1024 characters or less"
    } else {
        return Ok(());
    };
    Err(invalid_description(why))
}

/// Checks a typed registration.
///
/// # Errors
/// [`ErrorCode::InvalidName`] if the name is not valid, else [`ErrorCode::InvalidDescription`] if the description
/// is not: the message says what is allowed.
pub fn registration(registration: &Registration, side: Side) -> Result<(), RegistrationError> {
    name(&registration.name)?;
    description(&registration.description, side)
}

/// Decodes and checks the payload of a registration, as a server does. Unknown members are ignored.
///
/// # Errors
/// [`ErrorCode::InvalidName`], [`ErrorCode::InvalidDescription`] or [`ErrorCode::ValidationError`],
/// whichever comes first.
pub fn payload(json: &str) -> Result<Registration, RegistrationError> {
    if first_byte(json) != Some(b'{') {
        let value = Json::new(json).map_err(|error| invalid(error.to_string()))?;
        return Err(match value.first_byte() {
            // An array is an object without a name to the known server.
            b'[' => invalid_name("Name is required and must be a string"),
            _ => invalid("Registration must be an object"),
        });
    }
    let members: Payload =
        json::parse(json, &defaults()).map_err(|error| invalid(error.to_string()))?;
    let found = members.name.as_ref().and_then(text);
    let found_name = found.ok_or_else(|| invalid_name("Name is required and must be a string"))?;
    name(&found_name)?;
    let found = members.description.as_ref().and_then(text);
    let found_description =
        found.ok_or_else(|| invalid_description("Description is required and must be a string"))?;
    description(&found_description, Side::Server)?;
    let version = members.version.as_ref().map(|version| {
        text(version).ok_or_else(|| invalid("Version must be a string if provided"))
    });
    let version = version.transpose()?;
    let capabilities = members
        .capabilities
        .as_ref()
        .map_or(Ok(Vec::new()), capabilities)?;
    Ok(Registration {
        name: found_name,
        description: found_description,
        version,
        capabilities,
    })
}

/// Returns whether a text has the form of a name: a letter, then letters, digits, `-` and `_`, all
/// ASCII. Does not check the length.
#[must_use]
pub fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic())
        && bytes.all(is_name_byte)
}

pub(crate) const fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

/// Removes white space at both ends, as JavaScript counts it: `\u{feff}` is white space, and
/// `\u{85}` is not.
pub(crate) fn trim(text: &str) -> &str {
    text.trim_matches(|c: char| (c.is_whitespace() && c != '\u{85}') || c == '\u{feff}')
}

/// A registration whose members may be of any type.
#[derive(Deserialize)]
struct Payload {
    #[serde(default, deserialize_with = "lenient::present")]
    name: Option<Json>,
    #[serde(default, deserialize_with = "lenient::present")]
    description: Option<Json>,
    #[serde(default, deserialize_with = "lenient::present")]
    version: Option<Json>,
    #[serde(default, deserialize_with = "lenient::present")]
    capabilities: Option<Json>,
}

fn text(json: &Json) -> Option<Str> {
    json.as_str().map(Str::from)
}

fn capabilities(json: &Json) -> Result<Vec<Str>, RegistrationError> {
    if json.first_byte() != b'[' {
        return Err(invalid("Capabilities must be an array if provided"));
    }
    let items: Vec<Json> =
        json::parse(json.get(), &defaults()).map_err(|error| invalid(error.to_string()))?;
    let texts = items.iter().map(text).collect::<Option<_>>();
    texts.ok_or_else(|| invalid("Each capability must be a string"))
}

fn invalid_name(why: &'static str) -> RegistrationError {
    RegistrationError::new(ErrorCode::InvalidName, why)
}

fn invalid_description(why: &'static str) -> RegistrationError {
    RegistrationError::new(ErrorCode::InvalidDescription, why)
}

fn invalid(why: impl Into<Str>) -> RegistrationError {
    RegistrationError::new(ErrorCode::ValidationError, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(json: &str) -> Option<ErrorCode> {
        payload(json).err().map(|error| error.code)
    }

    #[test]
    fn name_rules_match_the_specification() {
        let long = "a".repeat(64);
        for good in ["a", "Z", "my-client", "a_b-9", "notes-", &long] {
            assert_eq!(name(good), Ok(()), "{good}");
        }
        let longer = "a".repeat(65);
        for bad in [
            "", " ", "\u{feff}", "1a", "-a", "_a", "a b", "a.b", " a", "a ", "a\n", "é", "aé",
            "\u{212a}", "a\u{0}", &longer,
        ] {
            assert_eq!(
                name(bad).unwrap_err().code,
                ErrorCode::InvalidName,
                "{bad:?}"
            );
        }
    }

    #[test]
    fn servers_count_characters_and_clients_utf_16_units() {
        let ascii = "a".repeat(1024);
        assert_eq!(description(&ascii, Side::Client), Ok(()));
        assert_eq!(description(&ascii, Side::Server), Ok(()));
        let faces = "😀".repeat(1024);
        assert_eq!(description(&faces, Side::Server), Ok(()));
        assert!(description(&faces, Side::Client).is_err());
        assert_eq!(description(&"😀".repeat(512), Side::Client), Ok(()));
        for bad in [
            format!("{ascii}a"),
            format!("{faces}a"),
            " \n\t".to_owned(),
            String::new(),
        ] {
            let error = description(&bad, Side::Server).unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidDescription);
        }
    }

    #[test]
    fn the_first_broken_rule_determines_the_code() {
        for (json, expected) in [
            (r#"{"name":"a","description":"d"}"#, None),
            (
                r#"{"name":"a","description":"d","version":"","capabilities":[],"x":[1]}"#,
                None,
            ),
            (r#"{"name":"a","description":" d "}"#, None),
            ("null", Some(ErrorCode::ValidationError)),
            ("7", Some(ErrorCode::ValidationError)),
            (r#""a""#, Some(ErrorCode::ValidationError)),
            ("[]", Some(ErrorCode::InvalidName)),
            ("[", Some(ErrorCode::ValidationError)),
            ("name", Some(ErrorCode::ValidationError)),
            ("{}", Some(ErrorCode::InvalidName)),
            (
                r#"{"name":null,"description":""}"#,
                Some(ErrorCode::InvalidName),
            ),
            (
                r#"{"name":7,"description":"d"}"#,
                Some(ErrorCode::InvalidName),
            ),
            (
                r#"{"name":"1","description":"","version":1}"#,
                Some(ErrorCode::InvalidName),
            ),
            (r#"{"name":"a"}"#, Some(ErrorCode::InvalidDescription)),
            (
                r#"{"name":"a","description":["d"]}"#,
                Some(ErrorCode::InvalidDescription),
            ),
            (
                r#"{"name":"a","description":"","version":1}"#,
                Some(ErrorCode::InvalidDescription),
            ),
            (
                r#"{"name":"a","description":"d","version":1}"#,
                Some(ErrorCode::ValidationError),
            ),
            (
                r#"{"name":"a","description":"d","version":null}"#,
                Some(ErrorCode::ValidationError),
            ),
            (
                r#"{"name":"a","description":"d","capabilities":null}"#,
                Some(ErrorCode::ValidationError),
            ),
            (
                r#"{"name":"a","description":"d","capabilities":{}}"#,
                Some(ErrorCode::ValidationError),
            ),
            (
                r#"{"name":"a","description":"d","capabilities":["x",1]}"#,
                Some(ErrorCode::ValidationError),
            ),
            (
                r#"{"name":"a","name":"a","description":"d"}"#,
                Some(ErrorCode::ValidationError),
            ),
        ] {
            assert_eq!(code(json), expected, "{json}");
        }
    }

    #[test]
    fn a_valid_registration_is_kept_verbatim() {
        let json = r#"{"name":"my-client","description":" I handle t\u0061sks. ","version":"1.0.0","capabilities":["tasks","reminders"]}"#;
        let registration = payload(json).unwrap();
        assert_eq!(registration.name, "my-client");
        assert_eq!(registration.description, " I handle tasks. ");
        assert_eq!(registration.version.as_deref(), Some("1.0.0"));
        assert_eq!(registration.capabilities, ["tasks", "reminders"]);
    }
}
