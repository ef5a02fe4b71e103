//! [`History`]: a session with its turns, as read from its log.
//!
//! A message of the log has the whole [`Record`], which is short, and what is new: a turn; from time
//! to time all turns, so that what comes before can be purged. What is longer than a message comes
//! in several; all but the last one leave the record as it was.

use std::fmt::Display;
use std::sync::Arc;

use bytes::Bytes;
use rpc_core::Str;
use serde::{Deserialize, Serialize};

use super::record::{PastOwner, Record, TurnId};
use super::{Commit, StoreError, StoreLimits};
use crate::gateway::memory::Turn;

/// What messages may take beside the turns that are kept, before all is written again.
const SPARE: u64 = 16 * 1024;

/// A session as it is known after a message of its log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct History {
    pub(super) record: Record,
    /// The turns, oldest first.
    turns: Vec<Arc<Turn>>,
    /// The number of the last message, and its id.
    pub(super) revision: u64,
    pub(super) id: Str,
    /// The bytes of the messages since all was written.
    tail: u64,
    /// The beginning of what comes in several messages.
    begun: Vec<u8>,
}

/// What a message says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) record: Record,
    adds: Addition,
}

/// What is new beside the record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Addition {
    /// Whether what comes before is superfluous.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_all: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    turns: Vec<Turn>,
}

/// Adds a turn, in the place of the last one if that has the same name. Returns whether it is one more.
fn add(turns: &mut Vec<Arc<Turn>>, turn: Turn) -> bool {
    let former = turns.pop_if(|last| last.id.is_some() && last.id == turn.id);
    turns.push(Arc::new(turn));
    former.is_none()
}

/// Drops the oldest turns beyond the limits, but never the last one. Returns about how many bytes are left.
fn fit(turns: &mut Vec<Arc<Turn>>, limits: StoreLimits) -> u64 {
    let (mut kept, mut bytes) = (0, 0);
    for turn in turns.iter().rev() {
        let size = (turn.user.len() + turn.assistant.len()) as u64 + 64;
        if kept > 0 && (kept >= limits.turns || bytes + size > limits.session_bytes) {
            break;
        }
        (kept, bytes) = (kept + 1, bytes + size);
    }
    let surplus = turns
        .len()
        .saturating_sub(usize::try_from(kept).unwrap_or(usize::MAX));
    turns.drain(..surplus);
    bytes
}

/// Splits a message into which one it is of how many, the record, and what is new or a part of it.
fn split(message: &[u8]) -> Option<(usize, usize, &[u8], &[u8])> {
    let mut lines = message.splitn(3, |byte| *byte == b'\n');
    let (number, of) = std::str::from_utf8(lines.next()?).ok()?.split_once(' ')?;
    let (number, of) = (number.parse().ok()?, of.parse().ok()?);
    Some((number, of, lines.next()?, lines.next()?))
}

fn damaged(why: &dyn Display) -> StoreError {
    StoreError::Damaged(why.to_string())
}

/// Reads the record of a message.
pub(super) fn record_in(message: &[u8]) -> Result<Record, StoreError> {
    let (_, _, record, _) = split(message).ok_or_else(|| damaged(&"a session cannot be read"))?;
    rpc_core::json::from_slice(record).map_err(|error| damaged(&error))
}

impl Entry {
    /// Makes a session as if it had never been.
    pub(super) fn nothing() -> Self {
        let mut entry = Self::of(Record::default());
        entry.adds.is_all = true;
        entry
    }

    /// Returns whether what comes before is superfluous.
    pub(super) const fn is_all(&self) -> bool {
        self.adds.is_all
    }

    /// Changes only the record.
    pub(super) fn of(record: Record) -> Self {
        Self {
            record,
            adds: Addition::default(),
        }
    }
}

impl History {
    /// Returns a session of which only the number of the last message is known.
    pub(super) fn at(revision: u64) -> Self {
        Self {
            revision,
            ..Self::default()
        }
    }

    /// Returns the last turns, oldest first.
    pub(super) fn last_turns(&self, most: usize) -> Vec<Turn> {
        let first = self.turns.len().saturating_sub(most);
        let turns = self.turns.iter().skip(first);
        turns.map(|turn| (**turn).clone()).collect()
    }

    /// Returns what stores the results of a run, and ends its turn.
    ///
    /// # Errors
    /// As [`Record::commit`].
    pub(super) fn commit(
        &self,
        id: &str,
        commit: &Commit,
        turn_id: Option<&TurnId>,
        limits: StoreLimits,
    ) -> Result<Entry, PastOwner> {
        let mut entry = Entry::of(self.record.clone());
        entry.record.commit(id, commit, turn_id)?;
        if let Some(turn) = &commit.turn {
            let turn = turn.shortened(limits.text_bytes).into_owned();
            entry.adds.turns = vec![turn.clone()];
            let mut turns = self.turns.clone();
            entry.record.count += u64::from(add(&mut turns, turn));
            entry.record.bytes = fit(&mut turns, limits);
            entry.record.kept = turns.len() as u64;
        }
        Ok(entry)
    }

    /// Returns whether it is time to write [all](Self::all): reading takes no more than twice as much as
    /// what there is.
    pub(super) const fn is_long(&self) -> bool {
        self.tail > self.record.bytes + SPARE
    }

    /// Returns what says all, so that what comes before may be purged.
    pub(super) fn all(&self) -> Entry {
        let mut entry = Entry::of(self.record.clone());
        entry.adds = Addition {
            is_all: true,
            turns: self.last_turns(usize::MAX),
        };
        entry
    }

    /// Returns what forgets the turns.
    pub(super) fn forget(&self) -> Entry {
        let mut entry = self.all();
        entry.adds.turns.clear();
        (entry.record.kept, entry.record.bytes) = (0, 0);
        entry
    }

    /// Returns the messages for an entry, none with more than `most` bytes beside the record.
    pub(super) fn messages(&self, entry: &Entry, most: usize) -> Result<Vec<Bytes>, StoreError> {
        let text = serde_json::to_vec(&entry.adds).map_err(|error| damaged(&error))?;
        let pieces: Vec<_> = text.chunks(most.max(1)).collect();
        let of = pieces.len();
        let pieces = pieces.into_iter().enumerate();
        let message = |(number, piece): (usize, &[u8])| {
            let record = match number + 1 == of {
                true => &entry.record,
                false => &self.record,
            };
            let mut message = format!("{number} {of}\n").into_bytes();
            serde_json::to_writer(&mut message, record).map_err(|error| damaged(&error))?;
            message.push(b'\n');
            message.extend_from_slice(piece);
            Ok(message.into())
        };
        pieces.map(message).collect()
    }

    /// Takes the next message of the log.
    ///
    /// # Errors
    /// [`StoreError::Damaged`]
    pub(super) fn take(
        &mut self,
        sequence: u64,
        id: Str,
        message: &[u8],
        limits: StoreLimits,
    ) -> Result<(), StoreError> {
        (self.revision, self.id) = (sequence, id);
        self.record = record_in(message)?;
        let (number, of, _, piece) = split(message).unwrap_or_default();
        if number == 0 {
            self.begun.clear();
        }
        self.tail += message.len() as u64;
        self.begun.extend_from_slice(piece);
        if number + 1 < of {
            return Ok(());
        }
        let text = std::mem::take(&mut self.begun);
        let adds: Addition = rpc_core::json::from_slice(&text).map_err(|error| damaged(&error))?;
        if adds.is_all {
            (self.turns, self.tail) = (Vec::new(), 0);
        }
        for turn in adds.turns {
            add(&mut self.turns, turn);
        }
        fit(&mut self.turns, limits);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
