//! [`Recount`]: the rows of a damaged table in another one.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::logs::{Head, size};
use super::rows::{
    Keys, Timed, all_keys, decode, get, log_key, log_name, record_key, sequence_of, subject_key,
    subject_of,
};
use super::{Changes, Row, Table, Which};
use crate::store::StoreError;

/// How many rows are written at once, and how many bytes.
const ROWS: usize = 512;
const BYTES: usize = 4 * 1024 * 1024;
/// The value of a record that is damaged.
const DAMAGED: Bytes = Bytes::from_static(b"?");

/// Takes rows over into an empty table, and then makes it whole.
pub(in crate::store) struct Recount<'a> {
    table: &'a dyn Table,
    changes: Changes,
    bytes: usize,
    heads: BTreeMap<String, Head>,
}

impl<'a> Recount<'a> {
    pub(in crate::store) const fn new(table: &'a dyn Table) -> Self {
        Self {
            table,
            changes: Changes::new(),
            bytes: 0,
            heads: BTreeMap::new(),
        }
    }

    /// Takes a row over. Of the rows of a log the newest counts.
    pub(in crate::store) fn add(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        if let Some(name) = log_name(key) {
            if let Some(head) = Head::decode(value)
                && self.heads.get(name).is_none_or(|it| it.last <= head.last)
            {
                self.heads.insert(name.to_owned(), head);
            }
            return Ok(());
        }
        self.bytes += key.len() + value.len();
        let value = Bytes::copy_from_slice(value);
        self.changes.insert(key.to_vec(), Some(value));
        if self.bytes > BYTES || self.changes.len() >= ROWS {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        self.table.write(&self.changes)?;
        self.changes.clear();
        self.bytes = 0;
        Ok(())
    }

    /// Makes the rows of subjects and logs say what records there are. Returns how many can be read, and how many
    /// are damaged.
    pub(in crate::store) fn finish(mut self) -> Result<(u64, u64), StoreError> {
        self.flush()?;
        let (mut found, mut damaged) = (0, 0);
        for (name, mut head) in std::mem::take(&mut self.heads) {
            let [records, subjects, _] = all_keys(head.number);
            // A subject that names a record which is not there.
            self.each(&subjects, |this, row| {
                let key = record_key(head.number, sequence_of(&row.0));
                if get(this.table, &key)?.is_none() {
                    this.changes.insert(key, Some(DAMAGED));
                }
                Ok(())
            })?;
            (head.records, head.bytes, head.subjects) = (0, 0, 0);
            self.each(&records, |this, row| {
                let sequence = sequence_of(&row.0);
                head.last = head.last.max(sequence);
                head.records += 1;
                let Ok(Timed { record, .. }) = decode(row) else {
                    damaged += 1;
                    return Ok(());
                };
                found += 1;
                head.bytes += size(&record);
                let key = subject_key(head.number, &record.subject, sequence);
                this.changes.insert(key, Some(Bytes::new()));
                Ok(())
            })?;
            let mut last = None;
            self.each(&subjects, |_, row| {
                let subject = Some(subject_of(&row.0).to_owned());
                head.subjects += u64::from(last != subject);
                last = subject;
                Ok(())
            })?;
            self.changes.insert(log_key(&name), Some(head.encode()?));
            self.flush()?;
        }
        Ok((found, damaged))
    }

    /// Does something for each row, and writes what that changes.
    fn each(
        &mut self,
        (from, to): &Keys,
        mut work: impl FnMut(&mut Self, &Row) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut from = from.clone();
        loop {
            let rows = self.table.range((&from, to), Which::First, ROWS)?;
            let Some((last, _)) = rows.last() else {
                return Ok(());
            };
            from = [last, &[0][..]].concat();
            rows.iter().try_for_each(|row| work(self, row))?;
            self.flush()?;
        }
    }
}
