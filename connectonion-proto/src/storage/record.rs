//! [`Record`]: one line of the storage.

use rpc_core::encode::encode;
use rpc_core::json::lenient::{optional_object, or_default};
use rpc_core::json::parse;
use rpc_core::{DecodeError, Json, Limits, Str, words};
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::auth::{Address, whole};
use crate::hub::{Owner, Prompt};
use crate::id::SessionId;
use crate::limits::RESULT_TTL;
use crate::replay::Entry;

words! {
    /// The status of a session in its record.
    #[derive(Default)]
    pub enum RecordStatus {
        /// A run has started. The record never expires: the next host finds it, and the run becomes
        /// [interrupted](Self::Interrupted).
        "running" => Running,
        /// The agent waits for a human; the record has the session so far.
        "waiting_approval" => WaitingApproval,
        /// A run ended with a result.
        "done" => Done,
        /// A run ended with an error.
        "failed" => Failed,
        /// A run was ended by the end of its host.
        "interrupted" => Interrupted,
        /// The session exists; nothing ran since.
        #[default]
        "connected" => Connected,
        .. => Other,
    }
}

/// The stored state of a session: one line of JSON.
///
/// The first eight members are those of ConnectOnion's own hosts, in their order, so that each can
/// read the other's files. Three more belong to this crate, and are left out when empty. Times are in
/// seconds since 1970.
///
/// ```
/// use connectonion_proto::storage::{Record, RecordStatus};
///
/// let record = Record::new("abc", RecordStatus::Running, "hello", 1795293457.5);
/// assert_eq!(
///     record.to_line(),
///     concat!(
///         r#"{"session_id":"abc","status":"running","prompt":"hello","result":null,"#,
///         r#""session":null,"created":1795293457.5,"expires":1795379857.5,"#,
///         r#""duration_ms":null}"#
///     )
/// );
/// assert_eq!(Record::parse(&record.to_line())?, record);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Record {
    /// The session.
    pub session_id: SessionId,
    /// Its status.
    pub status: RecordStatus,
    /// The user's prompt.
    #[serde(default, deserialize_with = "or_default")]
    pub prompt: Str,
    /// The agent's answer.
    #[serde(default, deserialize_with = "text")]
    pub result: Option<Str>,
    /// The session object at the end of the run.
    #[serde(
        default,
        deserialize_with = "optional_object",
        serialize_with = "one_line"
    )]
    pub session: Option<Json>,
    /// When the run started.
    #[serde(serialize_with = "time")]
    pub created: f64,
    /// When the record may be forgotten; `None` is never.
    #[serde(serialize_with = "optional_time")]
    pub expires: Option<f64>,
    /// How long the run took, in milliseconds.
    #[serde(default, deserialize_with = "whole_number")]
    pub duration_ms: Option<u64>,
    /// The session's owner; `None` if the writer did not store owners.
    #[serde(default, deserialize_with = "owner", serialize_with = "owner_text")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<Owner>,
    /// Inputs that were acknowledged during the run, and may not have been read. If they are stored
    /// before the acknowledgement is sent, they survive the host.
    #[serde(default, deserialize_with = "or_default")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<Prompt>,
    /// How many times the run was begun again because its host had ended.
    #[serde(default, deserialize_with = "or_default")]
    #[serde(skip_serializing_if = "is_zero")]
    pub reruns: u32,
    /// The events of the interrupted run, if they are stored; not a part of the line.
    #[doc(hidden)]
    #[serde(skip)]
    pub events: Vec<Entry>,
}

impl Record {
    /// Creates a record without further contents, which expires after 24 hours.
    pub fn new(
        session_id: impl Into<SessionId>,
        status: RecordStatus,
        prompt: impl Into<Str>,
        created: f64,
    ) -> Self {
        Self {
            session_id: session_id.into(),
            status,
            prompt: prompt.into(),
            created,
            expires: Some(created + RESULT_TTL.as_secs_f64()),
            ..Self::default()
        }
    }

    /// Returns whether the record has expired at this time. Never during its run.
    pub(crate) fn is_expired(&self, now: f64) -> bool {
        let is_running = self.status == RecordStatus::Running;
        !is_running && self.expires.is_some_and(|expires| expires < now)
    }

    /// Adds what this record lacks from the one before it of the same session: the session object
    /// and the owner. Nothing is inherited from a session of another owner, or from an expired one.
    pub(crate) fn inherit(&mut self, before: Option<&Self>) {
        if let Some(before) = before.filter(|it| self.follows(it)) {
            self.session = self.session.take().or_else(|| before.session.clone());
            self.owner = self.owner.or(before.owner);
        }
    }

    /// Returns whether this record continues the session of the one before it.
    pub(crate) fn follows(&self, before: &Self) -> bool {
        let is_theirs = before.owner.is_none_or(|owner| self.is_of(owner));
        is_theirs && !before.is_expired(self.created)
    }

    /// Returns whether this owner may have the session.
    pub(crate) fn is_of(&self, owner: Owner) -> bool {
        self.owner.is_none_or(|it| it == owner)
    }

    /// Returns the line, which contains no line break.
    #[must_use]
    pub fn to_line(&self) -> String {
        // Texts and numbers are JSON.
        let line = encode(self).unwrap_or_default();
        line.as_str().to_owned()
    }

    /// Parses a line. Unknown members are ignored, and absent ones count as null, except
    /// `session_id`, `status` and `created`.
    ///
    /// # Errors
    /// [`DecodeError`] if the line is not a record; parsing it again fails again.
    pub fn parse(line: &str) -> Result<Self, DecodeError> {
        parse(line, &Limits::unlimited())
    }
}

/// Reads a text; any other value as its JSON.
fn text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Str>, D::Error> {
    let value = Option::<Json>::deserialize(from)?;
    Ok(value.map(|value| match value.as_str() {
        Some(text) => text.into(),
        None => value.into_text(),
    }))
}

/// Reads a number, which other programs write with a fraction.
fn whole_number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    Ok(Option::<f64>::deserialize(from)?.map(whole))
}

/// Reads an owner. An unreadable one makes the record unreadable: otherwise the session would have
/// no owner, and be open to all.
pub(crate) fn owner<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Owner>, D::Error> {
    let Some(text) = Option::<Str>::deserialize(from)? else {
        return Ok(None);
    };
    let owner = owner_of(&text).ok_or_else(|| D::Error::custom("expected an address"))?;
    Ok(Some(owner))
}

/// Returns the owner with this [name](owner_name).
pub(crate) fn owner_of(name: &str) -> Option<Owner> {
    match name {
        UNSIGNED => Some(Owner::Unsigned),
        name => Address::parse(name).ok().map(Owner::Key),
    }
}

/// Returns an owner as text.
pub(crate) fn owner_name(owner: Owner) -> Str {
    match owner {
        Owner::Key(address) => address.to_string().into(),
        Owner::Unsigned => Str::from_static(UNSIGNED),
    }
}

const UNSIGNED: &str = "unsigned";

pub(crate) fn owner_text<S: Serializer>(owner: &Option<Owner>, to: S) -> Result<S::Ok, S::Error> {
    owner.map(owner_name).serialize(to)
}

/// Writes JSON without line breaks: in JSON they are white space, and escaped in strings.
fn one_line<S: Serializer>(json: &Option<Json>, to: S) -> Result<S::Ok, S::Error> {
    match json {
        Some(json) if json.get().contains(['\n', '\r']) => {
            let line = json.get().replace(['\n', '\r'], " ");
            Json::new(&line).map_err(S::Error::custom)?.serialize(to)
        }
        json => json.serialize(to),
    }
}

/// Writes a time. JSON has no infinity.
fn time<S: Serializer>(time: &f64, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(if time.is_finite() { *time } else { 0.0 })
}

fn optional_time<S: Serializer>(time: &Option<f64>, to: S) -> Result<S::Ok, S::Error> {
    time.filter(|time| time.is_finite()).serialize(to)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}
