//! [`Payload`]: the signed part of a frame as it was received. [`Draft`]: one to be signed.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use rpc_core::json::DecodeErrorKind;
use rpc_core::{DecodeError, Json, Limits, Str};
use serde::Serialize;
use serde_json::{Map, Number, Value};

use super::Address;
use super::canonical::{self, Canonical, Tree, same_name};

/// The signed part of a frame as it was received: a JSON object. Read members here and not from the
/// frame, so that what is read is what was signed.
#[derive(Debug)]
pub struct Payload<'a> {
    value: Tree<'a>,
    size: usize,
}

impl<'a> Payload<'a> {
    /// Parses a payload: at most [`Limits::max_message_bytes`], [`Limits::max_depth`] levels (no
    /// more than 128) and [`Limits::max_items`] values in all.
    ///
    /// # Errors
    /// [`DecodeError`] if it is not a JSON object, has a member twice or exceeds the limits. Retrying
    /// fails again.
    pub fn parse(text: &'a str, limits: &Limits) -> Result<Self, DecodeError> {
        let value = canonical::read(text, limits)?;
        if !matches!(value, Tree::Object(_)) {
            return Err(DecodeError::new(DecodeErrorKind::NotAnObject));
        }
        let size = text.len();
        Ok(Self { value, size })
    }

    /// Returns the payload in one of the forms in which it can be signed.
    #[must_use]
    pub fn canonical(&self, form: Canonical) -> String {
        self.value.canonical(form, self.size)
    }

    /// Returns a member as it was sent, including `null`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Json> {
        let Tree::Object(members) = &self.value else {
            return None;
        };
        let member = members.iter().find(|it| same_name(it.name, name))?;
        Json::new(member.text).ok()
    }

    /// Returns a member that is a string.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<Str> {
        self.get(name)?.as_str().map(Str::from)
    }

    /// Returns a member that is a number, rounded to the nearest double; infinity if it is too
    /// large.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<f64> {
        let raw = self.get(name)?;
        let is_number = matches!(raw.first_byte(), b'-' | b'0'..=b'9');
        is_number.then(|| raw.get().parse().ok()).flatten()
    }
}

/// A payload to sign: `timestamp`, and any other members.
///
/// Hosts may accept a signature only once, and the same payload always has the same signature. The
/// known SDKs send whole seconds and nothing random, so that two connections in one second fail
/// there; see also [`with_nonce`](Self::with_nonce).
///
/// ```
/// use connectonion_proto::auth::Draft;
///
/// let draft = Draft::new(1702234567.25).with_nonce(7);
/// let json = serde_json::to_string(&draft)?;
/// assert_eq!(json, r#"{"nonce":"00000000000000000000000000000007","timestamp":1702234567.25}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Draft(Map<String, Value>);

impl Draft {
    /// Creates a payload of this time, in seconds since 1970, exact to the millisecond.
    #[must_use]
    pub fn new(now: f64) -> Self {
        // Without zeros at the end, which a host would not write.
        let text = format!("{now:.3}");
        let text = text.trim_end_matches('0').trim_end_matches('.');
        let time = text.parse::<Number>().map_or(Value::Null, Value::Number);
        Self(Map::new()).with("timestamp", time)
    }

    /// Sets the recipient: a host refuses a payload for another one.
    #[must_use]
    pub fn with_to(self, host: &Address) -> Self {
        self.with("to", host.to_string())
    }

    /// Adds a random number, so that this payload is unique.
    #[must_use]
    pub fn with_nonce(self, entropy: u128) -> Self {
        self.with("nonce", format!("{entropy:032x}"))
    }

    /// Sets any member, `invite_code` for example.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }
}

/// Prints the names of the members only: values may be invite codes.
impl fmt::Debug for Draft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Returns a wall-clock time in seconds since 1970, as in payloads; 0 before 1970.
#[must_use]
pub fn unix_seconds(now: SystemTime) -> f64 {
    let since = now.duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs_f64()
}

/// Returns a number without its fraction, or the nearest one that there is.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "conversions from floats saturate"
)]
pub(crate) const fn whole(number: f64) -> u64 {
    number as u64
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn payload(text: &str) -> Payload<'_> {
        Payload::parse(text, &Limits::default()).unwrap()
    }

    fn json(draft: &Draft) -> String {
        serde_json::to_string(draft).unwrap()
    }

    #[test]
    fn members_are_read_as_they_were_sent() {
        let payload = payload(r#" {"a": "x\u00e9", "n": 1.50, "z": null, "\u0062": [1, 2]} "#);
        assert_eq!(payload.text("a").as_deref(), Some("xé"));
        assert_eq!(payload.number("n"), Some(1.5));
        assert!(payload.get("z").unwrap().is_null());
        assert_eq!(payload.get("b").unwrap().get(), "[1, 2]");
        assert_eq!(payload.text("n"), None);
        assert_eq!(payload.number("a"), None);
        assert_eq!(payload.number("b"), None);
        assert!(payload.get("c").is_none());
        assert_eq!(format!("{payload:?}"), "Payload { value: .., size: 58 }");
    }

    #[test]
    fn a_lone_surrogate_becomes_a_replacement_character() {
        let text = payload(r#"{"a":"\ud83e"}"#).text("a");
        assert_eq!(text.as_deref(), Some("\u{fffd}"));
    }

    #[test]
    fn a_payload_must_be_an_object() {
        for text in ["[]", "null", "\"a\"", "1"] {
            let error = Payload::parse(text, &Limits::default()).unwrap_err();
            assert_eq!(error.kind(), DecodeErrorKind::NotAnObject, "{text}");
        }
    }

    #[test]
    fn a_draft_has_millisecond_timestamps() {
        assert_eq!(json(&Draft::new(12.25)), r#"{"timestamp":12.25}"#);
        assert_eq!(json(&Draft::new(12.9996)), r#"{"timestamp":13}"#);
        assert_eq!(json(&Draft::new(100.0)), r#"{"timestamp":100}"#);
        let later = 1_702_234_567.123_4;
        assert_eq!(json(&Draft::new(later)), r#"{"timestamp":1702234567.123}"#);
    }

    #[test]
    fn a_draft_redacts_the_invite_code() {
        let draft = Draft::new(1.0).with("invite_code", "s3cret");
        assert_eq!(json(&draft), r#"{"invite_code":"s3cret","timestamp":1}"#);
        assert_eq!(format!("{draft:?}"), r#"{"invite_code", "timestamp"}"#);
    }

    #[test]
    fn time_is_counted_from_1970() {
        let now = UNIX_EPOCH + Duration::from_millis(1500);
        assert_eq!(unix_seconds(now).to_bits(), 1.5_f64.to_bits());
        let before = UNIX_EPOCH - Duration::from_secs(1);
        assert_eq!(unix_seconds(before).to_bits(), 0.0_f64.to_bits());
    }
}
