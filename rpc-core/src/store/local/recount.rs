//! [`Recount`]: the rows of a damaged table in another one.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::head::{Count, Head};
use super::logs::size;
use super::rows::{
    Keys, Timed, all_keys, count_key, decode, get, is_count, log_name, log_of, record_key,
    sequence_of, subject_key, subject_of,
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
    /// The last numbers of the logs.
    lasts: BTreeMap<u32, u64>,
}

impl<'a> Recount<'a> {
    pub(in crate::store) const fn new(table: &'a dyn Table) -> Self {
        Self {
            table,
            changes: Changes::new(),
            bytes: 0,
            heads: BTreeMap::new(),
            lasts: BTreeMap::new(),
        }
    }

    /// Takes a row over. Of several that say how much a log has the newest counts.
    pub(in crate::store) fn add(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        if let Some(name) = log_name(key) {
            let head = Head::decode(value).map(|head| (name.to_owned(), head));
            self.heads.extend(head);
            return Ok(());
        }
        if let Some(count) = Count::decode(value).filter(|_| is_count(key)) {
            let last = self.lasts.entry(log_of(key)).or_default();
            *last = count.last.max(*last);
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
        for (name, head) in std::mem::take(&mut self.heads) {
            let [records, subjects] = all_keys(head.number);
            // A subject that names a record which is not there.
            self.each(&subjects, |this, row| {
                let key = record_key(head.number, sequence_of(&row.0));
                if get(this.table, &key)?.is_none() {
                    this.changes.insert(key, Some(DAMAGED));
                }
                Ok(())
            })?;
            let mut count = Count {
                last: self.lasts.get(&head.number).copied().unwrap_or(0),
                ..Count::default()
            };
            self.each(&records, |this, row| {
                let sequence = sequence_of(&row.0);
                count.last = count.last.max(sequence);
                count.records += 1;
                let Ok(Timed { record, .. }) = decode(row) else {
                    damaged += 1;
                    return Ok(());
                };
                found += 1;
                count.bytes += size(&record);
                let key = subject_key(head.number, &record.subject, sequence);
                this.changes.insert(key, Some(Bytes::new()));
                Ok(())
            })?;
            let mut last = None;
            self.each(&subjects, |_, row| {
                let subject = Some(subject_of(&row.0).to_owned());
                count.subjects += u64::from(last != subject);
                last = subject;
                Ok(())
            })?;
            self.changes.extend(head.rows(&name)?);
            let key = count_key(head.number);
            self.changes.insert(key, Some(count.encode()));
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
