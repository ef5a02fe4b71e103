//! [`Record`]: one line of the storage.

use rpc_core::encode::encode_into;
use rpc_core::json::lenient::{optional_object, or_default};
use rpc_core::json::parse;
use rpc_core::{DecodeError, Json, Limits, Str, words};
use serde::de::Error;
use serde::{Deserialize, Deserializer};

use crate::auth::Address;
use crate::limits::RESULT_TTL;
use crate::session::{Owner, RuntimeInput};

words! {
    /// What a record says of its session.
    pub enum RecordStatus {
        /// A run began. It never expires: see [`Storage::recover`](super::Storage::recover).
        "running" => Running,
        /// The agent waits for a human, with the session as it is so far.
        "waiting_approval" => WaitingApproval,
        /// A run ended with a result.
        "done" => Done,
        /// A run ended with an error.
        "failed" => Failed,
        /// A run ended with its host.
        "interrupted" => Interrupted,
        /// The session is there; nothing ran since.
        "connected" => Connected,
        .. => Other,
    }
}

/// What is stored of a session: one line of JSON.
///
/// The first eight members are those of ConnectOnion's own hosts, in their order, so that both read
/// each other's files. Two more are ours, and left out when there is nothing to say. Times are in
/// seconds since 1970.
///
/// ```
/// use connectonion_proto::storage::Record;
///
/// let record = Record::running("abc", "hello", 1795293457.5);
/// assert_eq!(
///     record.to_line(),
///     concat!(
///         r#"{"session_id": "abc", "status": "running", "prompt": "hello", "result": null, "#,
///         r#""session": null, "created": 1795293457.5, "expires": 1795379857.5, "#,
///         r#""duration_ms": null}"#
///     )
/// );
/// assert_eq!(Record::parse(&record.to_line())?, record);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct Record {
    /// The session.
    pub session_id: Str,
    /// What is said of it.
    pub status: RecordStatus,
    /// What the user asked for.
    #[serde(default, deserialize_with = "or_default")]
    pub prompt: Str,
    /// What the agent answered.
    #[serde(default, deserialize_with = "text")]
    pub result: Option<Str>,
    /// The session object, as it was at the end of the run.
    #[serde(default, deserialize_with = "optional_object")]
    pub session: Option<Json>,
    /// When the run began.
    pub created: f64,
    /// When the record may be forgotten; `None` is never.
    pub expires: Option<f64>,
    /// How long the run took, in milliseconds.
    #[serde(default, deserialize_with = "whole")]
    pub duration_ms: Option<u64>,
    /// Who the session belongs to; `None` if the writer did not know owners.
    #[serde(default, deserialize_with = "owner")]
    pub owner: Option<Owner>,
    /// Inputs that were acknowledged while the agent ran, and may not have been read.
    #[serde(default, deserialize_with = "or_default")]
    pub inputs: Vec<RuntimeInput>,
}

impl Record {
    /// A record that says nothing but this, and expires after [`RESULT_TTL`].
    pub fn new(
        session_id: impl Into<Str>,
        status: RecordStatus,
        prompt: impl Into<Str>,
        created: f64,
    ) -> Self {
        Self {
            session_id: session_id.into(),
            status,
            prompt: prompt.into(),
            result: None,
            session: None,
            created,
            expires: Some(created + RESULT_TTL.as_secs_f64()),
            duration_ms: None,
            owner: None,
            inputs: Vec::new(),
        }
    }

    /// A run begins.
    pub fn running(session_id: impl Into<Str>, prompt: impl Into<Str>, created: f64) -> Self {
        Self::new(session_id, RecordStatus::Running, prompt, created)
    }

    /// The record of the same run, now that it ended with a result.
    #[must_use]
    pub fn done(mut self, result: impl Into<Str>, duration_ms: u64) -> Self {
        self.status = RecordStatus::Done;
        self.result = Some(result.into());
        self.duration_ms = Some(duration_ms);
        self.inputs.clear();
        self
    }

    /// The record of the same run, now that it ended with an error or its host.
    #[must_use]
    pub fn with_status(mut self, status: RecordStatus) -> Self {
        self.status = status;
        self
    }

    /// Sets the session object.
    #[must_use]
    pub fn with_session(mut self, session: Option<Json>) -> Self {
        self.session = session;
        self
    }

    /// Sets when the record may be forgotten.
    #[must_use]
    pub const fn with_expires(mut self, expires: Option<f64>) -> Self {
        self.expires = expires;
        self
    }

    /// Sets who the session belongs to.
    #[must_use]
    pub const fn with_owner(mut self, owner: Option<Owner>) -> Self {
        self.owner = owner;
        self
    }

    /// Sets the inputs that were acknowledged. Store them before the acknowledgement is sent, and
    /// they survive the host.
    #[must_use]
    pub fn with_inputs(mut self, inputs: Vec<RuntimeInput>) -> Self {
        self.inputs = inputs;
        self
    }

    /// Whether the record may be forgotten at this time. Never while its run goes on.
    #[must_use]
    pub fn is_expired(&self, now: f64) -> bool {
        is_expired(&self.status, self.expires, now)
    }

    /// Takes over what this record does not say itself, from the one before it of the same session:
    /// the session object and the owner. Nothing from a session of somebody else, or from one that had
    /// expired.
    pub(super) fn inherit(&mut self, before: Self) {
        if may_inherit(self.owner, before.owner) && !before.is_expired(self.created) {
            self.session = self.session.take().or(before.session);
            self.owner = self.owner.or(before.owner);
        }
    }

    /// The line, without a line break at its end or anywhere in it.
    #[must_use]
    pub fn to_line(&self) -> String {
        let mut line = String::new();
        let mut separator = "{";
        let mut name = |line: &mut String, name: &str| {
            line.push_str(separator);
            separator = ", ";
            line.extend(["\"", name, "\": "]);
        };
        name(&mut line, "session_id");
        write_str(&mut line, &self.session_id);
        name(&mut line, "status");
        write_str(&mut line, self.status.name());
        name(&mut line, "prompt");
        write_str(&mut line, &self.prompt);
        name(&mut line, "result");
        write_or_null(&mut line, self.result.as_ref(), |line, it| {
            write_str(line, it);
        });
        name(&mut line, "session");
        write_or_null(&mut line, self.session.as_ref(), write_json);
        name(&mut line, "created");
        write_time(&mut line, &self.created);
        name(&mut line, "expires");
        let expires = self.expires.filter(|time| time.is_finite());
        write_or_null(&mut line, expires.as_ref(), write_time);
        name(&mut line, "duration_ms");
        write_or_null(&mut line, self.duration_ms.as_ref(), |line, it| {
            line.push_str(&it.to_string());
        });
        if let Some(owner) = &self.owner {
            name(&mut line, "owner");
            write_str(&mut line, &owner_text(owner));
        }
        if !self.inputs.is_empty() {
            name(&mut line, "inputs");
            write_inputs(&mut line, &self.inputs);
        }
        line.push('}');
        line
    }

    /// Reads a line. Members that are not known are ignored, and absent ones are null but for
    /// `session_id`, `status` and `created`.
    ///
    /// # Errors
    /// [`DecodeError`] if the line is no record; reading it again fails again.
    pub fn parse(line: &str) -> Result<Self, DecodeError> {
        // Lines are bounded where they are read from a file.
        let limits = Limits::default().with_max_message_bytes(usize::MAX);
        parse(line, &limits)
    }
}

/// Whether a record of this status may be forgotten.
pub(super) fn is_expired(status: &RecordStatus, expires: Option<f64>, now: f64) -> bool {
    *status != RecordStatus::Running && expires.is_some_and(|expires| expires < now)
}

/// Whether a record goes on with the session of the record before it.
pub(super) fn may_inherit(owner: Option<Owner>, before: Option<Owner>) -> bool {
    owner.is_none() || before.is_none() || owner == before
}

/// A text; of another value its JSON.
fn text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Str>, D::Error> {
    let value = Option::<Json>::deserialize(from)?;
    Ok(value.map(|value| match value.as_str() {
        Some(text) => text.into(),
        None => value.into_text(),
    }))
}

/// A number, which other programs write with a fraction.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "conversions from floats saturate"
)]
fn whole<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    Ok(Option::<f64>::deserialize(from)?.map(|number| number as u64))
}

/// An owner that cannot be read makes the record unreadable: else it would be nobody's, and
/// anybody's.
fn owner<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Owner>, D::Error> {
    let Some(text) = Option::<Str>::deserialize(from)? else {
        return Ok(None);
    };
    if text == UNSIGNED {
        return Ok(Some(Owner::Unsigned));
    }
    let address = Address::parse(&text).map_err(|_| D::Error::custom("expected an address"))?;
    Ok(Some(Owner::Key(address)))
}

fn write_str(line: &mut String, text: &str) {
    // A text is always JSON.
    let _ = encode_into(text, line);
}

fn write_or_null<T>(line: &mut String, value: Option<&T>, write: impl Fn(&mut String, &T)) {
    match value {
        Some(value) => write(line, value),
        None => line.push_str("null"),
    }
}

/// In JSON line breaks are white space: inside of strings they are escaped.
fn write_json(line: &mut String, json: &Json) {
    let pieces = json.get().split(['\n', '\r']);
    line.extend(pieces.flat_map(|piece| [piece, " "]));
    // The space after the last piece.
    line.pop();
}

/// Always with a point, as other hosts write times. JSON has no infinity.
fn write_time(line: &mut String, time: &f64) {
    let time = if time.is_finite() { *time } else { 0.0 };
    line.push_str(&format!("{time:?}"));
}

fn write_inputs(line: &mut String, inputs: &[RuntimeInput]) {
    let mut separator = "[";
    for input in inputs {
        line.push_str(separator);
        separator = ", ";
        line.push_str("{\"id\": ");
        write_str(line, input.id.as_str());
        line.push_str(", \"prompt\": ");
        write_str(line, &input.prompt);
        if !input.images.is_empty() {
            line.push_str(", \"images\": ");
            // A list of texts is always JSON.
            let _ = encode_into(&input.images, line);
        }
        line.push('}');
    }
    line.push(']');
}

const UNSIGNED: &str = "unsigned";

fn owner_text(owner: &Owner) -> String {
    match owner {
        Owner::Unsigned => UNSIGNED.to_owned(),
        Owner::Key(address) => address.to_string(),
    }
}
