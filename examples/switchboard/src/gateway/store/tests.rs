//! What is kept, for how long, and what happens when a file is not as it should be.

mod disk;
mod files;
mod keeping;
mod model;

use super::scratch::Folder;
use super::*;

/// A commit with a turn whose texts follow from its number.
fn turn(session: &str, number: u64) -> Commit {
    let turn = Turn::new(format!("q{number}"), format!("a{number}"), number);
    Commit::new(session, number).with_turn(turn)
}

fn used(session: &str, at: u64, tokens: u64) -> Commit {
    let entry = UsageEntry::new(at, session, "agent").with_tokens(tokens, 0);
    Commit::new(session, at).with_usage(entry)
}

fn questions(store: &dyn Store, session: &str, max: usize) -> Vec<String> {
    let turns = store.recall(session, max).unwrap();
    turns.into_iter().map(|turn| turn.user).collect()
}

fn memory(limits: StoreLimits) -> EmbeddedStore {
    EmbeddedStore::in_memory(limits).unwrap()
}

#[test]
fn turns_are_recalled_in_order_and_only_the_last() {
    let store = memory(StoreLimits::default());
    for number in 0..7 {
        store.commit(&[turn("s", number)]).unwrap();
    }
    assert_eq!(questions(&store, "s", 3), ["q4", "q5", "q6"]);
    assert_eq!(questions(&store, "s", 0), [""; 0]);
    assert_eq!(questions(&store, "s", 100).len(), 7);
    assert_eq!(store.recall("other", 5), Ok(Vec::new()));
}

#[test]
fn a_turn_takes_the_place_of_the_last_one_with_its_name() {
    let named = |user: &str, id: Option<&str>| {
        let turn = Turn::new(user, "a", 1).map(|turn| turn.with_id(id));
        Commit::new("s", 1).with_turn(turn)
    };
    let store = memory(StoreLimits::default().with_turns(3));
    for (user, id) in [
        ("q0", None),
        ("q1", None),
        ("q2", Some("x")),
        ("q3", Some("x")),
    ] {
        store.commit(&[named(user, id)]).unwrap();
    }
    assert_eq!(questions(&store, "s", 9), ["q0", "q1", "q3"]);
    store
        .commit(&[named("q4", Some("y")), named("q5", Some("x"))])
        .unwrap();
    assert_eq!(questions(&store, "s", 9), ["q3", "q4", "q5"]);
    // Also where there is no other.
    store.forget("s", Forget::Turns).unwrap();
    store
        .commit(&[named("q6", Some("x")), named("q7", Some("x"))])
        .unwrap();
    assert_eq!(questions(&store, "s", 9), ["q7"]);
}

#[test]
fn a_session_can_be_forgotten() {
    let store = memory(StoreLimits::default());
    for session in ["s", "t"] {
        store.commit(&[turn(session, 1)]).unwrap();
    }
    assert!(store.forget("s", Forget::All).unwrap());
    assert_eq!(store.recall("s", 9), Ok(Vec::new()));
    let known: Vec<_> = store
        .sessions(9)
        .unwrap()
        .into_iter()
        .map(|it| it.session)
        .collect();
    assert_eq!(known, ["t"]);
    assert!(!store.forget("s", Forget::All).unwrap());
}

#[test]
fn forgets_the_longest_silent_sessions_if_there_are_too_many_bytes() {
    let folder = Folder::new();
    let size = serde_json::to_vec(&turn("", 1).turn).unwrap().len() as u64;
    let limits = StoreLimits::default().with_total_bytes(4 * size);
    let store = EmbeddedStore::open(folder.path(), limits).unwrap();
    for (session, number) in [("a", 1), ("b", 2), ("a", 3), ("b", 4)] {
        store.commit(&[turn(session, number)]).unwrap();
    }
    assert_eq!(store.session_count(0), Ok(2));
    // What is forgotten makes room, also for those who open the file later.
    assert!(store.forget("b", Forget::Turns).unwrap());
    drop(store);
    let store = EmbeddedStore::open(folder.path(), limits).unwrap();
    store.commit(&[turn("b", 5), turn("c", 6)]).unwrap();
    assert_eq!(store.session_count(0), Ok(3));
    store.commit(&[turn("b", 7)]).unwrap();
    assert_eq!(questions(&store, "a", 9), [""; 0]);
    assert_eq!(questions(&store, "b", 9), ["q5", "q7"]);
    assert_eq!(questions(&store, "c", 9), ["q6"]);
    // The last one stays, however large it is.
    drop(store);
    let store = EmbeddedStore::open(folder.path(), limits.with_total_bytes(0)).unwrap();
    assert_eq!(store.session_count(0), Ok(1));
    assert_eq!(questions(&store, "b", 9), ["q5", "q7"]);
}

#[test]
fn old_turns_are_forgotten_by_number_and_by_size() {
    let store = memory(StoreLimits::default().with_turns(3));
    for number in 0..5 {
        store.commit(&[turn("s", number)]).unwrap();
    }
    assert_eq!(questions(&store, "s", 100), ["q2", "q3", "q4"]);
    assert_eq!(store.sessions(1).unwrap()[0].turns, 5);
    let store = memory(StoreLimits::default().with_session_bytes(100));
    for number in 0..5 {
        store.commit(&[turn("s", number)]).unwrap();
    }
    assert_eq!(questions(&store, "s", 100), ["q3", "q4"]);
    let store = memory(StoreLimits::default().with_session_bytes(1));
    store.commit(&[turn("s", 0), turn("s", 1)]).unwrap();
    assert_eq!(questions(&store, "s", 100), ["q1"]);
}

#[test]
fn long_texts_are_cut_between_characters() {
    let store = memory(StoreLimits::default().with_text_bytes(5));
    let turn = Turn::new("éééé", "abcdefg", 1);
    store
        .commit(&[Commit::new("s", 1).with_turn(turn)])
        .unwrap();
    let turns = store.recall("s", 1).unwrap();
    assert_eq!(turns, [Turn::new("éé", "abcde", 1).unwrap()]);
}

#[test]
fn the_session_that_was_silent_longest_is_forgotten() {
    let store = memory(StoreLimits::default().with_sessions(2));
    store
        .commit(&[turn("a", 1), turn("b", 2), turn("a", 3)])
        .unwrap();
    store.commit(&[turn("c", 4)]).unwrap();
    let names = store.sessions(10).unwrap();
    let names: Vec<_> = names.iter().map(|info| info.session.as_str()).collect();
    assert_eq!(names, ["c", "a"]);
    assert_eq!(store.session_count(0).unwrap(), 2);
    assert!(questions(&store, "b", 5).is_empty());
    assert_eq!(questions(&store, "a", 5), ["q1", "q3"]);
}

#[test]
fn a_clock_that_is_set_back_changes_no_order() {
    let store = memory(StoreLimits::default().with_sessions(2));
    store
        .commit(&[turn("a", 100), turn("b", 50), turn("a", 1)])
        .unwrap();
    assert_eq!(questions(&store, "a", 5), ["q100", "q1"]);
    let info = &store.sessions(1).unwrap()[0];
    let found = (info.session.as_str(), info.created, info.active, info.turns);
    assert_eq!(found, ("a", 100, 100, 2));
    store.commit(&[turn("c", 60)]).unwrap();
    assert!(questions(&store, "b", 5).is_empty());
}

#[test]
fn tokens_are_counted_by_session_and_day() {
    let store = memory(StoreLimits::default().with_days(2));
    let day = 86_400;
    store
        .commit(&[used("a", 5, 10), used("b", day - 1, 1)])
        .unwrap();
    store.commit(&[used("a", day, 100), turn("c", 7)]).unwrap();
    let expected = Totals {
        sessions: vec![("a".to_owned(), 110), ("b".to_owned(), 1)],
        days: vec![(0, 11), (1, 100)],
    };
    assert_eq!(store.totals().unwrap(), expected);
    store.commit(&[used("a", 9 * day, 1)]).unwrap();
    assert_eq!(store.totals().unwrap().days, [(1, 100), (9, 1)]);
    store.commit(&[used("a", 9 * day, u64::MAX)]).unwrap();
    assert_eq!(store.totals().unwrap().days, [(1, 100), (9, u64::MAX)]);
}

#[test]
fn the_log_of_usage_keeps_the_newest_entries() {
    let store = memory(StoreLimits::default().with_usage(3));
    for number in 0..5 {
        store.commit(&[used("s", number, number)]).unwrap();
    }
    let tokens = |max| {
        let entries = store.usage(max).unwrap();
        entries.iter().map(UsageEntry::tokens).collect::<Vec<_>>()
    };
    assert_eq!(tokens(10), [4, 3, 2]);
    assert_eq!(tokens(1), [4]);
}

#[test]
fn a_forgotten_session_keeps_its_tokens() {
    let store = memory(StoreLimits::default());
    store.commit(&[turn("s", 1), used("s", 1, 9)]).unwrap();
    assert!(store.forget("s", Forget::Turns).unwrap());
    assert!(!store.forget("t", Forget::Turns).unwrap());
    assert_eq!(questions(&store, "s", 5), [""; 0]);
    assert_eq!(store.totals().unwrap().sessions, [("s".to_owned(), 9)]);
    store.commit(&[turn("s", 2)]).unwrap();
    assert_eq!(questions(&store, "s", 5), ["q2"]);
}
