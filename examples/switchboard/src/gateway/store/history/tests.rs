//! Sessions of many nodes, as their logs tell them.

use proptest::prelude::*;

use super::*;
use crate::gateway::usage::UsageEntry;

fn turn_id(node: &str, number: u64) -> TurnId {
    let node = node.to_owned();
    TurnId { node, number }
}

fn said(text: &str) -> Commit {
    let usage = UsageEntry::new(5, "s", "a").with_tokens(2, 1);
    Commit::new("s", 5)
        .with_turn(Turn::new("q", text, 5))
        .with_usage(usage)
}

const LIMITS: fn() -> StoreLimits = StoreLimits::default;

/// The log of a session.
#[derive(Default)]
struct Written {
    messages: Vec<Bytes>,
    /// From where on it is needed.
    needed: usize,
}

impl Written {
    /// Appends an entry of whoever knows all.
    fn append(&mut self, history: &mut History, entry: &Entry, most: usize) {
        let first = self.messages.len();
        for message in history.messages(entry, most).unwrap() {
            self.messages.push(message.clone());
            let number = self.messages.len() as u64;
            history
                .take(number, Str::EMPTY, &message, LIMITS())
                .unwrap();
        }
        if entry.is_all() {
            self.needed = first;
        }
    }

    fn bytes(&self) -> usize {
        self.messages.iter().map(Bytes::len).sum()
    }

    /// What a node reads that knows nothing, from this message to that one.
    fn read(&self, from: usize, to: usize) -> History {
        let mut history = History::default();
        for (number, message) in (1..).zip(&self.messages).skip(from).take(to - from) {
            history.take(number, Str::EMPTY, message, LIMITS()).unwrap();
        }
        history
    }
}

/// Enters and ends a turn.
fn turn(written: &mut Written, history: &mut History, number: u64, text: &str) {
    let turn_id = turn_id("a", number);
    let mut record = history.record.clone();
    record.enter("s", &turn_id, 1);
    written.append(history, &Entry::of(record), 200);
    let entry = history.commit(&number.to_string(), &said(text), Some(&turn_id), LIMITS());
    written.append(history, &entry.unwrap(), 200);
    if history.is_long() {
        let all = history.all();
        written.append(history, &all, 200);
    }
}

#[test]
fn a_turn_writes_as_much_in_a_long_session_as_in_a_short_one() {
    let (mut written, mut history) = (Written::default(), History::default());
    let text = "word ".repeat(100);
    let mut bytes = Vec::new();
    for number in 0..200 {
        turn(&mut written, &mut history, number, &text);
        bytes.push(written.bytes());
    }
    assert!(bytes[199] < 6 * bytes[49], "{} {}", bytes[49], bytes[199]);
    assert_eq!(history.last_turns(999).len(), 200);
    let kept: usize = written.messages[written.needed..]
        .iter()
        .map(Bytes::len)
        .sum();
    assert!(kept < 5 * 200 * text.len(), "{kept}");
}

#[test]
fn a_node_reads_the_same_session_after_any_message_purged_or_not() {
    let (mut written, mut history) = (Written::default(), History::default());
    for number in 0..60 {
        let text = "x".repeat(usize::try_from(number).unwrap() * 20);
        let before = written.needed;
        turn(&mut written, &mut history, number, &text);
        let to = written.messages.len();
        let whole = written.read(0, to);
        assert_eq!(whole, history);
        assert_eq!(written.read(written.needed, to), history);
        // What is not whole leaves the session as it was.
        if written.needed == before {
            let cut = written.read(0, to - 1);
            assert!(cut.record.kept + 1 >= history.record.kept);
            assert_eq!(cut.record.kept, cut.last_turns(999).len() as u64);
        }
    }
    assert!(written.needed > 0);
}

#[test]
fn turns_run_in_the_order_in_which_their_nodes_came() {
    let mut record = Record::default();
    let [a, b, c] = [turn_id("a", 1), turn_id("b", 1), turn_id("c", 1)];
    for turn_id in [&a, &b, &c, &b] {
        record.enter("s", turn_id, 7);
    }
    assert!(record.is_running(&a) && !record.is_running(&b));
    assert_eq!(record.nodes_before(&c), ["a", "b"]);
    record.remove_nodes(&["b".to_owned()]);
    record.commit("1", &said("x"), Some(&a)).unwrap();
    assert!(record.is_running(&c));
    assert_eq!((record.created, record.tokens), (7, 3));
}

#[test]
fn a_turn_that_was_given_to_another_node_is_not_stored_but_its_tokens_count() {
    let mut record = Record::default();
    let [a, b] = [turn_id("a", 1), turn_id("b", 1)];
    record.enter("s", &a, 1);
    record.enter("s", &b, 1);
    record.remove_nodes(&["a".to_owned()]);
    let before = record.clone();
    let late = record.commit("1", &said("late"), Some(&a));
    assert_eq!((late, &record), (Err(PastOwner), &before));
    let tokens = said("late").with_turn(None);
    record.commit("1", &tokens, Some(&a)).unwrap();
    assert_eq!(record.tokens, 3);
    assert!(record.is_running(&b));
}

#[test]
fn a_node_that_comes_back_under_a_new_id_keeps_its_place_if_it_still_has_it() {
    let mut record = Record::default();
    let [a, b, c, d] = [
        turn_id("a", 1),
        turn_id("b", 1),
        turn_id("c", 2),
        turn_id("d", 3),
    ];
    record.enter("s", &a, 1);
    record.enter("s", &b, 1);
    record.replace(&a, &c);
    record.enter("s", &c, 1);
    assert_eq!(record.queue, [c.clone(), b.clone()]);
    record.remove_nodes(&["c".to_owned()]);
    record.replace(&c, &d);
    record.enter("s", &d, 1);
    assert_eq!(record.queue, [b, d]);
}

#[test]
fn a_commit_is_known_by_its_id_for_a_while() {
    let mut record = Record::default();
    for number in 0..17 {
        let tokens = said("").with_turn(None);
        record.commit(&number.to_string(), &tokens, None).unwrap();
    }
    assert!(!record.has("0") && record.has("1"));
}

#[test]
fn the_oldest_turns_are_dropped_but_never_the_last() {
    let turns = |texts: &[&str]| -> Vec<Arc<Turn>> {
        let turns = texts.iter().map(|text| Turn::new("", *text, 1));
        turns.flatten().map(Arc::new).collect()
    };
    let mut kept = turns(&["1", "2", "3"]);
    fit(&mut kept, LIMITS().with_turns(2));
    assert_eq!(kept, turns(&["2", "3"]));
    let bytes = fit(&mut kept, LIMITS().with_session_bytes(70));
    assert_eq!((kept, bytes), (turns(&["3"]), 65));
    let long = "x".repeat(100);
    let mut kept = turns(&["1", &long]);
    fit(&mut kept, LIMITS().with_session_bytes(70));
    assert_eq!(kept, turns(&[&long]));
}

proptest! {
    #[test]
    fn arbitrary_messages_never_panic(message in any::<Vec<u8>>()) {
        let _ = History::default().take(1, Str::EMPTY, &message, LIMITS());
    }

    /// Three nodes with copies of different ages: only the write over the last revision counts.
    #[test]
    fn one_turn_at_a_time_runs_and_none_is_lost_or_doubled(
        steps in prop::collection::vec((0_usize..3, 0_u8..6), 0..200),
    ) {
        let nodes = ["a", "b", "c"];
        let (mut written, mut stored) = (Written::default(), History::default());
        let mut copies = vec![History::default(); 3];
        let mut turn_ids: Vec<Option<TurnId>> = vec![None; 3];
        let (mut number, mut said_by) = (0, Vec::new());
        for (at, action) in steps {
            number += 1;
            let copy = copies[at].clone();
            let mut record = copy.record.clone();
            let mut ended = None;
            let entry = match (action, turn_ids[at].clone()) {
                (0, None) => {
                    let turn_id = turn_id(nodes[at], number);
                    record.enter("s", &turn_id, 1);
                    turn_ids[at] = Some(turn_id);
                    Entry::of(record)
                }
                (1, Some(turn_id)) => {
                    record.enter("s", &turn_id, 1);
                    Entry::of(record)
                }
                (2 | 3, Some(turn_id)) => {
                    let text = number.to_string();
                    let Ok(entry) = copy.commit(&text, &said(&text), Some(&turn_id), LIMITS()) else {
                        copies[at] = stored.clone();
                        continue;
                    };
                    ended = Some(text);
                    entry
                }
                (4, _) => {
                    record.remove_nodes(&[nodes[(at + 1) % 3].to_owned()]);
                    Entry::of(record)
                }
                _ => {
                    copies[at] = stored.clone();
                    continue;
                }
            };
            if copy.revision == stored.revision {
                written.append(&mut stored, &entry, 200);
                if let Some(text) = ended {
                    said_by.push(text);
                    turn_ids[at] = None;
                }
            }
            copies[at] = stored.clone();
        }
        let told = stored.last_turns(999).into_iter().map(|turn| turn.assistant);
        prop_assert_eq!(told.collect::<Vec<_>>(), said_by);
    }
}
