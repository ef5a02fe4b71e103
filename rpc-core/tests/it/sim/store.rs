//! A model of JetStream: buckets with revisions and age, and a stream of subjects that compares sequence
//! numbers, remembers ids and says what was written. It notices what must never be stored.

use std::collections::HashMap;

use bytes::Bytes;
use rpc_core::store::StoreError;

use super::keys::{KeyCall, KeyReply, Operation};
use super::publish::PublishReply;
use super::world::{Break, SECOND, Time};

/// The first subjects are channels, the others logs of sessions.
pub const CHANNELS: usize = 2;
pub const SESSIONS: usize = 2;

/// How long ids are remembered.
const WINDOW: Time = 120 * SECOND;
/// How long a node's key lives.
pub const LEASE: Time = 10 * SECOND;

/// What a record says. The number is that of a client's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    Chat(u32),
    /// Who writes the log from here on.
    Owner,
    Prompt(u32),
    /// The answer to a prompt, or that there will be none.
    Final(u32),
}

#[derive(Clone, Copy, Debug)]
pub struct Record {
    pub sequence: u64,
    /// The number of the writer's ownership, 0 in channels.
    pub fence: u64,
    pub body: Body,
}

/// Something to be stored.
#[derive(Clone, Copy, Debug)]
pub struct Draft {
    pub subject: usize,
    pub id: u64,
    pub fence: u64,
    pub body: Body,
    pub expected: Option<u64>,
}

#[derive(Default)]
pub struct Store {
    /// The values of keys, their revisions, and when they were written.
    keys: HashMap<String, (Bytes, u64, Time)>,
    last_revision: u64,
    last: u64,
    subjects: [Vec<Record>; CHANNELS + SESSIONS],
    ids: HashMap<u64, (u64, Time)>,
    /// The greatest number of an owner that has begun to work.
    begun: [u64; CHANNELS + SESSIONS],
    pub full: bool,
    pub broken: Break,
    /// What must not have happened.
    pub violation: Option<String>,
}

impl Store {
    pub fn new(broken: Break) -> Self {
        Self {
            broken,
            ..Self::default()
        }
    }

    fn violated(&mut self, what: String) {
        self.violation.get_or_insert(what);
    }

    /// Reads or writes the key of a node or a session.
    pub fn key(&mut self, call: KeyCall, now: Time) -> KeyReply {
        self.keys
            .retain(|key, (.., at)| !key.starts_with("nodes") || now < *at + LEASE);
        let found = self.keys.get(&call.subject);
        let known = found.map_or(0, |(_, revision, _)| *revision);
        let (expected, value) = match call.operation {
            Operation::Read => {
                return Ok(found.map(|(value, revision, _)| (value.clone(), *revision)));
            }
            Operation::Write { value, revision } => (revision, value),
            Operation::Remove { revision } => {
                let removed = self
                    .keys
                    .extract_if(|key, _| *key == call.subject && known == revision);
                return Ok(removed
                    .last()
                    .map(|(_, (value, revision, _))| (value, revision)));
            }
        };
        if self.full {
            let message = String::new();
            return Err(StoreError::Full { message });
        }
        if known != expected {
            return Err(StoreError::Conflict);
        }
        self.last_revision += 1;
        let new = (value.clone(), self.last_revision, now);
        self.keys.insert(call.subject, new);
        Ok(Some((value, self.last_revision)))
    }

    /// Stores a draft. The record, if it is new, with the number of the one before it.
    pub fn publish(&mut self, draft: Draft, now: Time) -> (PublishReply, Option<(Record, u64)>) {
        if let Some((sequence, at)) = self.ids.get(&draft.id)
            && now < at + WINDOW
            && self.broken != Break::Dedup
        {
            let sequence = *sequence;
            return (PublishReply::Stored { sequence }, None);
        }
        if self.full {
            return (PublishReply::Refused, None);
        }
        let previous = self.last_of(draft.subject);
        if draft.expected.is_some_and(|expected| expected != previous)
            && self.broken != Break::Fence
        {
            return (PublishReply::Conflict, None);
        }
        self.last += 1;
        let record = Record {
            sequence: self.last,
            fence: draft.fence,
            body: draft.body,
        };
        self.look_at(draft.subject, record);
        self.subjects[draft.subject].push(record);
        self.ids.insert(draft.id, (self.last, now));
        let reply = PublishReply::Stored {
            sequence: self.last,
        };
        (reply, Some((record, previous)))
    }

    fn look_at(&mut self, subject: usize, record: Record) {
        if record.body != Body::Owner
            && self.subjects[subject]
                .iter()
                .any(|other| other.body == record.body)
        {
            self.violated(format!("doubled: {record:?}"));
        }
        let begun = self.begun[subject];
        if record.fence < begun {
            self.violated(format!("two writers: {record:?} after {begun} has begun"));
        }
        if record.body == Body::Owner {
            self.begin(subject, record.fence);
        }
    }

    /// Notes that the owner with this number writes from now on.
    pub fn begin(&mut self, subject: usize, fence: u64) {
        self.begun[subject] = self.begun[subject].max(fence);
    }

    pub fn last_of(&self, subject: usize) -> u64 {
        self.subjects[subject]
            .last()
            .map_or(0, |record| record.sequence)
    }

    /// The records of a subject after this number.
    pub fn after(&self, subject: usize, after: u64) -> &[Record] {
        let records = &self.subjects[subject];
        &records[records.partition_point(|record| record.sequence <= after)..]
    }

    pub fn has(&self, subject: usize, body: Body) -> bool {
        self.subjects[subject]
            .iter()
            .any(|record| record.body == body)
    }
}
