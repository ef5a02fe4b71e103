//! [`Data`]: the records of a log in memory, and how patterns match subjects.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use bytes::Bytes;
use tokio::time::Instant;

use crate::Str;
use crate::store::{LogConfig, LogState, Record, StoreError, Stored};

/// What a log holds.
#[derive(Clone, Debug)]
pub(super) struct Data {
    pub(super) config: LogConfig,
    pub(super) created: u128,
    /// The number of the last record that was ever stored.
    pub(super) last: u64,
    bytes: u64,
    records: BTreeMap<u64, (Instant, Record)>,
    /// The numbers of each subject's records.
    subjects: BTreeMap<Str, BTreeSet<u64>>,
    ids: HashMap<Str, u64>,
    /// The ids, and when they came, in that order.
    came: VecDeque<(Instant, Str)>,
}

impl Data {
    pub(super) fn new(config: LogConfig, created: u128) -> Self {
        Self {
            config,
            created,
            last: 0,
            bytes: 0,
            records: BTreeMap::new(),
            subjects: BTreeMap::new(),
            ids: HashMap::new(),
            came: VecDeque::new(),
        }
    }

    /// Forgets what is too old.
    pub(super) fn expire(&mut self, now: Instant) {
        let window = self.config.window;
        let window = self.config.max_age.map_or(window, |age| window.min(age));
        while let Some((at, id)) = self.came.front() {
            if now - *at < window {
                break;
            }
            self.ids.remove(id);
            self.came.pop_front();
        }
        let Some(age) = self.config.max_age else {
            return;
        };
        while let Some((&sequence, (at, _))) = self.records.first_key_value() {
            if now - *at < age {
                return;
            }
            self.remove(sequence);
        }
    }

    /// Stores a record under the next number. Returns what to answer, and the number of the record before it
    /// with the same subject.
    pub(super) fn append(
        &mut self,
        now: Instant,
        mut record: Record,
        expected: Option<u64>,
    ) -> Result<(Stored, u64), StoreError> {
        if let Some(&sequence) = self.ids.get(&record.id) {
            let is_duplicate = true;
            return Ok((
                Stored {
                    sequence,
                    is_duplicate,
                },
                0,
            ));
        }
        let numbers = self.subjects.get(&record.subject);
        let previous = numbers.and_then(BTreeSet::last).copied().unwrap_or(0);
        if expected.is_some_and(|expected| expected != previous) {
            return Err(StoreError::Conflict);
        }
        let is_surplus = |them: &&BTreeSet<u64>| {
            (self.config.max_per_subject).is_some_and(|max| them.len() as u64 >= max)
        };
        let surplus = numbers.filter(is_surplus).and_then(BTreeSet::first);
        let surplus = surplus.copied();
        let freed = surplus.map_or(0, |sequence| size(&self.records[&sequence].1));
        let bytes = self.bytes - freed + size(&record);
        if self.config.max_bytes.is_some_and(|max| bytes > max) {
            return Err(full("the log has all the bytes that it may have"));
        }
        if let Some(sequence) = surplus {
            self.remove(sequence);
        }
        self.last += 1;
        let sequence = self.last;
        record.sequence = sequence;
        if !record.id.is_empty() {
            self.ids.insert(record.id.clone(), sequence);
            self.came.push_back((now, record.id.clone()));
        }
        self.bytes += size(&record);
        let numbers = self.subjects.entry(record.subject.clone()).or_default();
        numbers.insert(sequence);
        self.records.insert(sequence, (now, record));
        let max = self.config.max_records.unwrap_or(u64::MAX);
        while self.records.len() as u64 > max
            && let Some((&first, _)) = self.records.first_key_value()
        {
            self.remove(first);
        }
        let is_duplicate = false;
        Ok((
            Stored {
                sequence,
                is_duplicate,
            },
            previous,
        ))
    }

    fn remove(&mut self, sequence: u64) {
        let Some((_, record)) = self.records.remove(&sequence) else {
            return;
        };
        self.bytes -= size(&record);
        if let Some(numbers) = self.subjects.get_mut(&record.subject) {
            numbers.remove(&sequence);
            if numbers.is_empty() {
                self.subjects.remove(&record.subject);
            }
        }
    }

    pub(super) fn get(&self, sequence: u64) -> Option<Record> {
        self.records
            .get(&sequence)
            .map(|(_, record)| record.clone())
    }

    pub(super) fn last(&self, subject: &str) -> Option<Record> {
        self.get(*self.subjects.get(subject)?.last()?)
    }

    /// The records after this number whose subjects match a pattern, in order.
    pub(super) fn read<'a>(
        &'a self,
        pattern: &'a str,
        after: u64,
    ) -> impl Iterator<Item = &'a Record> {
        let later = self.records.range(after.saturating_add(1)..);
        later
            .map(|(_, (_, record))| record)
            .filter(move |record| overlap(pattern, &record.subject))
    }

    /// The last record of each subject that matches a pattern, in order.
    pub(super) fn heads(&self, pattern: &str) -> Vec<Record> {
        let matching = self.subjects.iter().filter(|(it, _)| overlap(pattern, it));
        let lasts: BTreeSet<u64> = matching
            .filter_map(|(_, them)| them.last().copied())
            .collect();
        lasts.into_iter().filter_map(|it| self.get(it)).collect()
    }

    pub(super) fn purge(&mut self, pattern: &str, before: u64) -> u64 {
        let matching = self.read(pattern, 0).map(|record| record.sequence);
        let removed: Vec<u64> = matching.take_while(|it| *it < before).collect();
        for &sequence in &removed {
            self.remove(sequence);
        }
        removed.len() as u64
    }

    pub(super) fn state(&self) -> LogState {
        LogState {
            created: self.created,
            first: self.records.keys().next().map_or(self.last + 1, |it| *it),
            last: self.last,
            records: self.records.len() as u64,
            bytes: self.bytes,
            subjects: self.subjects.len() as u64,
        }
    }
}

/// The bytes that a record takes.
fn size(record: &Record) -> u64 {
    (record.subject.len() + record.id.len() + record.payload.len()) as u64
}

pub(super) fn full(message: &str) -> StoreError {
    let message = message.to_owned();
    StoreError::Full { message }
}

/// Whether some subject matches both patterns. A subject is the pattern of itself.
pub(super) fn overlap(one: &str, other: &str) -> bool {
    let mut tokens = other.split('.');
    for part in one.split('.') {
        match (part, tokens.next()) {
            (">", Some(_)) | (_, Some(">")) => return true,
            ("*", Some(_)) | (_, Some("*")) => {}
            (part, Some(token)) if part == token => {}
            _ => return false,
        }
    }
    tokens.next().is_none()
}

/// The subject on which a record of this subject is published.
pub(super) fn feed(config: &LogConfig, subject: &str) -> Option<Str> {
    let feed = config.feed.as_deref()?;
    let parts = config.subjects.split('.').zip(subject.split('.'));
    let mut stars = parts
        .filter(|(part, _)| *part == "*")
        .map(|(_, token)| token);
    let tokens = feed.split('.').map(|part| match part {
        "*" => stars.next().unwrap_or(part),
        part => part,
    });
    Some(tokens.collect::<Vec<_>>().join(".").into())
}

/// An empty payload in place of the record's.
pub(super) fn without_payload(mut record: Record) -> Record {
    record.payload = Bytes::new();
    record
}
