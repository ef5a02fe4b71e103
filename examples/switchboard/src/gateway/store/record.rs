//! [`Record`]: what all nodes know of a session without its turns, and who may change it. It reads no clock
//! and does no IO: a node changes a copy and writes it by compare-and-set.

use rpc_core::store::SessionHead;
use serde::{Deserialize, Serialize};

use super::{Commit, StoreError};

/// How many of the last commits are known by their ids: more than there can be between a write with
/// an unknown outcome and the look at what came of it.
const MAX_DONE: usize = 16;

/// A turn that runs or waits in the queue of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TurnId {
    pub(super) node: String,
    /// A number that the node uses once.
    pub(super) number: u64,
}

/// A known session. All that its queue says is for the store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    /// The key of the session: the name of the record may be its hash.
    pub session: String,
    /// When it began, in seconds since 1970.
    pub created: u64,
    /// When it was last used, in seconds since 1970.
    pub active: u64,
    /// How many turns there were. Some may be forgotten already.
    pub count: u64,
    /// How many of them are kept.
    pub kept: u64,
    /// How many tokens it used.
    pub tokens: u64,
    /// The turns that run or wait, in the order of arrival. The first one runs.
    #[serde(rename = "line")]
    pub(super) queue: Vec<TurnId>,
    /// The ids of the last commits.
    pub(super) done: Vec<String>,
}

impl Record {
    /// Returns the record in the head of an entry; `None` if it cannot be read.
    pub(super) fn in_head(head: &SessionHead) -> Option<Self> {
        rpc_core::json::from_slice(&head.data).ok()
    }

    /// Puts a turn at the end of the queue, unless it is there already.
    pub(super) fn enter(&mut self, session: &str, turn_id: &TurnId, now: u64) {
        self.begin(session, now);
        if !self.queue.contains(turn_id) {
            self.queue.push(turn_id.clone());
        }
    }

    fn begin(&mut self, session: &str, now: u64) {
        if self.session.is_empty() {
            (self.session, self.created) = (session.to_owned(), now);
        }
        self.active = self.active.max(now);
    }

    /// Renames a turn, if it is in the queue.
    pub(super) fn replace(&mut self, former: &TurnId, turn_id: &TurnId) {
        if let Some(found) = self.queue.iter_mut().find(|it| *it == former) {
            found.clone_from(turn_id);
        }
    }

    /// Returns whether this turn runs.
    pub(super) fn is_running(&self, turn_id: &TurnId) -> bool {
        self.queue.first() == Some(turn_id)
    }

    /// Returns the nodes whose turns come before this one.
    pub(super) fn nodes_before(&self, turn_id: &TurnId) -> Vec<String> {
        let before = self.queue.iter().take_while(|it| *it != turn_id);
        let others = before.filter(|it| it.node != turn_id.node);
        let mut nodes: Vec<_> = others.map(|it| it.node.clone()).collect();
        nodes.dedup();
        nodes
    }

    /// Takes nodes that are gone out of the queue.
    pub(super) fn remove_nodes(&mut self, gone: &[String]) {
        self.queue.retain(|turn_id| !gone.contains(&turn_id.node));
    }

    /// Returns whether this commit is in the record.
    pub(super) fn has(&self, id: &str) -> bool {
        self.done.iter().any(|it| it == id)
    }

    /// Counts the tokens of a run, and ends its turn unless it goes on. A gateway alone has no `turn_id`.
    ///
    /// # Errors
    /// [`StoreError::PastOwner`] if there is an answer to remember, and the turn no longer runs. The tokens are
    /// counted all the same: commit without the answer.
    pub(super) fn commit(
        &mut self,
        id: &str,
        commit: &Commit,
        turn_id: Option<&TurnId>,
    ) -> Result<(), StoreError> {
        let runs = turn_id.is_none_or(|turn_id| self.is_running(turn_id));
        if commit.turn.is_some() && !runs {
            return Err(StoreError::PastOwner);
        }
        self.begin(&commit.session, commit.at);
        for entry in &commit.usage {
            self.tokens = self.tokens.saturating_add(entry.tokens());
        }
        if commit.goes_on {
            self.tokens = self.tokens.saturating_add(commit.noted);
        } else {
            self.tokens = self.tokens.saturating_sub(commit.noted);
            self.queue.retain(|it| Some(it) != turn_id);
        }
        self.done.push(id.to_owned());
        let surplus = self.done.len().saturating_sub(MAX_DONE);
        self.done.drain(..surplus);
        Ok(())
    }
}
