//! [`State`]: what the entries of a session add up to, and how they are written.

use bytes::Bytes;
use rpc_core::Json;
use rpc_core::json::find_member;
use rpc_core::store::{Session, SessionEntry, SessionHead, SessionState};

use crate::auth::whole;
use crate::frame::Replay;
use crate::replay::Entry;
use crate::storage::{Record, RecordStatus, entry, owner_name, owner_of};

/// What is known of a session.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    /// The last record, completed by those before it, without events.
    pub(crate) record: Option<Record>,
    /// The events of a run that has not ended, as far as they were read.
    pub(crate) events: Vec<Entry>,
}

impl State {
    /// The state after this record: what is written is not read again.
    pub(crate) const fn of(record: Option<Record>) -> Self {
        let events = Vec::new();
        Self { record, events }
    }
}

impl SessionState for State {
    fn apply(&mut self, entry: &SessionEntry, has_gap: bool) -> bool {
        let Some(text) = std::str::from_utf8(&entry.body).ok().filter(|_| !has_gap) else {
            return false;
        };
        if text.is_empty() {
            if let Some(record) = &mut self.record {
                take_head(record, &entry.head);
            }
        } else if text.starts_with('\n') {
            self.events.extend(decode_events(text));
        } else {
            let Some(record) = entry::read(text, self.record.as_ref()) else {
                return false;
            };
            if !continues_run(&record, entry::has_session(text)) {
                self.events.clear();
            }
            self.record = Some(record);
        }
        true
    }
}

/// Returns what is left of a session.
pub(crate) fn found(session: &Session<State>) -> Option<Record> {
    let state = session.state()?;
    let mut record = state.record.clone()?;
    if session.is_broken() {
        // What came last is not known; the client may have it.
        take_head(&mut record, session.head());
        record.status = RecordStatus::Connected;
        record.inputs.clear();
    } else {
        record.events.clone_from(&state.events);
    }
    Some(record)
}

/// Returns the head of a session with this record.
pub(crate) fn head_of(record: &Record) -> SessionHead {
    let has_ended = record.status != RecordStatus::Running;
    let expires = record.expires.filter(|_| has_ended);
    SessionHead {
        owner: record.owner.map(owner_name).unwrap_or_default(),
        expires: expires.map(|at| whole(at.ceil())),
        data: Bytes::copy_from_slice(record.status.name().as_bytes()),
    }
}

/// Whether a run had not ended.
pub(crate) fn is_running(head: &SessionHead) -> bool {
    &*head.data == RecordStatus::Running.name().as_bytes()
}

#[expect(clippy::cast_precision_loss, reason = "seconds")]
fn take_head(record: &mut Record, head: &SessionHead) {
    if let Ok(status) = std::str::from_utf8(&head.data) {
        record.status = rpc_core::Str::from(status).into();
    }
    record.owner = owner_of(&head.owner);
    if !is_running(head) {
        record.expires = head.expires.map(|at| at as f64);
    }
}

/// Returns whether the events before this record belong to its run: it did not begin here, or it is run
/// again. `has_session`: whether it came with its session.
fn continues_run(record: &Record, has_session: bool) -> bool {
    match record.status {
        RecordStatus::Running => !has_session || record.reruns > 0,
        RecordStatus::Interrupted => true,
        _ => false,
    }
}

/// Encodes events: each is one line, because JSON of this crate has no line breaks.
pub(crate) fn encode_events(events: &[Entry]) -> String {
    let lines = events
        .iter()
        .map(|event| format!("\n{}", event.text().as_str()));
    lines.collect()
}

/// Decodes events, with the ids that are in them. Leaves out what does not decode.
fn decode_events(lines: &str) -> impl Iterator<Item = Entry> {
    let lines = lines.lines().filter(|line| line.starts_with('{'));
    lines.map(|line| {
        let id = find_member(line, "id");
        let id = id.as_ref().and_then(Json::as_str);
        Entry::new(line.into(), id.map(|id| (&*id).into()), Replay::Whole)
    })
}
