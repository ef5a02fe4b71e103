//! [`Head`]: what a table says of a log.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::rows::{all_logs, count_key, get, log_keys, log_name};
use super::{Row, Table, Which};
use crate::store::{LogConfig, StoreError};

/// The bytes of a record beside what it holds.
#[cfg(feature = "file-store")]
const ROW: u64 = 128;

/// What the rows of a log say.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Head {
    pub(super) number: u32,
    pub(super) config: LogConfig,
    pub(super) created: u128,
    #[serde(skip)]
    pub(super) count: Count,
}

/// How much a log has.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Count {
    /// The number of the last record that was ever stored.
    pub(super) last: u64,
    pub(super) records: u64,
    pub(super) bytes: u64,
    pub(super) subjects: u64,
}

impl Head {
    pub(super) fn decode(row: &[u8]) -> Option<Self> {
        serde_json::from_slice(row).ok()
    }

    /// The rows of what it is.
    pub(super) fn rows(&self, name: &str) -> Result<[Row; 2], StoreError> {
        let row = serde_json::to_vec(self).map_err(StoreError::failed)?;
        let row = Bytes::from(row);
        Ok(log_keys(name).map(|key| (key, Some(row.clone()))))
    }
}

impl Count {
    pub(super) fn decode(row: &[u8]) -> Option<Self> {
        let mut numbers = row.chunks_exact(8).filter_map(<[u8]>::first_chunk);
        let mut number = || numbers.next().map(|it| u64::from_be_bytes(*it));
        Some(Self {
            last: number()?,
            records: number()?,
            bytes: number()?,
            subjects: number()?,
        })
    }

    pub(super) fn encode(self) -> Bytes {
        let numbers = [self.last, self.records, self.bytes, self.subjects];
        numbers.map(u64::to_be_bytes).concat().into()
    }
}

/// What a table says of its logs, by name.
pub(super) fn heads(table: &dyn Table) -> Result<Vec<(String, Head)>, StoreError> {
    let (from, to) = all_logs();
    let rows = table.range((&from, &to), Which::First, usize::MAX)?;
    let head = |(key, value): Row| {
        let name = log_name(&key).unwrap_or_default();
        let damaged =
            || StoreError::failed(format_args!("what is known of the log {name} is damaged"));
        let [_, copy] = log_keys(name);
        let value = match value {
            None => get(table, &copy)?.and_then(|(_, value)| value),
            value => value,
        };
        let mut head = value.and_then(|it| Head::decode(&it)).ok_or_else(damaged)?;
        let count = get(table, &count_key(head.number))?.and_then(|(_, value)| value);
        let count = count.and_then(|it| Count::decode(&it));
        head.count = count.ok_or_else(damaged)?;
        Ok((name.to_owned(), head))
    };
    rows.into_iter().map(head).collect()
}

/// The bytes that the records of a table need, about.
#[cfg(feature = "file-store")]
pub(in crate::store) fn size_of(table: &dyn Table) -> Result<u64, StoreError> {
    let heads = heads(table)?.into_iter();
    let sizes = heads.map(|(_, head)| head.count.bytes + head.count.records * ROW);
    Ok(sizes.sum())
}
