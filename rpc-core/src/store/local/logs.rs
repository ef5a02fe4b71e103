//! [`Logs`]: what is appended and removed, in transactions of several requests.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use super::head::{Count, Head, heads};
use super::hub::{feed, message};
use super::rows::{
    Keys, Timed, View, all_keys, bounds, count_key, decode, encode, last, log_keys, log_of, millis,
    record_key, record_keys, sequence_of, subject_key, subject_keys, subject_of, system_time,
};
use super::{Changes, Row, Table, Which};
use crate::Str;
use crate::store::subject::{check_in, check_same, is_exact, overlap};
use crate::store::{LogConfig, LogState, Message, Position, Record, StoreError, Stored};

/// What a virtual clock says at its start, since 1970: the same in each run.
const START: Duration = Duration::from_secs(1_800_000_000);
/// How many records are read at a time.
const PAGE: usize = 64;
/// How many records are purged in one write, so that others do not wait for long.
const PURGED: usize = 512;
/// Of how many subjects of a log the last numbers are known.
const LASTS: usize = 1024;
/// The longest subject or id, in bytes.
const MAX_NAME: usize = 16 * 1024;

/// All logs of a table: the one who writes there.
#[derive(Debug)]
pub(super) struct Logs {
    table: Arc<dyn Table>,
    /// When the clock began that a test may pause; the system's without.
    pub(super) clock: Option<Instant>,
    pub(super) is_full: bool,
    is_loaded: bool,
    /// Why nothing can be written of what has changed: a part of it is missing.
    broken: Option<StoreError>,
    /// When the last log was made.
    made: u128,
    logs: BTreeMap<String, Data>,
    /// What is written by [`commit`](Self::commit), and told then.
    changes: Changes,
    news: Vec<Message>,
}

/// A log that a node has opened.
#[derive(Clone, Debug)]
pub(super) struct OpenLog {
    pub(super) name: String,
    pub(super) config: LogConfig,
}

/// A log.
#[derive(Debug)]
struct Data {
    head: Head,
    is_changed: bool,
    /// When something may vanish next, in milliseconds since 1970.
    next_expiry: u64,
    ids: HashMap<Str, u64>,
    /// The ids with the times and numbers of their records, in that order.
    came: VecDeque<(u64, Str, u64)>,
    /// The last numbers of subjects that were written lately.
    lasts: HashMap<Str, u64>,
}

impl Data {
    fn new(head: Head) -> Self {
        Self {
            head,
            is_changed: false,
            next_expiry: 0,
            ids: HashMap::new(),
            came: VecDeque::new(),
            lasts: HashMap::new(),
        }
    }

    /// How long ids are remembered, in milliseconds.
    fn window(&self) -> u64 {
        let config = &self.head.config;
        millis(config.window.min(config.max_age.unwrap_or(Duration::MAX)))
    }
}

impl Logs {
    pub(super) fn new(table: Arc<dyn Table>, is_virtual: bool) -> Self {
        Self {
            table,
            clock: is_virtual.then(Instant::now),
            is_full: false,
            is_loaded: false,
            broken: None,
            made: 0,
            logs: BTreeMap::new(),
            changes: Changes::new(),
            news: Vec::new(),
        }
    }

    /// The names of the logs, and their configurations.
    pub(super) fn all(&mut self) -> Result<Vec<(String, LogConfig)>, StoreError> {
        self.load()?;
        let logs = self.logs.iter();
        let logs = logs.map(|(name, log)| (name.clone(), log.head.config.clone()));
        Ok(logs.collect())
    }

    /// The time since 1970.
    fn time(&self) -> Duration {
        let start = |start: Instant| START + start.elapsed();
        self.clock.map_or_else(system_time, start)
    }

    fn now(&self) -> u64 {
        millis(self.time())
    }

    /// Forgets what it knows of the table, which has changed.
    pub(super) fn reset(&mut self) {
        self.is_loaded = false;
        self.broken = None;
        self.logs.clear();
        self.changes.clear();
        self.news.clear();
    }

    /// Reads what the table has.
    pub(super) fn load(&mut self) -> Result<(), StoreError> {
        if self.is_loaded {
            return Ok(());
        }
        for (name, head) in heads(&*self.table)? {
            let mut data = Data::new(head);
            self.load_ids(&mut data)?;
            self.logs.insert(name, data);
        }
        self.is_loaded = true;
        Ok(())
    }

    /// Reads the ids that are remembered: those of records that are there.
    fn load_ids(&self, data: &mut Data) -> Result<(), StoreError> {
        let oldest = self.now().saturating_sub(data.window());
        let number = data.head.number;
        let [(from, mut to), _] = all_keys(number);
        loop {
            let rows = self.table.range((&from, &to), Which::Last, PAGE)?;
            let Some((first, _)) = rows.last() else {
                break;
            };
            to.clone_from(first);
            let timed: Vec<Timed> = rows.iter().filter_map(|row| decode(row).ok()).collect();
            let is_end = timed.last().is_some_and(|it| it.time < oldest);
            for Timed { record, time } in timed {
                if time >= oldest && !record.id.is_empty() {
                    let (id, sequence) = (record.id, record.sequence);
                    data.ids.entry(id.clone()).or_insert(sequence);
                    data.came.push_front((time, id, sequence));
                }
            }
            if is_end {
                break;
            }
        }
        Ok(())
    }

    /// Writes what has changed. Returns what is to be told; nothing if nothing has changed.
    pub(super) fn commit(&mut self) -> Result<Option<Vec<Message>>, StoreError> {
        if let Some(error) = self.broken.take() {
            self.reset();
            return Err(error);
        }
        for data in self.logs.values_mut() {
            if std::mem::take(&mut data.is_changed) {
                let row = data.head.count.encode();
                self.changes.insert(count_key(data.head.number), Some(row));
            }
        }
        if self.changes.is_empty() {
            return Ok(None);
        }
        if let Err(error) = self.table.write(&self.changes) {
            self.reset();
            return Err(error);
        }
        self.changes.clear();
        Ok(Some(std::mem::take(&mut self.news)))
    }

    /// Makes a log if it does not exist.
    pub(super) fn open(&mut self, wanted: &OpenLog) -> Result<(), StoreError> {
        let OpenLog { name, config } = wanted;
        self.load()?;
        let (age, subjects) = (config.max_age, &config.subjects);
        if let Some(data) = self.logs.get(name) {
            check_same(name, &data.head.config.subjects, subjects)?;
            let kept = data.head.config.max_age;
            return match kept.filter(|kept| age.is_none_or(|age| *kept < age)) {
                Some(kept) => wrong(format!("the log {name} keeps records for {kept:?} only")),
                None => Ok(()),
            };
        }
        let mut others = self.logs.iter();
        if let Some((other, _)) =
            others.find(|(_, data)| overlap(&data.head.config.subjects, subjects))
        {
            return wrong(format!("{subjects} is in the log {other}"));
        }
        // Another log has another time, and another number: also than one whose row was lost.
        let lost = last(&*self.table, (&record_key(0, 0), &record_key(u32::MAX, 0)))?;
        let lost = lost.map_or(0, |(key, _)| log_of(&key));
        self.made = self.time().as_nanos().max(self.made + 1);
        let numbers = self.logs.values().map(|data| data.head.number);
        let mut data = Data::new(Head {
            number: numbers.fold(lost, u32::max) + 1,
            config: config.clone(),
            created: self.made,
            count: Count::default(),
        });
        data.is_changed = true;
        self.changes.extend(data.head.rows(name)?);
        self.logs.insert(name.clone(), data);
        Ok(())
    }

    /// Removes a log. Without an effect if the table cannot be read.
    pub(super) fn delete(&mut self, name: &str) {
        let Some(data) = self.load().ok().and_then(|()| self.logs.remove(name)) else {
            return;
        };
        for keys in all_keys(data.head.number) {
            let rows = self.range(&keys, usize::MAX).unwrap_or_default();
            let rows = rows.into_iter().map(|(key, _)| (key, None));
            self.changes.extend(rows);
        }
        let [row, copy] = log_keys(name);
        let rows = [row, copy, count_key(data.head.number)];
        self.changes.extend(rows.map(|key| (key, None)));
    }

    /// Takes a log out, to put it back. One that is lost is made again, for the next request.
    fn with<T>(
        &mut self,
        wanted: &OpenLog,
        work: impl FnOnce(&mut Self, &mut Data) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.load()?;
        let Some((name, mut data)) = self.logs.remove_entry(&wanted.name) else {
            self.open(wanted)?;
            let name = &wanted.name;
            return Err(StoreError::failed(format_args!("the log {name} is lost")));
        };
        let before = self.changes.len();
        let done = self.expire(&mut data).map(|()| self.changes.len());
        let before = *done.as_ref().unwrap_or(&before);
        let done = done.and_then(|_| work(self, &mut data));
        self.logs.insert(name, data);
        if let Err(error) = &done
            && self.changes.len() > before
        {
            self.broken = Some(error.clone());
        }
        done
    }

    /// What readers see of a log now.
    pub(super) fn view(&mut self, wanted: &OpenLog) -> Result<View, StoreError> {
        self.with(wanted, |this, data| Ok(this.view_of(data)))
    }

    /// The same, if the log is there.
    pub(super) fn known_view(&self, name: &str) -> Option<View> {
        self.logs.get(name).map(|data| self.view_of(data))
    }

    fn view_of(&self, Data { head, .. }: &Data) -> View {
        View {
            table: Arc::clone(&self.table),
            log: head.number,
            created: head.created,
            max_age: head.config.max_age.map(millis),
            // Those are removed.
            oldest: 0,
        }
    }

    /// Removes what is too old.
    fn expire(&mut self, data: &mut Data) -> Result<(), StoreError> {
        let (now, window) = (self.now(), data.window());
        while let Some((time, id, sequence)) = data.came.front()
            && now.saturating_sub(*time) >= window
        {
            let (id, sequence) = (id.clone(), *sequence);
            data.came.pop_front();
            // It may have come again after it was forgotten.
            if data.ids.get(&id) == Some(&sequence) {
                data.ids.remove(&id);
            }
        }
        let Some(age) = data.head.config.max_age.map(millis) else {
            return Ok(());
        };
        if now < data.next_expiry {
            return Ok(());
        }
        loop {
            let first = self.range(&record_keys(data.head.number, 0), 1)?.pop();
            match first.as_ref().map(|row| (sequence_of(&row.0), decode(row))) {
                None => data.next_expiry = now.saturating_add(age),
                Some((_, Ok(timed))) if now.saturating_sub(timed.time) < age => {
                    data.next_expiry = timed.time.saturating_add(age);
                }
                Some((sequence, _)) => {
                    self.remove(data, sequence)?;
                    continue;
                }
            }
            return Ok(());
        }
    }

    /// Stores a record under the next number.
    pub(super) fn append(
        &mut self,
        wanted: &OpenLog,
        record: Record,
        expected: Option<u64>,
    ) -> Result<Stored, StoreError> {
        self.with(wanted, |this, data| this.store(data, record, expected))
    }

    fn store(
        &mut self,
        data: &mut Data,
        mut record: Record,
        expected: Option<u64>,
    ) -> Result<Stored, StoreError> {
        let subject = record.subject.clone();
        check_in(&data.head.config.subjects, &subject)?;
        let is_long = subject.len().max(record.id.len()) > MAX_NAME;
        if is_long || record.id.contains(char::is_control) {
            return wrong("a subject or an id cannot be stored".to_owned());
        }
        if self.is_full {
            return Err(full("all of it is taken"));
        }
        if let Some(&sequence) = data.ids.get(&record.id) {
            return Ok(Stored {
                sequence,
                is_duplicate: true,
            });
        }
        let number = data.head.number;
        let keys = subject_keys(number, &subject, 0);
        let previous = match data.lasts.get(&subject) {
            Some(&last) => last,
            None => self.last(&keys)?.map_or(0, |key| sequence_of(&key)),
        };
        if expected.is_some_and(|expected| expected != previous) {
            return Err(StoreError::Conflict);
        }
        let surplus = match data.head.config.max_per_subject {
            None => 0,
            Some(1) => previous,
            Some(max) => {
                let max = usize::try_from(max).unwrap_or(usize::MAX);
                let them = self.range(&keys, max)?;
                let first = them.first().filter(|_| them.len() == max);
                first.map_or(0, |(key, _)| sequence_of(key))
            }
        };
        let surplus = match surplus {
            0 => None,
            sequence => self.row(&record_key(number, sequence))?,
        };
        let freed = surplus.as_ref().map_or(0, bytes_of);
        let bytes = data.head.count.bytes.saturating_sub(freed) + size(&record);
        if data.head.config.max_bytes.is_some_and(|max| bytes > max) {
            return Err(full("the log has all the bytes that it may have"));
        }
        if let Some(row) = surplus {
            self.remove_row(data, row, &subject);
        }
        let now = self.now();
        let sequence = data.head.count.last + 1;
        record.sequence = sequence;
        let value = encode(&record, now);
        self.changes
            .insert(record_key(number, sequence), Some(value));
        let key = subject_key(number, &subject, sequence);
        self.changes.insert(key, Some(Bytes::new()));
        data.is_changed = true;
        data.head.count.last = sequence;
        data.head.count.bytes += size(&record);
        data.head.count.records += 1;
        data.head.count.subjects += u64::from(previous == 0);
        if data.lasts.len() >= LASTS {
            data.lasts.clear();
        }
        data.lasts.insert(subject.clone(), sequence);
        if !record.id.is_empty() {
            data.ids.insert(record.id.clone(), sequence);
            data.came.push_back((now, record.id.clone(), sequence));
        }
        let max = data.head.config.max_records.unwrap_or(u64::MAX);
        while data.head.count.records > max
            && let Some((key, _)) = self.range(&record_keys(number, 0), 1)?.pop()
        {
            self.remove(data, sequence_of(&key))?;
        }
        if let Some(subject) = feed(&data.head.config, &subject) {
            self.news.push(Message {
                id: record.id,
                position: Some(Position { sequence, previous }),
                ..message(subject, record.payload)
            });
        }
        Ok(Stored {
            sequence,
            is_duplicate: false,
        })
    }

    /// Removes a record, of a subject that may be unknown.
    fn remove(&mut self, data: &mut Data, sequence: u64) -> Result<(), StoreError> {
        let number = data.head.number;
        let row = self.row(&record_key(number, sequence))?;
        match row.as_ref().map(decode) {
            Some(Ok(timed)) => self.remove_of(data, sequence, &timed.record.subject),
            _ => {
                let [_, keys] = all_keys(number);
                let all = self.range(&keys, usize::MAX)?;
                let key = all.iter().find(|(key, _)| sequence_of(key) == sequence);
                let subject = key.map(|(key, _)| subject_of(key).to_owned());
                self.remove_of(data, sequence, &subject.unwrap_or_default())
            }
        }
    }

    fn remove_of(
        &mut self,
        data: &mut Data,
        sequence: u64,
        subject: &str,
    ) -> Result<(), StoreError> {
        let number = data.head.number;
        if let Some(row) = self.row(&record_key(number, sequence))? {
            self.remove_row(data, row, subject);
            data.lasts.retain(|_, last| *last != sequence);
            let is_last = self.range(&subject_keys(number, subject, 0), 1)?.is_empty();
            let count = &mut data.head.count;
            count.subjects = count.subjects.saturating_sub(u64::from(is_last));
        }
        Ok(())
    }

    /// Removes a record of a subject that has others.
    fn remove_row(&mut self, data: &mut Data, row: Row, subject: &str) {
        let count = &mut data.head.count;
        count.records = count.records.saturating_sub(1);
        count.bytes = count.bytes.saturating_sub(bytes_of(&row));
        data.is_changed = true;
        let key = subject_key(data.head.number, subject, sequence_of(&row.0));
        self.changes.extend([(key, None), (row.0, None)]);
    }

    /// Removes some of the records after a number. Returns how many, and after which number there may be more.
    pub(super) fn purge(
        &mut self,
        wanted: &OpenLog,
        pattern: &str,
        (mut after, before): (u64, u64),
    ) -> Result<(u64, Option<u64>), StoreError> {
        self.with(wanted, |this, data| {
            let (number, is_exact) = (data.head.number, is_exact(pattern));
            let keys = match is_exact {
                true => subject_keys(number, pattern, after),
                false => record_keys(number, after),
            };
            let rows = this.range(&keys, PURGED)?;
            let (mut count, is_end) = (0, rows.len() < PURGED);
            for row in &rows {
                after = sequence_of(&row.0);
                if after >= before {
                    return Ok((count, None));
                }
                // The key of a subject has no value.
                let subject = decode(row).map(|timed| timed.record.subject);
                match subject {
                    _ if is_exact => this.remove_of(data, after, pattern)?,
                    Ok(subject) if overlap(pattern, &subject) => {
                        this.remove_of(data, after, &subject)?;
                    }
                    Err(_) if pattern == ">" || pattern == data.head.config.subjects => {
                        this.remove(data, after)?;
                    }
                    _ => continue,
                }
                count += 1;
            }
            Ok((count, (!is_end).then_some(after)))
        })
    }

    pub(super) fn state(&mut self, wanted: &OpenLog) -> Result<LogState, StoreError> {
        self.with(wanted, |this, data| {
            let (number, count) = (data.head.number, data.head.count);
            let first = this.range(&record_keys(number, 0), 1)?.pop();
            Ok(LogState {
                created: data.head.created,
                first: first.map_or(count.last + 1, |(key, _)| sequence_of(&key)),
                last: count.last,
                records: count.records,
                bytes: count.bytes,
                subjects: count.subjects,
            })
        })
    }

    fn row(&self, key: &[u8]) -> Result<Option<Row>, StoreError> {
        let keys = (key.to_vec(), [key, &[0]].concat());
        Ok(self.range(&keys, 1)?.pop())
    }

    /// The first rows of the table, with what is to be written.
    fn range(&self, (from, to): &Keys, max: usize) -> Result<Vec<Row>, StoreError> {
        let changes = || self.changes.range::<[u8], _>(bounds((from, to)));
        let removed = changes().filter(|(_, value)| value.is_none()).count();
        let rows = self
            .table
            .range((from, to), Which::First, max.saturating_add(removed))?;
        if changes().next().is_none() {
            return Ok(rows);
        }
        let mut rows: BTreeMap<_, _> = rows.into_iter().collect();
        for (key, value) in changes() {
            match value {
                Some(_) => rows.insert(key.clone(), value.clone()),
                None => rows.remove(key),
            };
        }
        Ok(rows.into_iter().take(max).collect())
    }

    /// The last key of the table, with what is to be written.
    fn last(&self, (from, to): &Keys) -> Result<Option<Vec<u8>>, StoreError> {
        let changes = self.changes.range::<[u8], _>(bounds((from, to)));
        let new = changes.rev().find(|(_, value)| value.is_some());
        let new = new.map(|(key, _)| key.clone());
        let mut to = to.clone();
        while let Some((key, _)) = last(&*self.table, (from, &to))? {
            match self.changes.get(&key) {
                Some(None) => to = key,
                _ => return Ok(new.max(Some(key))),
            }
        }
        Ok(new)
    }
}

/// The bytes that the record of a row takes; none if it is damaged.
fn bytes_of(row: &Row) -> u64 {
    decode(row).map_or(0, |it| size(&it.record))
}

/// The bytes that a record takes.
pub(super) fn size(record: &Record) -> u64 {
    (record.subject.len() + record.id.len() + record.payload.len()) as u64
}

fn full(message: &str) -> StoreError {
    let message = message.to_owned();
    StoreError::Full { message }
}

fn wrong<T>(message: String) -> Result<T, StoreError> {
    Err(StoreError::config(message))
}
