//! [`MemoryStorage`]: sessions that are lost with the process.

use std::collections::{BTreeMap, HashMap};

use rpc_core::Str;
use rpc_core::sync::Mutex;

use super::{Record, RecordStatus, Storage, StorageError, interrupted};
use crate::hub::Owner;

/// A storage that keeps the last record of each session in memory, for tests and for hosts without
/// persistence. When it is full, the session with the oldest record is forgotten.
#[derive(Debug)]
pub struct MemoryStorage {
    max: usize,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// The records as lines, and their positions in `order`.
    records: HashMap<Str, (u64, String)>,
    /// The sessions in the order of their records.
    order: BTreeMap<u64, Str>,
    next: u64,
}

impl Inner {
    fn get(&self, session_id: &str) -> Option<Record> {
        let (_, line) = self.records.get(session_id)?;
        Record::parse(line).ok()
    }

    fn put(&mut self, record: &Record) {
        let id = Str::from(record.session_id.as_str());
        if let Some((place, _)) = self.records.remove(&id) {
            self.order.remove(&place);
        }
        self.order.insert(self.next, id.clone());
        self.records.insert(id, (self.next, record.to_line()));
        self.next += 1;
    }
}

impl MemoryStorage {
    /// Creates an empty storage for at most this many sessions.
    #[must_use]
    pub fn new(max_sessions: usize) -> Self {
        Self {
            max: max_sessions,
            inner: Mutex::default(),
        }
    }

    /// Returns the number of sessions, including expired ones.
    #[must_use]
    pub fn sessions(&self) -> usize {
        self.inner.lock().records.len()
    }
}

impl Storage for MemoryStorage {
    fn load(&self, session_id: &str, now: f64) -> Result<Option<Record>, StorageError> {
        let record = self.inner.lock().get(session_id);
        Ok(record.filter(|record| !record.is_expired(now)))
    }

    fn append(&self, record: &Record) -> Result<(), StorageError> {
        let mut inner = self.inner.lock();
        let mut record = record.clone();
        record.inherit(inner.get(&record.session_id).as_ref());
        inner.put(&record);
        while inner.records.len() > self.max
            && let Some((_, oldest)) = inner.order.pop_first()
        {
            inner.records.remove(&oldest);
        }
        Ok(())
    }

    fn delete(&self, session_id: &str, owner: Owner) -> Result<(), StorageError> {
        let mut inner = self.inner.lock();
        if inner.get(session_id).is_some_and(|it| it.is_of(owner))
            && let Some((place, _)) = inner.records.remove(session_id)
        {
            inner.order.remove(&place);
        }
        Ok(())
    }

    fn recover(&self, now: f64) -> Result<Vec<Record>, StorageError> {
        let mut inner = self.inner.lock();
        let records = inner.order.values().filter_map(|id| inner.get(id));
        let running = records.filter(|record| record.status == RecordStatus::Running);
        let found: Vec<_> = running.map(|record| interrupted(record, now)).collect();
        for record in &found {
            inner.put(record);
        }
        Ok(found)
    }

    fn compact(&self, now: f64) -> Result<(), StorageError> {
        let mut inner = self.inner.lock();
        let inner = &mut *inner;
        inner.records.retain(|_, (place, line)| {
            let keep = Record::parse(line).is_ok_and(|record| !record.is_expired(now));
            if !keep {
                inner.order.remove(place);
            }
            keep
        });
        Ok(())
    }
}

// Prints numbers only: records are private.
rpc_core::debug_fields!([] Inner, this => { sessions: this.records.len() });
