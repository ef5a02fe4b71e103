//! Turns, and records of sessions that many nodes change.

use super::*;
use crate::gateway::store::Learnt;
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
    assert_eq!((late, &record), (Err(StoreError::PastOwner), &before));
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
    let turns = |texts: &[&str]| {
        let turns = texts.iter().map(|text| Turn::new("", *text, 1));
        Contents {
            turns: turns.flatten().map(Arc::new).collect(),
            ..Contents::default()
        }
    };
    let limits = StoreLimits::default();
    let mut kept = turns(&["1", "2", "3"]);
    assert_eq!(kept.fit(limits.with_turns(2)), 2);
    assert_eq!(kept, turns(&["2", "3"]));
    assert_eq!(kept.fit(limits.with_session_bytes(70)), 1);
    assert_eq!(kept, turns(&["3"]));
    let long = "x".repeat(100);
    let mut kept = turns(&["1", &long]);
    assert_eq!(kept.fit(limits.with_session_bytes(70)), 1);
    assert_eq!(kept, turns(&[&long]));
}

#[test]
fn reads_turns_and_entities_as_they_were_written_also_behind_a_gap() {
    let limits = StoreLimits::default().with_turns(3);
    let mut next = Next::default();
    let (mut read, mut behind) = (Contents::default(), Contents::default());
    for number in 0..9 {
        next.new.clear();
        let (name, entity) = (number.to_string(), format!("r{}", number % 4));
        let entity = Entity::new("user", &entity, &name, number).unwrap();
        let mut commit = said(&name);
        commit.turn = commit.turn.map(|turn| turn.with_id(Some(&name)));
        commit.learnt = Some(Learnt {
            turn: name.clone(),
            entities: vec![entity],
        });
        next.commit(&name, &commit, None, limits).unwrap();
        let entry = next.entry(number == 4).unwrap();
        assert!(read.apply(&entry, false));
        assert_eq!(read, next.contents);
        if number % 2 == 0 {
            assert!(behind.apply(&entry, true));
        }
    }
    let record = &next.contents.record;
    assert_eq!((record.count, record.kept), (9, 3));
    let known = next.contents.entities.iter();
    let known: Vec<_> = known.map(|it| &*it.value).collect();
    assert_eq!(known, ["5", "6", "7", "8"]);
    let last = behind.last(9).pop();
    assert_eq!(last.map(|turn| turn.assistant).as_deref(), Some("8"));
}

#[test]
fn an_entry_that_cannot_be_read_changes_nothing() {
    let mut turns = Contents::default();
    turns.add(Turn::new("q", "a", 1).unwrap());
    let before = turns.clone();
    let mut entry = Next::default().entry(false).unwrap();
    entry.body = "[{".into();
    assert!(!turns.apply(&entry, false));
    entry.head.data = "x".into();
    assert!(!turns.apply(&entry, false));
    assert_eq!(turns, before);
}
