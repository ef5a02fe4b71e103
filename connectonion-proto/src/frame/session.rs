//! [`Session`]: the conversation that both sides keep, with all its members.

use rpc_core::encode::encode_into;
use rpc_core::json::{DecodeErrorKind, each_json, first_byte};
use rpc_core::{DecodeError, Json, Limits, Refused, Str};
use serde::{Serialize, Serializer};

use super::number::Number;

/// A session as sent in CONNECT, CONNECTED, OUTPUT and `session_sync`: an object whose members,
/// known or not, are kept in order and as they were sent. ConnectOnion specification, *CONNECT*.
///
/// Frames hold it raw, so that a session of megabytes that is only passed on costs nothing; read it
/// with [`parse`](Self::parse). The messages and the trace stay raw in this type, too.
///
/// ```
/// # use connectonion_proto::frame::Session;
/// # use connectonion_proto::Limits;
/// let text = r#"{"messages":[],"mode":"safe","theirs":[1]}"#;
/// let mut session = Session::parse(text, &Limits::default())?;
/// assert_eq!(session.text("mode").as_deref(), Some("safe"));
/// session.set("turn", &2)?;
/// assert_eq!(
///     serde_json::to_string(&session)?,
///     r#"{"messages":[],"mode":"safe","theirs":[1],"turn":2}"#
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Session(Vec<(Str, Json)>);

impl Session {
    /// Creates an empty session: `{}`.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Parses the members of a session, of any type.
    ///
    /// # Errors
    /// [`DecodeError`] if the text is not a JSON object, or has more than [`Limits::max_items`]
    /// members.
    pub fn parse(json: &str, limits: &Limits) -> Result<Self, DecodeError> {
        let max = limits.max_items;
        let mut members = Vec::new();
        let mut count = 0;
        each_json(json, |name, value| {
            count += 1;
            if count <= max {
                members.push((name.into(), value));
            }
        })?;
        if count > max {
            return Err(DecodeError::new(DecodeErrorKind::TooManyItems { max }));
        }
        Ok(Self(members))
    }

    /// Returns the members in order, as they were sent.
    pub fn members(&self) -> impl Iterator<Item = (&str, &Json)> {
        self.0.iter().map(|(name, value)| (&**name, value))
    }

    /// Returns a member as it was sent; `None` if it is absent or null. Of several members of that
    /// name the last counts, as for the known peers.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Json> {
        let mut from_the_end = self.0.iter().rev();
        let (_, value) = from_the_end.find(|(known, _)| known == name)?;
        Some(value).filter(|value| !value.is_null())
    }

    /// Returns a member that is a string.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<Str> {
        self.get(name)?.as_str().map(Str::from)
    }

    /// Returns a member that is a number.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<Number> {
        self.get(name)?.parse().ok()
    }

    /// Sets a member in its place, or at the end. The others stay as they were sent.
    ///
    /// # Errors
    /// [`Refused::Encode`] if the value is not JSON. Nothing has changed then.
    pub fn set(&mut self, name: &str, value: &(impl Serialize + ?Sized)) -> Result<(), Refused> {
        self.set_raw(name, Json::of(value)?);
        Ok(())
    }

    /// Like [`set`](Self::set), with a value as it was sent.
    pub(crate) fn set_raw(&mut self, name: &str, value: Json) {
        let mut from_the_end = self.0.iter_mut().rev();
        match from_the_end.find(|(known, _)| known == name) {
            Some((_, place)) => *place = value,
            None => self.0.push((name.into(), value)),
        }
    }

    /// Removes all members of this name.
    pub fn remove(&mut self, name: &str) {
        self.0.retain(|(known, _)| known != name);
    }

    /// Appends items to a member that is an array (`messages`, `trace`), or creates it. Any other
    /// value is replaced.
    ///
    /// # Errors
    /// [`Refused::Encode`] if an item is not JSON. Nothing has changed then.
    pub fn append<T: Serialize>(
        &mut self,
        name: &str,
        items: impl IntoIterator<Item = T>,
    ) -> Result<(), Refused> {
        let list = self.get(name).map_or("[]", Json::get);
        let inner = list
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'));
        let inner = inner.unwrap_or_default().trim_end();
        let mut json = String::with_capacity(list.len() + 256);
        json.push('[');
        json.push_str(inner);
        let mut is_first = first_byte(inner).is_none();
        for item in items {
            if !std::mem::take(&mut is_first) {
                json.push(',');
            }
            encode_into(&item, &mut json)?;
        }
        json.push(']');
        self.set_raw(name, Json::from_checked(json));
        Ok(())
    }
}

// Prints the names only: the contents are private.
rpc_core::debug_fields!([] Session, this => {
    members: this.0.iter().map(|(name, _)| name).collect::<Vec<_>>(),
});

impl Serialize for Session {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: &str) -> Session {
        Session::parse(json, &Limits::default()).unwrap()
    }

    fn written(session: &Session) -> String {
        serde_json::to_string(session).unwrap()
    }

    #[test]
    fn every_member_is_kept_as_it_was_sent_and_in_its_place() {
        let text = r#"{"b":1.50,"a":{"z":1,"y":[ 2 ]},"messages":[],"b":null,"é":"\u00e9"}"#;
        let session = parse(text);
        assert_eq!(written(&session), text);
    }

    #[test]
    fn a_change_leaves_the_others_as_they_were() {
        let mut session = parse(r#"{"turn":1,"x":1.0,"mode":"plan","turn":2}"#);
        assert_eq!(session.number("turn"), Some(2_u64.into()));
        session.set("turn", &3).unwrap();
        session.set("updated", &1.5).unwrap();
        session.remove("mode");
        assert_eq!(
            written(&session),
            r#"{"turn":1,"x":1.0,"turn":3,"updated":1.5}"#
        );
        session.remove("turn");
        assert_eq!(session.number("turn"), None);
    }

    #[test]
    fn items_are_appended() {
        let mut session = parse(r#"{"messages":[ {"a":1.0} ],"trace":7}"#);
        session.append("messages", [1, 2]).unwrap();
        session.append("trace", ["x"]).unwrap();
        session.append("more", [(); 0]).unwrap();
        session.append("more", [true]).unwrap();
        assert_eq!(
            written(&session),
            r#"{"messages":[ {"a":1.0},1,2],"trace":["x"],"more":[true]}"#
        );
    }

    #[test]
    fn absent_null_and_mistyped_members_are_none() {
        let session = parse(r#"{"turn":"2","iteration":null,"updated":1.5,"mode":7}"#);
        assert_eq!(
            (session.number("turn"), session.number("iteration")),
            (None, None)
        );
        assert_eq!(session.number("updated").map(Number::as_f64), Some(1.5));
        assert_eq!(
            (session.text("mode"), session.get("messages")),
            (None, None)
        );
    }

    #[test]
    fn a_session_must_be_an_object() {
        for text in ["", "[]", "null", r#"{"a":1"#, r#"{"a":1} {}"#, "\"x\""] {
            assert!(Session::parse(text, &Limits::default()).is_err(), "{text}");
        }
        let few = Limits {
            max_items: 1,
            ..Limits::default()
        };
        assert!(Session::parse(r#"{"a":1,"b":2}"#, &few).is_err());
    }

    #[test]
    fn debug_output_is_redacted() {
        let session = parse(r#"{"messages":["hunter2"]}"#);
        assert_eq!(
            format!("{session:?}"),
            r#"Session { members: ["messages"], .. }"#
        );
    }
}
