//! A model of JetStream: buckets with revisions and age, and a stream of subjects that compares sequence
//! numbers, remembers ids and says what was written. It notices what must never be stored.

use std::collections::HashMap;

use rpc_core::Str;
use rpc_core::cluster::internals::{Operation, Reply};
use rpc_core::store::PublishReply;

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
struct Bucket {
    last: u64,
    keys: HashMap<Str, (Str, u64, Time)>,
}

impl Bucket {
    fn apply(
        &mut self,
        key: &str,
        node: &str,
        operation: &Operation,
        full: bool,
        now: Time,
    ) -> Reply {
        let found = self.keys.get(key);
        let revision = found.map_or(0, |(_, revision, _)| *revision);
        let (expected, kept) = match operation {
            Operation::Read | Operation::ReadNode { .. } => {
                return found.map_or(Reply::Missing, |(node, revision, _)| Reply::Found {
                    node: node.clone(),
                    revision: *revision,
                });
            }
            Operation::Create => (0, true),
            Operation::Update { revision } => (*revision, true),
            Operation::Delete { revision } => (*revision, false),
        };
        if full {
            return Reply::Refused;
        }
        if revision != expected {
            return Reply::Conflict;
        }
        self.last += 1;
        if kept {
            self.keys.insert(key.into(), (node.into(), self.last, now));
        } else {
            self.keys.remove(key);
        }
        Reply::Stored {
            revision: self.last,
        }
    }
}

#[derive(Default)]
pub struct Store {
    nodes: Bucket,
    names: Bucket,
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

    pub fn node(&mut self, key: &str, operation: &Operation, now: Time) -> Reply {
        self.nodes.keys.retain(|_, (_, _, at)| now < *at + LEASE);
        self.nodes.apply(key, key, operation, self.full, now)
    }

    /// An operation on the key of a session, by this node.
    pub fn name(&mut self, session: usize, node: &str, operation: &Operation, now: Time) -> Reply {
        if let Operation::ReadNode { node } = operation {
            return self.node(node, operation, now);
        }
        let key = ["s0", "s1"][session];
        self.names.apply(key, node, operation, self.full, now)
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
