//! [`Journal`]: the records and events of sessions in a log.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rpc_core::cluster::Fence;
use rpc_core::net::entropy;
use rpc_core::store::{self, Expect, Log, StoreError, token};
use tokio::time::sleep;

use super::node::Node;
use super::part::{Kind, Part, Parts, decode_events};
use crate::replay::Entry;
use crate::storage::short::{self, has_session, is_whole};
use crate::storage::{Record, RecordStatus, StorageError};

/// The bytes of a message beside its part of a record: its subject, headers and first line.
const ENVELOPE: usize = 2048;
/// The longest part of a record.
const MAX_PART: usize = 512 * 1024;
/// How many messages are read at once.
const PAGE: usize = 64;
/// How long to wait before what has no answer is repeated.
const PAUSE: Duration = Duration::from_millis(100);

/// A log with a subject for each session.
pub(super) struct Journal {
    log: Arc<dyn Log>,
    max_part_bytes: usize,
    /// The age from which all of a session is written again, before it vanishes.
    max_age: Duration,
}

/// What an owner knows of the messages of its session.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) fence: Fence,
    /// The last record, completed by those before it, without events.
    record: Option<Record>,
    /// The events of its interrupted run, if they were read.
    events: Vec<Entry>,
    /// The bytes of the last line with all of the session, and of all that follows.
    size: u64,
    /// When that line was stored, in seconds since 1970.
    since: f64,
}

impl Known {
    pub(super) const fn new(fence: Fence) -> Self {
        Self {
            fence,
            record: None,
            events: Vec::new(),
            size: 0,
            since: 0.0,
        }
    }

    /// Notes a line that was written for a record. Returns whether nothing before it is needed.
    pub(super) fn wrote(&mut self, record: &Record, line: &str) -> bool {
        let mut record = Record {
            events: Vec::new(),
            ..record.clone()
        };
        record.inherit(self.record.as_ref());
        let began = record.created;
        self.record = Some(record);
        self.is_whole(line, began)
    }

    fn is_whole(&mut self, line: &str, at: f64) -> bool {
        let is_whole = is_whole(line);
        if is_whole {
            (self.size, self.since) = (line.len() as u64, at);
        }
        is_whole
    }

    /// Takes a line that was read, of a record or of events.
    fn read(&mut self, kind: Kind, line: &str, time: f64) {
        self.size += line.len() as u64;
        if kind == Kind::Events {
            self.events.extend(decode_events(line));
            return;
        }
        if line.is_empty() {
            // It only says who the owner is.
            return;
        }
        let Some(record) = short::read(line, self.record.as_ref()) else {
            return tracing::warn!("a record of a session is not readable");
        };
        if !continues_run(&record, has_session(line)) {
            self.events.clear();
        }
        self.record = Some(record);
        self.is_whole(line, time);
    }

    /// Takes the events, and returns the record with them.
    pub(super) fn record_with_events(&mut self) -> Option<Record> {
        let events = std::mem::take(&mut self.events);
        let record = self.record.clone();
        record.map(|record| Record { events, ..record })
    }
}

impl Journal {
    pub(super) fn new(log: Arc<dyn Log>, max_payload: usize, max_age: Duration) -> Self {
        Self {
            log,
            max_part_bytes: max_payload.saturating_sub(ENVELOPE).clamp(1024, MAX_PART),
            max_age,
        }
    }

    /// Returns the line for a record, which may be written as `whole`.
    pub(super) fn line_of(&self, known: &Known, record: &Record, whole: String) -> String {
        let age = record.created - known.since;
        let is_due = record.session.is_some() && age > self.max_age.as_secs_f64();
        short::line_of(record, whole, known.record.as_ref(), known.size, is_due)
    }

    /// Reads all messages of a session. What was stored in parts and not to its end does not count.
    pub(super) async fn read(
        &self,
        node: &Node,
        session_id: &str,
        fence: Fence,
    ) -> Result<Known, StorageError> {
        let subject = subject(session_id);
        let mut known = Known::new(fence);
        let mut parts = Parts::default();
        let mut after = 0;
        loop {
            let page = retry(node, || self.log.read(&subject, after, PAGE)).await;
            let page = page.map_err(|error| failed(&error))?;
            for message in &page {
                after = message.sequence;
                let part = Part::parse(&message.payload);
                let owner = part.as_ref().map(|part| part.owner);
                let read = known.fence.read(after, owner);
                read.map_err(|_| StorageError::Fenced)?;
                if let Some((kind, line)) = part.and_then(|part| parts.take(&part)) {
                    let line = std::str::from_utf8(&line).unwrap_or_default();
                    known.read(kind, line, time_of(message));
                }
            }
            if page.len() < PAGE {
                return Ok(known);
            }
        }
    }

    /// Returns the number of the owner that has written the last message of a session.
    pub(super) async fn last_owner(
        &self,
        node: &Node,
        session_id: &str,
    ) -> Result<u64, StorageError> {
        let subject = subject(session_id);
        let last = retry(node, || self.log.last(&subject)).await;
        let last = last.map_err(|error| failed(&error))?;
        let part = last.as_ref().and_then(|last| Part::parse(&last.payload));
        Ok(part.map_or(0, |part| part.owner))
    }

    /// Appends a record or events in as many parts as it needs; an empty one only says who the owner is.
    /// Returns the number of the first part. `known` has the last message of the session afterwards, also
    /// after an error.
    pub(super) async fn append(
        &self,
        node: &Node,
        session_id: &str,
        known: &mut Known,
        kind: Kind,
        line: &str,
    ) -> Result<u64, StoreError> {
        let subject = subject(session_id);
        let of = line.len().div_ceil(self.max_part_bytes);
        let mut first = None;
        for number in 0..of.max(1) {
            let from = number * self.max_part_bytes;
            let to = line.len().min(from + self.max_part_bytes);
            let part = Part {
                kind,
                owner: known.fence.fence(),
                number,
                of,
                bytes: line.as_bytes().get(from..to).unwrap_or_default(),
            };
            let last = known.fence.expected();
            let stored = self.publish(node, &subject, last, part.encode()).await?;
            known.fence.stored(stored, true);
            first.get_or_insert(stored);
        }
        known.size += line.len() as u64;
        Ok(first.unwrap_or_default())
    }

    /// Stores one message after the message `last`. Repeats it until the outcome is known.
    async fn publish(
        &self,
        node: &Node,
        subject: &str,
        last: u64,
        payload: Bytes,
    ) -> Result<u64, StoreError> {
        let id = format!("{:016x}{:016x}", entropy(), entropy());
        let mut is_repeated = false;
        loop {
            // Who has no lease may have no claim either.
            if !node.is_valid() {
                return Err(StoreError::Conflict);
            }
            let expect = Expect {
                id: Some(&id),
                last: Some(last),
            };
            match self.log.append(subject, payload.clone(), expect).await {
                Ok(stored) => return Ok(stored.sequence),
                Err(StoreError::Conflict) if is_repeated => {
                    let found = retry(node, || self.log.last(subject)).await;
                    // An owner that cannot find out stops, as if it were fenced.
                    let found = found.map_err(|_| StoreError::Conflict)?;
                    let own = found.filter(|found| *found.id == *id);
                    return own.map(|own| own.sequence).ok_or(StoreError::Conflict);
                }
                Err(StoreError::Unavailable { message }) => {
                    tracing::debug!(message, "the store does not answer");
                    is_repeated = true;
                    sleep(PAUSE).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Purges the messages of a session before this one.
    pub(super) fn purge(
        &self,
        session_id: &str,
        before: u64,
    ) -> impl Future<Output = Result<(), StoreError>> + Send + 'static {
        let (log, subject) = (Arc::clone(&self.log), subject(session_id));
        async move { log.purge(&subject, before).await.map(drop) }
    }
}

/// Asks again without an answer, as long as this node is alive.
async fn retry<T, F>(node: &Node, ask: impl Fn() -> F) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    loop {
        match ask().await {
            Err(error) if error.is_retryable() && node.is_valid() => sleep(PAUSE).await,
            found => return found,
        }
    }
}

fn subject(session_id: &str) -> String {
    format!("{}.{}", super::SESSIONS, token(session_id))
}

#[expect(clippy::cast_precision_loss, reason = "seconds")]
fn time_of(message: &store::Record) -> f64 {
    message.time as f64
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

/// The error of a read, or of a write that was not done.
pub(super) fn failed(error: &StoreError) -> StorageError {
    let kind = match error {
        StoreError::Conflict => return StorageError::Fenced,
        StoreError::Full { .. } => io::ErrorKind::StorageFull,
        StoreError::Unavailable { .. } => io::ErrorKind::TimedOut,
        StoreError::Denied { .. } => io::ErrorKind::PermissionDenied,
        _ => io::ErrorKind::Other,
    };
    StorageError::Io {
        what: "store the session",
        kind,
        message: error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use rpc_core::Json;

    use super::*;
    use crate::session::Owner;

    const TURNS: usize = 200;

    /// The writer of a session, and what it has written.
    struct Writer {
        known: Known,
        lines: Vec<(Kind, String)>,
        /// What it knew after each line, and from which line on that was needed.
        after: Vec<(Option<Record>, usize)>,
        needed: usize,
    }

    impl Writer {
        fn new() -> Self {
            Self {
                known: Known::new(Fence::new(1)),
                lines: Vec::new(),
                after: Vec::new(),
                needed: 0,
            }
        }

        fn events(&mut self, text: &str) {
            let line = format!(r#"{{"type":"thinking","content":"{text}"}}"#);
            self.known.size += line.len() as u64;
            self.lines.push((Kind::Events, line));
            self.after.push((self.known.record.clone(), self.needed));
        }

        fn record(&mut self, record: &Record) {
            let before = self.known.record.as_ref();
            let line = short::line_of(record, record.to_line(), before, self.known.size, false);
            self.known.size += line.len() as u64;
            if self.known.wrote(record, &line) && record.status != RecordStatus::Running {
                self.needed = self.lines.len();
            }
            self.lines.push((Kind::Record, line));
            self.after.push((self.known.record.clone(), self.needed));
        }

        /// A prompt, some events, and the answer.
        fn turn(&mut self, turn: usize, messages: &mut Vec<String>) {
            let prompt = format!("{turn} {}", "question ".repeat(4));
            #[allow(clippy::cast_precision_loss)]
            let now = turn as f64;
            let mut record = Record::new("s", RecordStatus::Running, prompt.as_str(), now);
            record.owner = Some(Owner::Unsigned);
            self.record(&record);
            self.events("hm");
            messages.push(format!(r#"{{"role":"user","content":"{prompt}"}}"#));
            messages.push(format!(r#"{{"role":"assistant","content":"{turn}"}}"#));
            let all = messages.join(",");
            let session = format!(
                r#"{{"session_id":"s","messages":[{all}],"trace":[{all}],"turn":{turn},"updated":{now}}}"#
            );
            record.status = RecordStatus::Done;
            record.session = Some(Json::new(&session).unwrap());
            self.record(&record);
        }
    }

    #[test]
    fn a_prompt_costs_the_same_in_long_and_short_conversations() {
        let (mut writer, mut messages) = (Writer::new(), Vec::new());
        let mut bytes = Vec::new();
        for turn in 0..TURNS {
            writer.turn(turn, &mut messages);
            bytes.push(
                writer
                    .lines
                    .iter()
                    .map(|(_, line)| line.len())
                    .sum::<usize>(),
            );
        }
        let early = bytes[TURNS / 4];
        // Four times as many prompts, and half as much again for when all was written last.
        assert!(bytes[TURNS - 1] < early * 6, "{early} {}", bytes[TURNS - 1]);
        let kept = &writer.lines[writer.needed..];
        let kept: usize = kept.iter().map(|(_, line)| line.len()).sum();
        let session = writer.known.record.unwrap().session.unwrap();
        assert!(kept < 4 * session.get().len(), "{kept}");
    }

    #[test]
    fn a_new_owner_restores_the_state_after_any_record() {
        let (mut writer, mut messages) = (Writer::new(), Vec::new());
        for turn in 0..20 {
            writer.turn(turn, &mut messages);
        }
        for (last, (record, needed)) in writer.after.iter().enumerate() {
            // With what was purged by then, or not.
            for from in [0, *needed] {
                let mut next = Known::new(Fence::new(2));
                for (kind, line) in &writer.lines[from..=last] {
                    next.read(*kind, line, 0.0);
                }
                assert_eq!(next.record, *record, "{from} {last}");
            }
        }
        assert!(writer.needed > 0);
    }

    #[test]
    fn events_belong_to_the_run_that_has_not_ended() {
        let (mut writer, mut messages) = (Writer::new(), Vec::new());
        writer.turn(1, &mut messages);
        writer.record(&Record::new("s", RecordStatus::Running, "next", 2.0));
        writer.events("of the next run");
        let mut next = Known::new(Fence::new(2));
        for (kind, line) in &writer.lines {
            next.read(*kind, line, 0.0);
        }
        let found = next.record_with_events().unwrap();
        assert_eq!((&*found.prompt, found.events.len()), ("next", 1));
        assert!(found.session.is_some());
    }
}
