//! The tables of the file, and the rows in them.

use redb::TableDefinition;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::StoreError;

/// The number of this layout.
pub(super) const FORMAT: u64 = 1;

/// Numbers about the file: its [`FORMAT_KEY`] and its [`BYTES_KEY`].
pub(super) const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
/// The number of the layout that the file has.
pub(super) const FORMAT_KEY: &str = "format";
/// Bytes of the stored turns of all sessions.
pub(super) const BYTES_KEY: &str = "bytes";
/// A session's [`SessionRow`] by its key.
pub(super) const SESSIONS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("sessions");
/// Sessions by the second of their last use.
pub(super) const ACTIVE: TableDefinition<'_, (u64, &str), ()> = TableDefinition::new("active");
/// Turns by session and number.
pub(super) const TURNS: TableDefinition<'_, (&str, u64), &[u8]> = TableDefinition::new("turns");
/// The usage log by number.
pub(super) const USAGE: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("usage");
/// Tokens by day.
pub(super) const DAYS: TableDefinition<'_, u64, u64> = TableDefinition::new("days");

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct SessionRow {
    /// When it began, in seconds since 1970.
    pub(super) created: u64,
    /// When it was last used, in seconds since 1970.
    pub(super) active: u64,
    /// The number of the oldest stored turn.
    pub(super) first: u64,
    /// The number of the next turn, which is how many turns there were.
    pub(super) next: u64,
    /// Bytes of the stored turns.
    pub(super) bytes: u64,
    /// All tokens used.
    pub(super) tokens: u64,
}

/// Encodes a row. JSON, so that other tools can read the file.
pub(super) fn encode<T: Serialize>(file: &str, row: &T) -> Result<Vec<u8>, StoreError> {
    serde_json::to_vec(row).map_err(|error| StoreError::damaged(file, error.to_string()))
}

/// Decodes a row. Errors name the table, not the row, which may contain private text.
pub(super) fn decode<T: DeserializeOwned>(
    file: &str,
    table: &str,
    row: &[u8],
) -> Result<T, StoreError> {
    let wrong = |_| StoreError::damaged(file, format!("a row of {table} cannot be read"));
    rpc_core::json::from_slice(row).map_err(wrong)
}
