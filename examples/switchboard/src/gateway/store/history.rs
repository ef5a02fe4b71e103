//! [`Contents`]: the turns of a session and what is known from them, and [`Next`], what a change makes of it.

use std::borrow::Cow;
use std::sync::Arc;

use rpc_core::store::{Session, SessionEntry, SessionHead, SessionState};
use serde::{Deserialize, Serialize};

use super::record::{Record, TurnId};
use super::{Commit, Forget, StoreError, StoreLimits};
use crate::gateway::memory::{Entity, Turn, learn};

/// The turns of a session and what is known from them, both oldest first. An entry has the [`Record`] in its head, and
/// what is new in its body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Contents {
    pub(super) record: Record,
    turns: Vec<Arc<Turn>>,
    pub(super) entities: Vec<Entity>,
}

/// What the body of an entry lists.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Item<'a> {
    Turn(Cow<'a, Turn>),
    Entity(Cow<'a, Entity>),
}

impl SessionState for Contents {
    fn apply(&mut self, entry: &SessionEntry, _: bool) -> bool {
        let new: Option<Vec<Item<'_>>> = match &*entry.body {
            b"" => Some(Vec::new()),
            text => rpc_core::json::from_slice(text).ok(),
        };
        let (Some(record), Some(new)) = (Record::in_head(&entry.head), new) else {
            return false;
        };
        for item in new {
            match item {
                Item::Turn(turn) => drop(self.add(turn.into_owned())),
                Item::Entity(entity) => learn(&mut self.entities, entity.into_owned()),
            }
        }
        self.keep_last(record.kept);
        self.record = record;
        true
    }
}

/// Returns the record of a session, also if its contents cannot be read.
pub(super) fn record_of(session: &Session<Contents>) -> Cow<'_, Record> {
    match session.state().filter(|_| !session.is_broken()) {
        Some(contents) => Cow::Borrowed(&contents.record),
        None => Cow::Owned(Record::in_head(session.head()).unwrap_or_default()),
    }
}

/// Returns about the bytes that a turn takes.
fn len(turn: &Arc<Turn>) -> usize {
    turn.user.len() + turn.assistant.len() + 64
}

impl Contents {
    /// Returns about the bytes that all take.
    pub(super) fn len(&self) -> usize {
        let entities = self.entities.iter().map(Entity::bytes);
        self.turns.iter().map(len).chain(entities).sum()
    }

    /// Returns whether a turn of this name is there.
    fn has(&self, name: &str) -> bool {
        self.turns.iter().any(|it| it.id.as_deref() == Some(name))
    }

    /// Returns the last turns, oldest first.
    pub(super) fn last(&self, most: usize) -> Vec<Turn> {
        let first = self.turns.len().saturating_sub(most);
        let turns = self.turns.iter().skip(first);
        turns.map(|turn| (**turn).clone()).collect()
    }

    /// Adds a turn, in the place of the last one if that has the same name. Returns whether it is one more.
    fn add(&mut self, turn: Turn) -> bool {
        let is_named = turn.id.is_some();
        let former = self.turns.pop_if(|last| is_named && last.id == turn.id);
        self.turns.push(Arc::new(turn));
        former.is_none()
    }

    fn keep_last(&mut self, kept: u64) {
        let kept = usize::try_from(kept).unwrap_or(usize::MAX);
        let surplus = self.turns.len().saturating_sub(kept);
        self.turns.drain(..surplus);
    }

    /// Drops the oldest turns beyond the limits, but never the last one. Returns how many are left.
    fn fit(&mut self, limits: StoreLimits) -> u64 {
        let (mut kept, mut bytes) = (0, 0);
        for turn in self.turns.iter().rev() {
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
    pub(super) contents: Contents,
    /// What is new; nothing if only the record changes.
    new: Vec<Item<'static>>,
    /// Whether what comes before is superfluous.
    is_whole: bool,
}

impl Next {
    /// Returns a session as it is known.
    pub(super) fn of(session: &Session<Contents>) -> Self {
        let mut contents = session.state().cloned().unwrap_or_default();
        if session.is_broken() {
            contents.record = record_of(session).into_owned();
        }
        Self {
            contents,
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
    ) -> Result<(), StoreError> {
        self.contents.record.commit(id, commit, turn_id)?;
        if let Some(turn) = &commit.turn {
            let turn = turn.shortened(limits.text_bytes).into_owned();
            self.contents.record.count += u64::from(self.contents.add(turn.clone()));
            self.contents.record.kept = self.contents.fit(limits);
            self.new.push(Item::Turn(Cow::Owned(turn)));
        }
        let learnt = commit.learnt.as_ref();
        if let Some(learnt) = learnt.filter(|it| self.contents.has(&it.turn)) {
            for entity in &learnt.entities {
                learn(&mut self.contents.entities, entity.clone());
                self.new.push(Item::Entity(Cow::Owned(entity.clone())));
            }
        }
        Ok(())
    }

    /// Takes over turns of an earlier version.
    pub(super) fn import(&mut self, turns: Vec<Turn>, limits: StoreLimits) {
        for turn in turns {
            self.contents.add(turn);
        }
        self.contents.record.kept = self.contents.fit(limits);
        self.is_whole = true;
    }

    /// Forgets what is meant. Returns whether there was anything.
    pub(super) fn forget(&mut self, what: Forget<'_>) -> bool {
        self.is_whole = true;
        if let Forget::Entity(subject, relation) = what {
            let entities = &mut self.contents.entities;
            let before = entities.len();
            entities.retain(|it| !it.is_about(subject, relation));
            return entities.len() < before;
        }
        self.contents.turns.clear();
        self.contents.entities.clear();
        self.contents.record.kept = 0;
        !self.contents.record.session.is_empty()
    }

    /// Returns the entry for the log; a whole one if it `is_due`.
    pub(super) fn entry(&self, is_due: bool) -> Result<SessionEntry, StoreError> {
        let is_whole = self.is_whole || is_due;
        let body = match &*self.new {
            _ if is_whole => {
                let turns = self.contents.turns.iter();
                let turns = turns.map(|it| Item::Turn(Cow::Borrowed(&**it)));
                let entities = self.contents.entities.iter();
                let entities = entities.map(|it| Item::Entity(Cow::Borrowed(it)));
                serde_json::to_vec(&turns.chain(entities).collect::<Vec<_>>())?
            }
            [] => Vec::new(),
            new => serde_json::to_vec(new)?,
        };
        let data = serde_json::to_vec(&self.contents.record)?.into();
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
