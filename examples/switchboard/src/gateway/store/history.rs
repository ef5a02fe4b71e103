//! [`Turns`]: the turns of a session, and [`Next`], what a change makes of it.

use std::sync::Arc;

use rpc_core::store::{Session, SessionEntry, SessionHead, SessionState};

use super::record::{PastOwner, Record, TurnId};
use super::{Commit, StoreError, StoreLimits};
use crate::gateway::memory::Turn;

/// The turns of a session, oldest first. An entry has the [`Record`] in its head, and what is new in its body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Turns(Vec<Arc<Turn>>);

impl SessionState for Turns {
    fn apply(&mut self, entry: &SessionEntry, _: bool) -> bool {
        let new: Option<Vec<Turn>> = match &*entry.body {
            b"" => Some(Vec::new()),
            text => rpc_core::json::from_slice(text).ok(),
        };
        let (Some(record), Some(new)) = (Record::in_head(&entry.head), new) else {
            return false;
        };
        for turn in new {
            self.add(turn);
        }
        self.keep_last(record.kept);
        true
    }
}

/// Returns about the bytes that a turn takes.
fn len(turn: &Arc<Turn>) -> usize {
    turn.user.len() + turn.assistant.len() + 64
}

impl Turns {
    /// Returns about the bytes that all take.
    pub(super) fn len(&self) -> usize {
        self.0.iter().map(len).sum()
    }

    /// Returns the last turns, oldest first.
    pub(super) fn last(&self, most: usize) -> Vec<Turn> {
        let first = self.0.len().saturating_sub(most);
        let turns = self.0.iter().skip(first);
        turns.map(|turn| (**turn).clone()).collect()
    }

    /// Adds a turn, in the place of the last one if that has the same name. Returns whether it is one more.
    fn add(&mut self, turn: Turn) -> bool {
        let is_named = turn.id.is_some();
        let former = self.0.pop_if(|last| is_named && last.id == turn.id);
        self.0.push(Arc::new(turn));
        former.is_none()
    }

    fn keep_last(&mut self, kept: u64) {
        let kept = usize::try_from(kept).unwrap_or(usize::MAX);
        let surplus = self.0.len().saturating_sub(kept);
        self.0.drain(..surplus);
    }

    /// Drops the oldest turns beyond the limits, but never the last one. Returns how many are left.
    fn fit(&mut self, limits: StoreLimits) -> u64 {
        let (mut kept, mut bytes) = (0, 0);
        for turn in self.0.iter().rev() {
            bytes += len(turn);
            if kept > 0 && (kept >= limits.turns || bytes as u64 > limits.session_bytes) {
                break;
            }
            kept += 1;
        }
        self.keep_last(kept);
        kept
    }
}

/// A session after a change, and what the log has to learn of it.
#[derive(Debug, Default)]
pub(super) struct Next {
    pub(super) record: Record,
    pub(super) turns: Turns,
    /// What is new; nothing if only the record changes.
    new: Option<Turn>,
    /// Whether what comes before is superfluous.
    is_whole: bool,
}

impl Next {
    /// Returns a session as it is known.
    pub(super) fn of(session: &Session<Turns>) -> Self {
        Self {
            record: Record::in_head(session.head()).unwrap_or_default(),
            turns: session.state().cloned().unwrap_or_default(),
            ..Self::default()
        }
    }

    /// Stores the results of a run, and ends its turn.
    ///
    /// # Errors
    /// As [`Record::commit`].
    pub(super) fn commit(
        &mut self,
        id: &str,
        commit: &Commit,
        turn_id: Option<&TurnId>,
        limits: StoreLimits,
    ) -> Result<(), PastOwner> {
        self.record.commit(id, commit, turn_id)?;
        if let Some(turn) = &commit.turn {
            let turn = turn.shortened(limits.text_bytes).into_owned();
            self.record.count += u64::from(self.turns.add(turn.clone()));
            self.record.kept = self.turns.fit(limits);
            self.new = Some(turn);
        }
        Ok(())
    }

    /// Takes over turns of an earlier version.
    pub(super) fn import(&mut self, turns: Vec<Turn>, limits: StoreLimits) {
        for turn in turns {
            self.turns.add(turn);
        }
        self.record.kept = self.turns.fit(limits);
        self.is_whole = true;
    }

    /// Forgets the turns.
    pub(super) fn forget(&mut self) {
        self.turns = Turns::default();
        self.record.kept = 0;
        self.is_whole = true;
    }

    /// Returns the entry for the log; a whole one if it `is_due`.
    pub(super) fn entry(&self, is_due: bool) -> Result<SessionEntry, StoreError> {
        let is_whole = self.is_whole || is_due;
        let body = match &self.new {
            _ if is_whole => {
                let turns: Vec<&Turn> = self.turns.0.iter().map(|turn| &**turn).collect();
                serde_json::to_vec(&turns)?
            }
            Some(turn) => serde_json::to_vec(&[turn])?,
            None => Vec::new(),
        };
        let data = serde_json::to_vec(&self.record)?.into();
        Ok(SessionEntry {
            head: SessionHead {
                data,
                ..SessionHead::default()
            },
            body: body.into(),
            is_whole,
        })
    }
}

#[cfg(test)]
mod tests;
