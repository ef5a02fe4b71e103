//! [`Record`]: what all nodes know of a session, and who may change it. It reads no clock and does
//! no IO: a node changes a copy and writes it by compare-and-set.

use std::mem;

use serde::{Deserialize, Serialize};

use crate::gateway::memory::{Fact, Turn, learn};
use crate::gateway::store::{Commit, StoreLimits};

/// Most bytes of turns that are in the record itself. More of them move to a [`Segment`].
const MAX_INLINE: usize = 16 * 1024;
/// How many of the last commits are known by their ids: more than there can be between a write with
/// an unknown outcome and the look at what came of it.
const MAX_DONE: usize = 16;

/// A turn that runs or waits: the place of a node in the line of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    /// The node.
    pub(super) node: String,
    /// A number that the node uses once.
    pub(super) number: u64,
}

/// Turns that are kept in a value of their own, or in several.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Segment {
    pub(super) id: String,
    pub(super) turns: u64,
    pub(super) bytes: u64,
    /// How many values it is cut into.
    pub(super) chunks: usize,
}

/// The record of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Record {
    /// The key of the session: the name of the record may be its hash.
    pub(super) session: String,
    /// When it began, in seconds since 1970.
    pub(super) created: u64,
    /// When it was last used, in seconds since 1970.
    pub(super) active: u64,
    /// How many turns there were.
    pub(super) count: u64,
    /// How many tokens it used.
    pub(super) tokens: u64,
    /// The turns that run or wait, in the order of arrival. The first one runs.
    pub(super) line: Vec<Place>,
    /// The ids of the last commits.
    done: Vec<String>,
    /// The older turns, oldest first.
    pub(super) segments: Vec<Segment>,
    /// The last turns, oldest first.
    pub(super) recent: Vec<Turn>,
    /// What is known about the user, oldest first.
    pub(super) facts: Vec<Fact>,
}

/// The error of a commit whose turn was given to another node, because this one counted as gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PastOwner;

/// What has to be written and deleted beside a changed record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Beside {
    /// Turns to write as a segment before the record is written. Its entry has to be added.
    pub(super) spilled: Vec<Turn>,
    /// Segments to delete after that.
    pub(super) dropped: Vec<Segment>,
}

impl Record {
    /// Takes a place at the end of the line, unless it is there already.
    pub(super) fn enter(&mut self, session: &str, place: &Place, now: u64) {
        if self.session.is_empty() {
            (self.session, self.created) = (session.to_owned(), now);
        }
        self.active = self.active.max(now);
        if !self.line.contains(place) {
            self.line.push(place.clone());
        }
    }

    /// Puts a place where another one of the same turn is, if that one is there.
    pub(super) fn replace(&mut self, former: &Place, place: &Place) {
        if let Some(found) = self.line.iter_mut().find(|it| *it == former) {
            found.clone_from(place);
        }
    }

    pub(super) fn leave(&mut self, place: &Place) {
        self.line.retain(|it| it != place);
    }

    /// Returns whether this turn runs.
    pub(super) fn is_running(&self, place: &Place) -> bool {
        self.line.first() == Some(place)
    }

    /// Returns the nodes whose turns come before this one.
    pub(super) fn nodes_before(&self, place: &Place) -> Vec<String> {
        let before = self.line.iter().take_while(|it| *it != place);
        let others = before.filter(|it| it.node != place.node);
        let mut nodes: Vec<_> = others.map(|it| it.node.clone()).collect();
        nodes.dedup();
        nodes
    }

    /// Takes nodes that are gone out of the line.
    pub(super) fn remove_nodes(&mut self, gone: &[String]) {
        self.line.retain(|place| !gone.contains(&place.node));
    }

    /// Returns whether this commit is in the record.
    pub(super) fn has(&self, id: &str) -> bool {
        self.done.iter().any(|it| it == id)
    }

    /// Adds the results of a run, and ends its turn.
    ///
    /// # Errors
    /// [`PastOwner`] if there is an answer to remember, and the turn no longer runs. The tokens are
    /// counted all the same: commit without the answer.
    pub(super) fn commit(
        &mut self,
        id: &str,
        commit: &Commit,
        place: Option<&Place>,
        limits: StoreLimits,
    ) -> Result<Beside, PastOwner> {
        let mut beside = Beside::default();
        let runs = place.is_some_and(|place| self.is_running(place));
        if commit.turn.is_some() && !runs {
            return Err(PastOwner);
        }
        if self.session.is_empty() {
            (self.session, self.created) = (commit.session.clone(), commit.at);
        }
        self.active = self.active.max(commit.at);
        for entry in &commit.usage {
            self.tokens = self.tokens.saturating_add(entry.tokens());
        }
        learn(&mut self.facts, commit.facts.clone(), limits.facts);
        if let Some(turn) = &commit.turn {
            self.recent
                .push(turn.shortened(limits.text_bytes).into_owned());
            self.count += 1;
            if self.recent.iter().map(size).sum::<usize>() > MAX_INLINE {
                beside.spilled = mem::take(&mut self.recent);
            }
            beside.dropped = self.trim(limits, beside.spilled.len() as u64);
        }
        if let Some(place) = place {
            self.leave(place);
        }
        self.done.push(id.to_owned());
        let surplus = self.done.len().saturating_sub(MAX_DONE);
        self.done.drain(..surplus);
        Ok(beside)
    }

    /// Drops the oldest segments that are not needed for the turns to keep.
    fn trim(&mut self, limits: StoreLimits, spilled: u64) -> Vec<Segment> {
        let mut dropped = Vec::new();
        loop {
            let turns = self.kept() + spilled;
            let bytes: u64 = self.segments.iter().map(|it| it.bytes).sum();
            let Some(oldest) = self.segments.first() else {
                return dropped;
            };
            if turns - oldest.turns < limits.turns && bytes <= limits.session_bytes {
                return dropped;
            }
            dropped.push(self.segments.remove(0));
        }
    }

    /// Forgets the turns. Returns the segments to delete.
    pub(super) fn forget(&mut self) -> Vec<Segment> {
        self.recent.clear();
        mem::take(&mut self.segments)
    }

    /// Returns about how many bytes it takes without its segments.
    pub(super) fn size(&self) -> u64 {
        self.recent.iter().map(|turn| size(turn) as u64).sum()
    }

    /// Returns how many turns are kept.
    pub(super) fn kept(&self) -> u64 {
        let turns: u64 = self.segments.iter().map(|it| it.turns).sum();
        turns + self.recent.len() as u64
    }
}

/// Returns about how many bytes a turn takes.
fn size(turn: &Turn) -> usize {
    turn.user.len() + turn.assistant.len() + 64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::gateway::usage::UsageEntry;

    fn place(node: &str, number: u64) -> Place {
        let node = node.to_owned();
        Place { node, number }
    }

    fn said(text: &str) -> Commit {
        let usage = UsageEntry::new(5, "s", "a").with_tokens(2, 1, None);
        Commit::new("s", "a", 5)
            .with_turn(Turn::new("q", text, 5))
            .with_usage(usage)
    }

    const LIMITS: fn() -> StoreLimits = StoreLimits::default;

    #[test]
    fn turns_run_in_the_order_in_which_their_nodes_came() {
        let mut record = Record::default();
        let [a, b, c] = [place("a", 1), place("b", 1), place("c", 1)];
        for place in [&a, &b, &c, &b] {
            record.enter("s", place, 7);
        }
        assert!(record.is_running(&a) && !record.is_running(&b));
        assert_eq!(record.nodes_before(&c), ["a", "b"]);
        record.leave(&b);
        record.commit("1", &said("x"), Some(&a), LIMITS()).unwrap();
        assert!(record.is_running(&c));
        assert_eq!((record.created, record.count, record.tokens), (7, 1, 3));
    }

    #[test]
    fn a_node_that_counted_as_gone_is_refused_when_it_wakes_up_and_its_tokens_count() {
        let mut record = Record::default();
        let [a, b] = [place("a", 1), place("b", 1)];
        record.enter("s", &a, 1);
        record.enter("s", &b, 1);
        record.remove_nodes(&["a".to_owned()]);
        assert!(record.is_running(&b));
        let before = record.clone();
        let late = record.commit("1", &said("late"), Some(&a), LIMITS());
        assert_eq!((late, &record), (Err(PastOwner), &before));
        let tokens = said("late").with_turn(None);
        record.commit("1", &tokens, Some(&a), LIMITS()).unwrap();
        assert_eq!((record.tokens, record.count), (3, 0));
        assert!(record.is_running(&b));
    }

    #[test]
    fn a_node_that_comes_back_under_a_new_id_keeps_its_place_if_it_still_has_it() {
        let mut record = Record::default();
        let [a, b, c, d] = [place("a", 1), place("b", 1), place("c", 2), place("d", 3)];
        record.enter("s", &a, 1);
        record.enter("s", &b, 1);
        record.replace(&a, &c);
        record.enter("s", &c, 1);
        assert_eq!(record.line, [c.clone(), b.clone()]);
        record.remove_nodes(&["c".to_owned()]);
        record.replace(&c, &d);
        record.enter("s", &d, 1);
        assert_eq!(record.line, [b, d]);
    }

    #[test]
    fn a_commit_is_known_by_its_id_for_a_while() {
        let mut record = Record::default();
        for number in 0..MAX_DONE + 1 {
            let tokens = said("").with_turn(None);
            record
                .commit(&number.to_string(), &tokens, None, LIMITS())
                .unwrap();
        }
        assert!(!record.has("0") && record.has("1"));
        assert_eq!(record.done.len(), MAX_DONE);
    }

    #[test]
    fn turns_that_are_too_many_for_the_record_move_out_of_it() {
        let mut record = Record::default();
        let a = place("a", 1);
        let long = "x".repeat(MAX_INLINE / 2);
        let mut spilled = Vec::new();
        for number in 0..3 {
            record.enter("s", &a, 1);
            let beside = record.commit(&number.to_string(), &said(&long), Some(&a), LIMITS());
            spilled.push(beside.unwrap().spilled.len());
        }
        assert_eq!((spilled, record.recent.len()), (vec![0, 2, 0], 1));
    }

    #[test]
    fn the_oldest_segments_are_dropped() {
        let limits = LIMITS().with_turns(5).with_session_bytes(100);
        let mut record = Record::default();
        let segment = |turns: u64, bytes: u64| Segment {
            turns,
            bytes,
            ..Segment::default()
        };
        record.segments = vec![segment(3, 10), segment(3, 10), segment(3, 10)];
        assert_eq!(record.trim(limits, 0), [segment(3, 10)]);
        record.segments.push(segment(1, 90));
        assert_eq!(record.trim(limits, 0).len(), 1);
        assert_eq!(record.kept(), 4);
    }

    proptest! {
        /// Three nodes with copies of different ages: only the write over the last revision counts.
        #[test]
        fn one_turn_at_a_time_runs_and_none_is_lost_or_doubled(
            steps in prop::collection::vec((0_usize..3, 0_u8..6), 0..200),
        ) {
            let nodes = ["a", "b", "c"];
            let (mut stored, mut revision) = (Record::default(), 0_u64);
            let mut copies: Vec<(Record, u64)> = vec![(Record::default(), 0); 3];
            let mut places: Vec<Option<Place>> = vec![None; 3];
            let (mut number, mut said_by) = (0, Vec::new());
            for (at, action) in steps {
                number += 1;
                let (mut copy, seen) = copies[at].clone();
                let mut ended = None;
                match (action, places[at].clone()) {
                    (0, None) => {
                        let place = place(nodes[at], number);
                        copy.enter("s", &place, 1);
                        places[at] = Some(place);
                    }
                    (1, Some(place)) => copy.enter("s", &place, 1),
                    (2 | 3, Some(place)) => {
                        let text = number.to_string();
                        if copy.commit(&text, &said(&text), Some(&place), LIMITS()).is_err() {
                            copies[at] = (stored.clone(), revision);
                            continue;
                        }
                        ended = Some(text);
                    }
                    (4, _) => {
                        let gone = nodes[(at + 1) % 3].to_owned();
                        copy.remove_nodes(&[gone]);
                    }
                    _ => {
                        copies[at] = (stored.clone(), revision);
                        continue;
                    }
                }
                if seen == revision {
                    (stored, revision) = (copy.clone(), revision + 1);
                    copies[at] = (copy, revision);
                    if let Some(text) = ended {
                        said_by.push(text);
                        places[at] = None;
                    }
                } else {
                    copies[at] = (stored.clone(), revision);
                }
            }
            let told: Vec<_> = stored.recent.iter().map(|turn| turn.assistant.clone()).collect();
            prop_assert_eq!(told, said_by);
        }
    }
}
