//! How the records of logs are rows of a [`Table`], and what is read of them.

use std::ops::Bound;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::{BufMut, Bytes, BytesMut};

use super::{Row, Table, Which};
use crate::Str;
use crate::store::subject::{is_exact, overlap};
use crate::store::{Record, StoreError};

/// The first bytes of keys.
const LOG: u8 = b'l';
const LOG_COPY: u8 = b'm';
const COUNT: u8 = b'n';
const RECORD: u8 = b'r';
const SUBJECT: u8 = b's';
/// How many rows are read at once to find those whose subjects match.
const PAGE: usize = 64;
const LEAST: usize = 8;

/// The keys of what a log is, which is written twice. Subjects have no byte 0.
pub(super) fn log_keys(name: &str) -> [Vec<u8>; 2] {
    [LOG, LOG_COPY].map(|kind| [&[kind], name.as_bytes()].concat())
}

/// The name in such a key.
pub(super) fn log_name(key: &[u8]) -> Option<&str> {
    match key.split_first()? {
        (&LOG | &LOG_COPY, name) => std::str::from_utf8(name).ok(),
        _ => None,
    }
}

/// The key of how much a log has.
pub(super) fn count_key(log: u32) -> Vec<u8> {
    [&[COUNT], &log.to_be_bytes()[..]].concat()
}

fn key(kind: u8, log: u32, sequence: u64) -> Vec<u8> {
    let (log, sequence) = (log.to_be_bytes(), sequence.to_be_bytes());
    [&[kind], &log[..], &sequence].concat()
}

pub(super) fn record_key(log: u32, sequence: u64) -> Vec<u8> {
    key(RECORD, log, sequence)
}

pub(super) fn subject_key(log: u32, subject: &str, sequence: u64) -> Vec<u8> {
    let (log, sequence) = (log.to_be_bytes(), sequence.to_be_bytes());
    [&[SUBJECT], &log[..], subject.as_bytes(), &[0], &sequence].concat()
}

#[cfg(feature = "file-store")]
pub(super) fn is_count(key: &[u8]) -> bool {
    key.first() == Some(&COUNT)
}

/// The number of the log in the key of a record or a count.
pub(super) fn log_of(key: &[u8]) -> u32 {
    let number = key.get(1..5).and_then(<[u8]>::first_chunk);
    number.map_or(0, |it| u32::from_be_bytes(*it))
}

/// The number at the end of a key.
pub(super) fn sequence_of(key: &[u8]) -> u64 {
    key.last_chunk().map_or(0, |it| u64::from_be_bytes(*it))
}

/// The subject in the key of one.
pub(super) fn subject_of(key: &[u8]) -> &str {
    let subject = key.get(5..key.len().saturating_sub(9));
    std::str::from_utf8(subject.unwrap_or_default()).unwrap_or_default()
}

/// The keys of all records and subjects of a log.
pub(super) fn all_keys(log: u32) -> [Keys; 2] {
    let of = |kind| {
        (
            key(kind, log, 0)[..5].to_vec(),
            key(kind, log + 1, 0)[..5].to_vec(),
        )
    };
    [of(RECORD), of(SUBJECT)]
}

/// Keys from one up to another, which is excluded.
pub(super) type Keys = (Vec<u8>, Vec<u8>);

pub(super) fn record_keys(log: u32, after: u64) -> Keys {
    let [(_, end), ..] = all_keys(log);
    (record_key(log, after.saturating_add(1)), end)
}

pub(super) fn subject_keys(log: u32, subject: &str, after: u64) -> Keys {
    let mut end = subject_key(log, subject, 0);
    end.truncate(end.len() - 8);
    end[5 + subject.len()] = 1;
    (subject_key(log, subject, after.saturating_add(1)), end)
}

pub(super) fn all_logs() -> Keys {
    (vec![LOG], vec![LOG + 1])
}

/// The value of a record.
pub(super) fn encode(record: &Record, time: u64) -> Bytes {
    let (subject, id) = (record.subject.as_bytes(), record.id.as_bytes());
    let mut value = BytesMut::with_capacity(16 + subject.len() + id.len() + record.payload.len());
    value.put_u64(time);
    for text in [subject, id] {
        // Both are checked to be short.
        value.put_u32(u32::try_from(text.len()).unwrap_or(u32::MAX));
        value.put_slice(text);
    }
    value.put_slice(&record.payload);
    value.freeze()
}

/// A record, and when it was stored, in milliseconds since 1970.
pub(super) struct Timed {
    pub(super) record: Record,
    pub(super) time: u64,
}

/// # Errors
/// [`StoreError::Unreadable`].
pub(super) fn decode((key, value): &Row) -> Result<Timed, StoreError> {
    let sequence = sequence_of(key);
    let decode = |value: &Bytes| {
        let mut rest = value.clone();
        let take = |rest: &mut Bytes, len: usize| (rest.len() >= len).then(|| rest.split_to(len));
        let time = u64::from_be_bytes(take(&mut rest, 8)?.as_ref().try_into().ok()?);
        let mut text = || {
            let len = u32::from_be_bytes(take(&mut rest, 4)?.as_ref().try_into().ok()?);
            let text = take(&mut rest, len as usize)?;
            Some(Str::from(std::str::from_utf8(&text).ok()?))
        };
        let (subject, id) = (text()?, text()?);
        let record = Record {
            subject,
            sequence,
            id,
            payload: rest,
            time: time / 1_000,
        };
        Some(Timed { record, time })
    };
    let decoded = value.as_ref().and_then(decode);
    decoded.ok_or(StoreError::Unreadable { sequence })
}

/// What readers see of a log.
#[derive(Clone, Debug)]
pub(super) struct View {
    pub(super) table: Arc<dyn Table>,
    pub(super) log: u32,
    /// When it was made.
    pub(super) created: u128,
    pub(super) max_age: Option<u64>,
    /// What was stored until then has vanished, in milliseconds since 1970.
    pub(super) oldest: u64,
}

impl View {
    /// The record, unless it is too old.
    fn check(&self, row: &Row) -> Result<Option<Record>, StoreError> {
        let timed = decode(row)?;
        Ok(Some(timed.record).filter(|_| timed.time > self.oldest))
    }

    pub(super) fn get(&self, sequence: u64) -> Result<Option<Record>, StoreError> {
        let row = get(&*self.table, &record_key(self.log, sequence))?;
        row.map_or(Ok(None), |row| self.check(&row))
    }

    /// The row of the record that this key of a subject leads to; `None` if both were removed meanwhile.
    fn follow(&self, key: &[u8]) -> Result<Option<Row>, StoreError> {
        let sequence = sequence_of(key);
        let damaged = Err(StoreError::Unreadable { sequence });
        match get(&*self.table, &record_key(self.log, sequence))? {
            Some(row) if decode(&row)?.record.subject == subject_of(key) => Ok(Some(row)),
            None if get(&*self.table, key)?.is_none() => Ok(None),
            _ => damaged,
        }
    }

    pub(super) fn last(&self, subject: &str) -> Result<Option<Record>, StoreError> {
        let (from, to) = subject_keys(self.log, subject, 0);
        while let Some((key, _)) = last(&*self.table, (&from, &to))? {
            if let Some(row) = self.follow(&key)? {
                return self.check(&row);
            }
        }
        Ok(None)
    }

    /// The number of the last record that there is.
    pub(super) fn last_number(&self) -> Result<u64, StoreError> {
        let (from, to) = record_keys(self.log, 0);
        let last = last(&*self.table, (&from, &to))?;
        Ok(last.map_or(0, |(key, _)| sequence_of(&key)))
    }

    pub(super) fn read(
        &self,
        pattern: &str,
        mut after: u64,
        max: usize,
    ) -> Result<Vec<Record>, StoreError> {
        let mut records = Vec::new();
        let is_exact = is_exact(pattern);
        while records.len() < max {
            let (from, to) = match is_exact {
                true => subject_keys(self.log, pattern, after),
                false => record_keys(self.log, after),
            };
            let page = PAGE.min((max - records.len()).max(LEAST));
            let rows = self.table.range((&from, &to), Which::First, page)?;
            let is_end = rows.len() < page;
            for row in rows {
                after = sequence_of(&row.0);
                let row = match is_exact {
                    true => self.follow(&row.0)?,
                    false => Some(row),
                };
                let record = row.map_or(Ok(None), |row| self.check(&row))?;
                records.extend(record.filter(|it| is_exact || overlap(pattern, &it.subject)));
                if records.len() == max {
                    break;
                }
            }
            if is_end {
                break;
            }
        }
        Ok(records)
    }

    /// The last record of each subject that matches a pattern, in order; of damaged ones what `damaged` makes
    /// of them.
    pub(super) fn lasts(
        &self,
        pattern: &str,
        damaged: impl Fn(&str, u64) -> Result<Record, StoreError>,
    ) -> Result<Vec<Record>, StoreError> {
        let mut lasts = Vec::new();
        // What is before a wildcard is before it in all subjects.
        let prefix = pattern.split(['*', '>']).next().unwrap_or_default();
        let mut from = subject_key(self.log, prefix, 0);
        from.truncate(from.len() - 9);
        let [_, (_, end)] = all_keys(self.log);
        while let Some((key, _)) = self.table.range((&from, &end), Which::First, 1)?.pop() {
            let subject = subject_of(&key);
            if !subject.starts_with(prefix) {
                break;
            }
            if overlap(pattern, subject) {
                match self.last(subject) {
                    Err(StoreError::Unreadable { sequence }) => {
                        lasts.push(damaged(subject, sequence)?);
                    }
                    last => lasts.extend(last?),
                }
            }
            (_, from) = subject_keys(self.log, subject, 0);
        }
        lasts.sort_unstable_by_key(|record| record.sequence);
        Ok(lasts)
    }
}

/// The row with this key.
pub(super) fn get(table: &dyn Table, key: &[u8]) -> Result<Option<Row>, StoreError> {
    let after = [key, &[0]].concat();
    Ok(table.range((key, &after), Which::First, 1)?.pop())
}

pub(super) fn last(table: &dyn Table, keys: (&[u8], &[u8])) -> Result<Option<Row>, StoreError> {
    Ok(table.range(keys, Which::Last, 1)?.pop())
}

pub(in crate::store) fn bounds<'a>(
    (from, to): (&'a [u8], &'a [u8]),
) -> (Bound<&'a [u8]>, Bound<&'a [u8]>) {
    (Bound::Included(from), Bound::Excluded(to))
}

/// The system's time since 1970.
pub(super) fn system_time() -> Duration {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or_default()
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
