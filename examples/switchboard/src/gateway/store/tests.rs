//! What is kept, and for how long; in memory.

mod files;

use std::sync::Arc;

use rpc_core::store::MemoryStore;

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

async fn open(limits: StoreLimits) -> Arc<GatewayStore> {
    let config = GatewayStoreConfig::default().with_limits(limits);
    let store = GatewayStore::open(Arc::new(MemoryStore::new()), config, || 0).await;
    store.unwrap()
}

async fn commit(store: &GatewayStore, commits: impl IntoIterator<Item = Commit>) {
    for commit in commits {
        store.commit(commit, None).await.unwrap();
    }
}

async fn questions(store: &GatewayStore, session: &str, max: usize) -> Vec<String> {
    let turns = store.recall(session, None, max).await.unwrap();
    turns.into_iter().map(|turn| turn.user).collect()
}

async fn sessions(store: &GatewayStore) -> Vec<String> {
    let sessions = store.sessions(9).await.unwrap();
    sessions.into_iter().map(|it| it.session).collect()
}

#[tokio::test(start_paused = true)]
async fn turns_are_recalled_in_order_and_only_the_last() {
    let store = open(StoreLimits::default()).await;
    commit(&store, (0..7).map(|number| turn("s", number))).await;
    assert_eq!(questions(&store, "s", 3).await, ["q4", "q5", "q6"]);
    assert_eq!(questions(&store, "s", 0).await, [""; 0]);
    assert_eq!(questions(&store, "s", 100).await.len(), 7);
    assert_eq!(questions(&store, "other", 5).await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_turn_takes_the_place_of_the_last_one_with_its_name() {
    let named = |user: &str, id: Option<&str>| {
        let turn = Turn::new(user, "a", 1).map(|turn| turn.with_id(id));
        Commit::new("s", 1).with_turn(turn)
    };
    let store = open(StoreLimits::default().with_turns(3)).await;
    let turns = [
        named("q0", None),
        named("q1", None),
        named("q2", Some("x")),
        named("q3", Some("x")),
    ];
    commit(&store, turns).await;
    assert_eq!(questions(&store, "s", 9).await, ["q0", "q1", "q3"]);
    commit(&store, [named("q4", Some("y")), named("q5", Some("x"))]).await;
    assert_eq!(questions(&store, "s", 9).await, ["q3", "q4", "q5"]);
    // Also where there is no other.
    store.forget("s", Forget::Turns).await.unwrap();
    commit(&store, [named("q6", Some("x")), named("q7", Some("x"))]).await;
    assert_eq!(questions(&store, "s", 9).await, ["q7"]);
}

#[tokio::test(start_paused = true)]
async fn a_session_is_forgotten_with_its_tokens_and_its_turns_without() {
    let store = open(StoreLimits::default()).await;
    for session in ["s", "t"] {
        commit(&store, [turn(session, 1), used(session, 1, 9)]).await;
    }
    assert_eq!(store.forget("s", Forget::Turns).await, Ok(true));
    assert_eq!(questions(&store, "s", 9).await, [""; 0]);
    assert_eq!(store.used(Some("s")).await.unwrap().0, 9);
    assert_eq!(store.forget("s", Forget::All).await, Ok(true));
    assert_eq!(sessions(&store).await, ["t"]);
    for what in [Forget::Turns, Forget::All] {
        assert_eq!(store.forget("s", what).await, Ok(false));
    }
    commit(&store, [turn("s", 2)]).await;
    assert_eq!(questions(&store, "s", 9).await, ["q2"]);
    assert_eq!(store.used(Some("s")).await.unwrap().0, 0);
}

#[tokio::test(start_paused = true)]
async fn old_turns_are_forgotten_by_number_and_by_size() {
    let store = open(StoreLimits::default().with_turns(3)).await;
    commit(&store, (0..5).map(|number| turn("s", number))).await;
    assert_eq!(questions(&store, "s", 100).await, ["q2", "q3", "q4"]);
    let info = store.sessions(1).await.unwrap().remove(0);
    assert_eq!((info.count, info.kept), (5, 3));
    let store = open(StoreLimits::default().with_session_bytes(1)).await;
    commit(&store, [turn("s", 0), turn("s", 1)]).await;
    assert_eq!(questions(&store, "s", 100).await, ["q1"]);
}

#[tokio::test(start_paused = true)]
async fn long_texts_are_cut_between_characters() {
    let store = open(StoreLimits::default().with_text_bytes(5)).await;
    let long = Commit::new("s", 1).with_turn(Turn::new("éééé", "abcdefg", 1));
    commit(&store, [long]).await;
    let turns = store.recall("s", None, 1).await.unwrap();
    assert_eq!(turns, [Turn::new("éé", "abcde", 1).unwrap()]);
}

#[tokio::test(start_paused = true)]
async fn the_sessions_that_were_silent_longest_are_forgotten_within_a_minute() {
    let store = open(StoreLimits::default().with_sessions(2)).await;
    commit(&store, [turn("a", 1), turn("b", 2), turn("a", 3)]).await;
    commit(&store, [turn("c", 4)]).await;
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    assert_eq!(sessions(&store).await, ["c", "a"]);
    assert_eq!(questions(&store, "b", 5).await, [""; 0]);
    assert_eq!(questions(&store, "a", 5).await, ["q1", "q3"]);
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_back_makes_no_session_older() {
    let store = open(StoreLimits::default()).await;
    commit(&store, [turn("a", 100), turn("a", 1)]).await;
    let info = store.sessions(1).await.unwrap().remove(0);
    assert_eq!((info.created, info.active, info.count), (100, 100, 2));
    assert_eq!(store.session_count(100).await, Ok(1));
    assert_eq!(store.session_count(101).await, Ok(0));
}

#[tokio::test(start_paused = true)]
async fn the_log_of_usage_keeps_the_newest_entries() {
    let store = open(StoreLimits::default().with_usage(3)).await;
    commit(&store, (0..5).map(|number| used("s", number, number))).await;
    let tokens =
        |entries: Vec<UsageEntry>| -> Vec<u64> { entries.iter().map(UsageEntry::tokens).collect() };
    assert_eq!(tokens(store.usage(10).await.unwrap()), [4, 3, 2]);
    assert_eq!(tokens(store.usage(1).await.unwrap()), [4]);
}
