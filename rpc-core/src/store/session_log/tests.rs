//! Sessions on a store in memory, whose clock is paused.

use std::cell::Cell;

use super::*;
use crate::store::{Expect, MemoryStore};

const TURNS: usize = 200;

/// Lines of text.
#[derive(Clone, Debug, Default, PartialEq)]
struct Lines(Vec<String>);

impl SessionState for Lines {
    fn apply(&mut self, entry: &SessionEntry, has_gap: bool) -> bool {
        let text = std::str::from_utf8(&entry.body).ok();
        let Some(text) = text.filter(|_| !has_gap) else {
            return false;
        };
        self.0.extend(text.lines().map(str::to_owned));
        true
    }
}

async fn open(store: &MemoryStore) -> SessionLog {
    SessionLog::open(store, config()).await.unwrap()
}

fn config() -> SessionLogConfig {
    SessionLogConfig::new("lines")
}

fn entry(text: &str, is_whole: bool) -> SessionEntry {
    SessionEntry {
        head: SessionHead {
            owner: "ann".into(),
            expires: None,
            data: text
                .lines()
                .last()
                .unwrap_or_default()
                .chars()
                .take(8)
                .collect::<String>()
                .into(),
        },
        body: text.to_owned().into(),
        is_whole,
    }
}

/// Appends a line, or all of them if that is due.
async fn send(
    log: &SessionLog,
    id: &str,
    session: &mut Session<Lines>,
    line: &str,
) -> Result<(), StoreError> {
    renew(log, id, session, line, || true).await
}

async fn renew(
    log: &SessionLog,
    id: &str,
    session: &mut Session<Lines>,
    line: &str,
    is_alive: impl Fn() -> bool,
) -> Result<(), StoreError> {
    let mut next = session.state().cloned().unwrap_or_default();
    next.0.push(line.to_owned());
    let all = next.0.join("\n");
    let is_whole = log.is_due(session, all.len());
    let said = if is_whole { all } else { line.to_owned() };
    log.append(id, session, entry(&said, is_whole), next, is_alive)
        .await
}

async fn read(log: &SessionLog, id: &str) -> Session<Lines> {
    let mut session = Session::default();
    log.read(id, &mut session).await.unwrap();
    session
}

fn lines(session: &Session<Lines>) -> Vec<&str> {
    let lines = session.state().map(|state| state.0.iter());
    lines.into_iter().flatten().map(String::as_str).collect()
}

/// Copies all records to another store, but changes or leaves out one by its number.
async fn damaged(log: &SessionLog, number: u64, by: Option<&'static str>) -> SessionLog {
    let copy = open(&MemoryStore::new()).await;
    for record in log.log().read("lines.*", 0, 1000).await.unwrap() {
        let payload = match by {
            _ if record.sequence != number => record.payload,
            Some(other) => Bytes::from_static(other.as_bytes()),
            None => continue,
        };
        let expect = Expect {
            id: Some(&record.id),
            last: None,
        };
        copy.log()
            .append(&record.subject, payload, expect)
            .await
            .unwrap();
    }
    copy
}

#[tokio::test(start_paused = true)]
async fn an_entry_costs_the_same_in_long_and_short_sessions() {
    let log = open(&MemoryStore::new()).await;
    let mut session = Session::default();
    let mut bytes = Vec::new();
    for turn in 0..TURNS {
        send(
            &log,
            "s",
            &mut session,
            &format!("{turn:04} {}", "text ".repeat(40)),
        )
        .await
        .unwrap();
        bytes.push(
            log.log()
                .last("lines.s")
                .await
                .unwrap()
                .unwrap()
                .payload
                .len(),
        );
    }
    let usual = |turns: &[usize]| *turns.iter().min().unwrap();
    assert!(
        usual(&bytes[150..]) <= usual(&bytes[5..15]) + 8,
        "{bytes:?}"
    );
    // All is written as often as what there is has doubled.
    let written: usize = bytes.iter().sum();
    let said = session.state().unwrap().0.join("\n").len();
    assert!(written < 4 * said, "{written} for {said}");
    tokio::task::yield_now().await;
    let state = log.log().state().await.unwrap();
    assert!(state.bytes < 3 * said as u64, "{} for {said}", state.bytes);
    assert_eq!(lines(&read(&log, "s").await).len(), TURNS);
}

#[tokio::test(start_paused = true)]
async fn a_long_entry_is_stored_in_parts() {
    let log = open(&MemoryStore::new()).await;
    let (mut session, long) = (Session::default(), "x".repeat(3 * MAX_PART));
    send(&log, "s", &mut session, "a").await.unwrap();
    send(&log, "s", &mut session, &long).await.unwrap();
    send(&log, "s", &mut session, "b").await.unwrap();
    assert!(session.revision() > 4);
    assert_eq!(lines(&read(&log, "s").await), ["a", &long, "b"]);
}

#[tokio::test(start_paused = true)]
async fn a_torn_entry_changes_nothing() {
    let log = open(&MemoryStore::new()).await;
    let (mut session, long) = (Session::default(), "x".repeat(3 * MAX_PART));
    send(&log, "s", &mut session, "a").await.unwrap();
    let writes = Cell::new(2);
    let is_alive = || writes.replace(writes.get() - 1) > 0;
    let torn = renew(&log, "s", &mut session, &long, is_alive).await;
    assert_eq!(torn, Err(StoreError::Conflict));
    let mut next = read(&log, "s").await;
    assert_eq!((lines(&next), next.revision()), (vec!["a"], 3));
    let head = log.head("s").await.unwrap().unwrap().head.unwrap();
    assert_eq!((&head, &*head.data), (next.head(), &b"a"[..]));
    send(&log, "s", &mut next, "b").await.unwrap();
    assert_eq!(lines(&read(&log, "s").await), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_record_costs_what_follows_until_all_is_written_again() {
    let log = open(&MemoryStore::new()).await;
    let mut session = Session::default();
    for line in ["a", "b", "c", "d"] {
        send(&log, "s", &mut session, line).await.unwrap();
    }
    for by in [None, Some("junk"), Some("{\"v\":2,\"n\":3,\"bytes\":1}\n")] {
        for (number, left) in [(1, vec![]), (3, vec!["a", "b"])] {
            let log = damaged(&log, number, by).await;
            let mut found = read(&log, "s").await;
            assert_eq!(
                (lines(&found), found.is_broken()),
                (left.clone(), true),
                "{by:?}"
            );
            assert_eq!(&*found.head().data, b"d");
            assert!(found.lost() > 0);
            let (records, sessions) = log.damage().await.unwrap();
            assert_eq!((sessions, records > 0), (1, true));
            send(&log, "s", &mut found, "e").await.unwrap();
            let whole = read(&log, "s").await;
            assert_eq!(lines(&whole), [left, vec!["e"]].concat());
            assert_eq!((whole.is_broken(), whole.lost()), (false, 0));
            assert_eq!(log.damage().await, Ok((0, 0)));
        }
    }
    let log = damaged(&log, 4, Some("junk")).await;
    let found = read(&log, "s").await;
    assert_eq!(
        (lines(&found), found.is_broken()),
        (vec!["a", "b", "c"], true)
    );
    assert!(log.is_due(&found, usize::MAX >> 1));
}

#[tokio::test(start_paused = true)]
async fn a_write_after_that_of_another_node_is_a_conflict() {
    let store = MemoryStore::new();
    let (here, there) = (open(&store).await, open(&store.connect()).await);
    let mut session = Session::default();
    send(&here, "s", &mut session, "a").await.unwrap();
    let mut other = read(&there, "s").await;
    other.set_fence(7);
    send(&there, "s", &mut other, "b").await.unwrap();
    let refused = send(&here, "s", &mut session, "c").await;
    assert_eq!(refused, Err(StoreError::Conflict));
    here.read("s", &mut session).await.unwrap();
    assert_eq!((lines(&session), session.fence()), (vec!["a", "b"], 7));
    send(&here, "s", &mut session, "c").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_write_without_an_answer_is_settled_by_its_id() {
    let store = MemoryStore::new();
    let log = open(&store).await;
    let mut session = Session::default();
    for line in ["a", "b"] {
        store.lose_answers(2);
        send(&log, "s", &mut session, line).await.unwrap();
    }
    assert_eq!(lines(&read(&log, "s").await), ["a", "b"]);
    assert_eq!(log.log().state().await.unwrap().last, 2);
}

#[tokio::test(start_paused = true)]
async fn a_session_of_another_log_is_read_from_its_beginning() {
    let store = MemoryStore::new();
    let log = open(&store).await;
    let mut session = Session::default();
    send(&log, "s", &mut session, "a").await.unwrap();
    let before = store.snapshot();
    send(&log, "s", &mut session, "lost").await.unwrap();
    store.restore(&before);
    let mut other = read(&log, "s").await;
    send(&log, "s", &mut other, "b").await.unwrap();
    log.read("s", &mut session).await.unwrap();
    assert_eq!(lines(&session), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn entries_beyond_a_bound_are_refused() {
    let config = SessionLogConfig {
        max_owner_bytes: Some(3000),
        max_entry_bytes: 2500,
        ..config()
    };
    let log = SessionLog::open(&MemoryStore::new(), config).await.unwrap();
    let (mut one, mut two) = (Session::default(), Session::default());
    let long = send(&log, "1", &mut one, &"x".repeat(2501)).await;
    assert_eq!(long, Err(StoreError::TooLarge));
    send(&log, "1", &mut one, &"x".repeat(2000)).await.unwrap();
    // Also if its sizes were read.
    log.heads().await.unwrap();
    let room = 3000 - usize::try_from(one.bytes()).unwrap();
    let full = send(&log, "2", &mut two, &"x".repeat(room + 1)).await;
    assert!(matches!(full, Err(StoreError::Full { message }) if message.contains("3000")));
    send(&log, "2", &mut two, &"x".repeat(room)).await.unwrap();
    // The head may change all the same.
    let head = entry("", false);
    log.append("1", &mut one, head, Lines::default(), || true)
        .await
        .unwrap();
    let last = log.head("1").await.unwrap().unwrap();
    assert!(log.remove(&last.subject, last.revision).await.unwrap());
    send(&log, "2", &mut two, &"x".repeat(1500)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_removed_session_begins_anew() {
    let log = open(&MemoryStore::new()).await;
    let mut session = Session::default();
    send(&log, "s", &mut session, "a").await.unwrap();
    let subject = log.subject("s");
    assert!(!log.remove(&subject, session.revision() + 1).await.unwrap());
    assert!(log.remove(&subject, session.revision()).await.unwrap());
    assert_eq!(log.head("s").await, Ok(None));
    assert_eq!(
        send(&log, "s", &mut session, "b").await,
        Err(StoreError::Conflict)
    );
    log.read("s", &mut session).await.unwrap();
    send(&log, "s", &mut session, "b").await.unwrap();
    assert_eq!(lines(&read(&log, "s").await), ["b"]);
}

#[tokio::test(start_paused = true)]
async fn the_least_recently_used_sessions_are_swept_unless_they_are_in_use() {
    let log = open(&MemoryStore::new()).await;
    let long = "l".repeat(2000);
    for id in ["expired", "a", "used", "b", &long] {
        let mut said = entry(id, true);
        said.head.expires = (id == "expired").then_some(1);
        let (mut session, next) = (Session::default(), Lines::default());
        log.append(id, &mut session, said, next, || true)
            .await
            .unwrap();
    }
    let free = async |it: SessionInfo| Ok(it.id.as_deref() != Some("used"));
    assert_eq!(log.sweep(9, u64::MAX, free).await, Ok(1));
    assert_eq!(log.sweep(3, u64::MAX, free).await, Ok(1));
    let heads = log.heads().await.unwrap();
    let ids: Vec<_> = heads.iter().map(|it| it.id.as_deref().unwrap()).collect();
    assert_eq!(ids, ["used", "b", &long]);
    assert_eq!(log.sweep(9, 0, free).await, Ok(2));
}
