//! The records of sessions in a store, and the file of ConnectOnion's own hosts.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use connectonion_proto::auth::Address;
use connectonion_proto::internals::{ResultsFile, StorageError};
use connectonion_proto::net::Prompt;
use connectonion_proto::session::Owner;
use connectonion_proto::storage::{Record, RecordStatus, export, import};
use rpc_core::Json;
use rpc_core::store::{Expect, LogConfig, MemoryStore, Store};

use super::scratch::Scratch;
use super::staff;
use super::stored::{NOW, Stored};

const DAY: f64 = 86_400.0;
const ALICE: Owner = Owner::Key(Address::from_bytes([0xa1; 32]));
const BOB: Owner = Owner::Key(Address::from_bytes([0xb0; 32]));

fn prompt(id: &str, text: &str, images: &[&str]) -> Prompt {
    let mut prompt = Prompt::new(text);
    prompt.id = id.into();
    prompt.images = images.iter().map(|it| (*it).into()).collect();
    prompt
}

fn lasting(mut record: Record, expires: Option<f64>) -> Record {
    record.expires = expires;
    record
}

fn json(text: &str) -> Option<Json> {
    Some(Json::new(text).unwrap())
}

fn running(id: &str) -> Record {
    Record::new(id, RecordStatus::Running, "hello", NOW)
}

fn with_owner(mut record: Record, owner: Owner) -> Record {
    record.owner = Some(owner);
    record
}

fn with_status(mut record: Record, status: RecordStatus) -> Record {
    record.status = status;
    record
}

fn with_inputs(mut record: Record, inputs: Vec<Prompt>) -> Record {
    record.inputs = inputs;
    record
}

fn ended(record: Record, result: &str) -> Record {
    let mut record = with_status(record, RecordStatus::Done);
    record.result = Some(result.into());
    record.duration_ms = Some(14);
    record
}

fn done(id: &str, session: &str) -> Record {
    let mut record = ended(running(id), "hi");
    record.session = json(session);
    record
}

fn session(stored: &Stored, id: &str) -> Option<String> {
    let record = stored.load(id, NOW).unwrap()?;
    record.session.map(|session| session.get().to_owned())
}

#[test]
fn the_last_record_of_a_session_counts() {
    let mut stored = Stored::new();
    assert_eq!(stored.load("a", NOW).unwrap(), None);
    stored.append(&running("a")).unwrap();
    stored.append(&done("b", "{}")).unwrap();
    stored.append(&done("a", r#"{"turn":1}"#)).unwrap();
    assert_eq!(stored.restart(NOW), 0);
    let found = stored.load("a", NOW).unwrap().unwrap();
    assert_eq!(found, done("a", r#"{"turn":1}"#));
    assert_eq!(stored.load("b", NOW).unwrap().unwrap(), done("b", "{}"));
}

#[test]
fn records_round_trip() {
    let inputs = vec![
        prompt("i1", "also \"this\"\n", &[]),
        prompt("i2", "look", &["data:image/png;base64,AA=="]),
    ];
    let records = [
        with_inputs(
            with_status(running("any text\n\u{2028}\""), RecordStatus::Failed),
            inputs,
        ),
        with_owner(ended(running("x"), "\u{1f600}\r\n\0"), ALICE),
        lasting(with_owner(ended(running("x"), ""), Owner::Unsigned), None),
        with_status(running("x"), RecordStatus::Other("later".into())),
        done(
            "x",
            r#"{"messages":[{"role":"user","content":"ü"}],"n":1.50,"turn":2}"#,
        ),
        with_status(running(""), RecordStatus::WaitingApproval),
    ];
    for record in records {
        let mut stored = Stored::new();
        stored.append(&record).unwrap();
        stored.restart(NOW);
        let found = stored.load(&record.session_id, NOW).unwrap();
        assert_eq!(found.as_ref(), Some(&record));
        let line = record.to_line();
        assert!(!line.contains(['\n', '\r']), "{line}");
        assert!(
            serde_json::from_str::<serde_json::Value>(&line).is_ok(),
            "{line}"
        );
    }
}

#[test]
fn a_session_is_stored_on_one_line() {
    let pretty = "{\r\n  \"messages\": [\n],\n\"s\":\"a\\nb\"\n}";
    let mut record = running("x");
    record.session = json(pretty);
    let line = record.to_line();
    assert!(!line.contains(['\n', '\r']));
    let read = Record::parse(&line).unwrap().session.unwrap();
    let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    assert_eq!(value(read.get()), value(pretty));
}

#[test]
fn a_started_run_does_not_hide_earlier_answers() {
    let mut stored = Stored::new();
    stored.append(&done("a", r#"{"turn":1}"#)).unwrap();
    stored.append(&running("a")).unwrap();
    assert_eq!(session(&stored, "a").unwrap(), r#"{"turn":1}"#);
    assert_eq!(stored.restart(NOW), 1);
    assert_eq!(session(&stored, "a").unwrap(), r#"{"turn":1}"#);
}

#[test]
fn a_foreign_session_is_not_inherited() {
    let stored = Stored::new();
    let alice = with_owner(done("a", r#"{"secret":1}"#), ALICE);
    stored.append(&alice).unwrap();
    stored.append(&with_owner(running("a"), BOB)).unwrap();
    assert_eq!(session(&stored, "a"), None);
}

#[test]
fn a_writer_without_owners_keeps_the_owner() {
    let mut stored = Stored::new();
    stored.append(&with_owner(running("a"), ALICE)).unwrap();
    stored.append(&done("a", "{}")).unwrap();
    stored.restart(NOW);
    let found = stored.load("a", NOW).unwrap().unwrap();
    assert_eq!(found, with_owner(done("a", "{}"), ALICE));
}

#[test]
fn a_session_is_deleted_for_its_owner_alone() {
    let stored = Stored::new();
    for (id, owner) in [("a", Some(ALICE)), ("b", Some(BOB)), ("c", None)] {
        let mut record = done(id, "{}");
        record.owner = owner;
        stored.append(&record).unwrap();
        let deleted = stored.delete(id, ALICE, NOW).unwrap();
        let is_left = stored.load(id, NOW).unwrap().is_some();
        assert_eq!(is_left, owner == Some(BOB), "{id}");
        assert_eq!(deleted.is_some(), !is_left, "{id}");
    }
    // What goes on is served as before.
    stored.append(&done("b", r#"{"turn":2}"#)).unwrap();
}

#[test]
fn records_expire_and_runs_do_not() {
    let mut stored = Stored::new();
    stored
        .append(&lasting(done("a", "{}"), Some(NOW - 3.0)))
        .unwrap();
    stored
        .append(&lasting(running("b"), Some(NOW - 1.0)))
        .unwrap();
    stored
        .append(&ended(lasting(running("c"), None), ""))
        .unwrap();
    stored.append(&done("d", "{}")).unwrap();
    let there = |stored: &Stored, id, now| stored.load(id, now).unwrap().is_some();
    assert!(!there(&stored, "a", NOW) && there(&stored, "b", NOW));
    let later = NOW + DAY + 1.0;
    assert!(there(&stored, "c", later) && !there(&stored, "d", later));
    stored.restart(NOW);
    // Even a clock that goes back does not bring it back.
    assert!(!there(&stored, "a", NOW - 4.0));
}

#[test]
fn orphaned_runs_are_found_once_with_their_conversation() {
    let mut stored = Stored::new();
    let unread = vec![prompt("i", "also this", &[])];
    stored.append(&running("a")).unwrap();
    stored.append(&done("b", "{}")).unwrap();
    stored
        .append(&with_inputs(running("c"), unread.clone()))
        .unwrap();
    let waiting = with_status(running("d"), RecordStatus::WaitingApproval);
    stored.append(&waiting).unwrap();
    assert_eq!(stored.restart(NOW + 2.0 * DAY), 2);
    let record = stored.load("c", NOW + 2.5 * DAY).unwrap().unwrap();
    assert_eq!(record.status, RecordStatus::Interrupted);
    assert_eq!((&*record.prompt, &record.inputs), ("hello", &unread));
    assert!(stored.load("c", NOW + 3.5 * DAY).unwrap().is_none());
    assert_eq!(stored.restart(NOW + 2.0 * DAY), 0);
}

/// Appends to a session what no host writes.
async fn write_unreadable(store: &dyn Store, id: &str) {
    let config = LogConfig {
        max_age: Some(std::time::Duration::from_secs(1)),
        ..LogConfig::new("onion_log.*")
    };
    let log = store.log("onion_log", config).await.unwrap();
    let subject = format!("onion_log.{id}");
    let appended = log.append(&subject, "?".into(), Expect::default());
    appended.await.unwrap();
}

#[test]
fn a_record_that_cannot_be_read_costs_what_it_held() {
    let mut stored = Stored::new();
    stored
        .append(&with_owner(done("a", r#"{"turn":1}"#), ALICE))
        .unwrap();
    let store = stored.store.clone();
    stored.run(async {
        write_unreadable(&store, "a").await;
        write_unreadable(&store, "b").await;
    });
    stored.restart(NOW);
    assert_eq!(stored.load("b", NOW), Ok(None));
    let found = stored.load("a", NOW).unwrap().unwrap();
    assert_eq!(
        (found.status, found.owner),
        (RecordStatus::Connected, Some(ALICE))
    );
    assert_eq!(found.session, json(r#"{"turn":1}"#));
    for id in ["a", "b"] {
        stored.append(&done(id, r#"{"turn":9}"#)).unwrap();
        stored.restart(NOW);
        assert_eq!(session(&stored, id).unwrap(), r#"{"turn":9}"#);
    }
}

#[test]
fn a_store_that_another_host_writes_to_is_left_alone() {
    let (mut stored, id) = (Stored::new(), "a");
    stored.append(&done(id, "{}")).unwrap();
    let store = stored.store.clone();
    stored.run(async {
        write_unreadable(&store, "a").await;
    });
    assert_eq!(stored.append(&running(id)), Err(StorageError::Fenced));
    assert_eq!(stored.restart(NOW), 0);
}

const SAMPLE: &str = include_str!("../vectors/session_results-1.2.1.jsonl");

/// Imports a file whose records have not expired, and returns how many sessions were taken.
async fn take(store: &Arc<dyn Store>, path: &Path) -> Option<(u64, u64)> {
    let imported = import(store, path).await.unwrap()?;
    Some((imported.sessions, imported.skipped_lines))
}

#[tokio::test]
async fn files_of_the_real_host_round_trip() {
    let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    let scratch = Scratch::new();
    let path = scratch.file("results.jsonl");
    // As if it had been written now.
    let later = staff::now() - NOW;
    let lines = SAMPLE.lines().map(|line| {
        let mut record = Record::parse(line).unwrap();
        assert_eq!(value(&record.to_line()), value(line));
        record.created += later;
        record.expires = record.expires.map(|at| at + later);
        record.to_line() + "\n"
    });
    let text: String = lines.collect();
    fs::write(&path, &text).unwrap();
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    assert_eq!(take(&store, &path).await, Some((2, 0)));
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    let ended = staff::stored(&*store, "b5f6bc3c-cff4-4377-b4f0-cf6bc93bf72e")
        .await
        .unwrap();
    assert_eq!(ended.status, RecordStatus::Done);
    assert_eq!(ended.result.as_deref(), Some("echo: hello"));
    assert_eq!(ended.duration_ms, Some(14));
    let waits = staff::stored(&*store, "284a997c-6aac-49f9-9672-dcc40975eaed")
        .await
        .unwrap();
    assert_eq!(waits.status, RecordStatus::WaitingApproval);
    assert!(waits.session.unwrap().get().contains("pending_tool"));
    // Each session has its last line.
    let mut written = Vec::new();
    assert_eq!(export(&*store, &mut written).await.unwrap(), 2);
    for line in String::from_utf8(written).unwrap().lines() {
        assert!(text.lines().any(|it| value(it) == value(line)), "{line}");
    }
}

#[tokio::test]
async fn a_file_is_read_on_where_a_real_host_has_added_to_it() {
    let scratch = Scratch::new();
    let path = scratch.file("results.jsonl");
    let at = |id: &str, created: f64, session: &str| {
        let mut record = lasting(done(id, session), None);
        record.created = created;
        record.to_line() + "\n"
    };
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    assert_eq!(take(&store, &path).await, None);
    let mut text = at("a", 1.0, "{}") + &at("b", 1.0, "{}") + "{\"session";
    fs::write(&path, &text).unwrap();
    assert_eq!(take(&store, &path).await, Some((2, 1)));
    assert_eq!(take(&store, &path).await, None);
    text += &("\n".to_owned() + &at("b", 2.0, r#"{"turn":2}"#));
    fs::write(&path, &text).unwrap();
    assert_eq!(take(&store, &path).await, Some((1, 1)));
    let session = async |id| staff::stored(&*store, id).await.unwrap().session;
    assert_eq!(session("b").await, json(r#"{"turn":2}"#));
    // In another file an older record does not replace a newer one.
    fs::write(&path, at("b", 1.5, "{}") + &at("a", 3.0, r#"{"turn":3}"#)).unwrap();
    assert_eq!(take(&store, &path).await, Some((1, 0)));
    assert_eq!(session("b").await, json(r#"{"turn":2}"#));
    assert_eq!(session("a").await, json(r#"{"turn":3}"#));
}

#[test]
fn a_file_cut_at_any_byte_keeps_every_whole_record() {
    let scratch = Scratch::new();
    let records = [
        done("a", r#"{"turn":1}"#),
        running("b"),
        running("a"),
        ended(running("b"), "\u{fc}\u{1f600}"),
    ];
    let mut bytes = Vec::new();
    let mut ends = vec![0];
    for record in &records {
        bytes.extend((record.to_line() + "\n").into_bytes());
        ends.push(bytes.len());
    }
    let cut = scratch.file("cut.jsonl");
    for at in 0..=bytes.len() {
        fs::write(&cut, &bytes[..at]).unwrap();
        let file = ResultsFile::open(&cut).unwrap();
        // A record without its line break is whole, too.
        let written = ends.iter().filter(|end| **end <= at + 1 && **end > 0);
        let written = &records[..written.count()];
        for id in ["a", "b"] {
            let of_id = |record: &&Record| record.session_id == id;
            let status = |record: Option<&Record>| record.map(|it| it.status.clone());
            let found = file.record(id).unwrap();
            let expected = written.iter().rev().find(of_id);
            assert_eq!(status(found.as_ref()), status(expected), "{id} at {at}");
        }
        if !written.is_empty() {
            let session = file.record("a").unwrap().unwrap().session;
            assert_eq!(session, json(r#"{"turn":1}"#), "at {at}");
        }
        assert!(file.skipped_lines() <= 1);
    }
}

#[test]
fn lines_that_add_to_earlier_ones_are_read() {
    let scratch = Scratch::new();
    let path = scratch.file("results.jsonl");
    let first = with_owner(
        done("a", r#"{"messages":[{"content":"hi"}],"turn":1}"#),
        ALICE,
    );
    let after = first.session.as_ref().unwrap().get().len();
    let added = r#"{"messages":{"adds":[{"content":"ho"}]},"turn":{"is":2}}"#;
    let line = ended(running("a"), "ho").to_line();
    let line = line.strip_suffix('}').unwrap();
    let second = format!(r#"{line},"short":{{"after":{after},"session":{added}}}}}"#);
    fs::write(&path, format!("{}\n{second}\n{second}\n", first.to_line())).unwrap();
    let found = ResultsFile::open(&path)
        .unwrap()
        .record("a")
        .unwrap()
        .unwrap();
    assert_eq!(found.owner, Some(ALICE));
    let session = r#"{"messages":[{"content":"hi"},{"content":"ho"}],"turn":2}"#;
    assert_eq!(found.session, json(session));
}

#[test]
fn invalid_lines_are_skipped() {
    let scratch = Scratch::new();
    let path = scratch.file("results.jsonl");
    let good = running("a").to_line();
    let later = r#"{"session_id":"b","status":"done","created":1,"revision":7,"metadata":{}}"#;
    let mut text = format!("\n[]\n{good}\n{{\"session_id\":\"a\"}}\nnull\n").into_bytes();
    text.extend(b"{\"session_id\":\"c\xff\",\"status\":\"done\",\"created\":1}\n");
    let stranger = r#"{"session_id":"a","status":"done","created":1,"owner":"somebody"}"#;
    text.extend(format!("{stranger}\n{later}").bytes());
    fs::write(&path, text).unwrap();
    let file = ResultsFile::open(&path).unwrap();
    assert_eq!((file.sessions(0).count(), file.skipped_lines()), (2, 5));
    assert_eq!(file.record("a").unwrap().unwrap(), running("a"));
    let found = file.record("b").unwrap().unwrap();
    assert_eq!(found.status, RecordStatus::Done);
    assert_eq!((found.prompt.as_str(), found.expires), ("", None));
}
