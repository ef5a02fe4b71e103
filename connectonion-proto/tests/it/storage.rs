//! Both storages, and what only a file can suffer.

mod model;

use std::fs;
use std::path::Path;

use connectonion_proto::auth::Address;
use connectonion_proto::net::Prompt;
use connectonion_proto::session::Owner;
use connectonion_proto::storage::{
    JsonlOptions, JsonlStorage, MemoryStorage, Record, RecordStatus, Storage, StorageError,
};
use proptest::prelude::*;
use rpc_core::Json;

use super::scratch::Scratch;

const NOW: f64 = 1_795_293_457.5;
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

fn size(path: &Path) -> u64 {
    fs::metadata(path).unwrap().len()
}

fn run(id: impl Into<rpc_core::Str>, prompt: impl Into<rpc_core::Str>, at: f64) -> Record {
    Record::new(id, RecordStatus::Running, prompt, at)
}

fn running(id: &str) -> Record {
    run(id, "hello", NOW)
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

fn open(path: &Path) -> JsonlStorage {
    JsonlStorage::open(path, JsonlOptions::default()).unwrap()
}

/// Every storage has to do this.
fn both(test: impl Fn(&dyn Storage)) {
    test(&MemoryStorage::new(100));
    let scratch = Scratch::new();
    test(&open(&scratch.file("results.jsonl")));
}

fn session(storage: &dyn Storage, id: &str) -> Option<String> {
    let record = storage.load(id, NOW).unwrap()?;
    record.session.map(|session| session.get().to_owned())
}

#[test]
fn the_last_record_of_a_session_counts() {
    both(|storage| {
        assert_eq!(storage.load("a", NOW).unwrap(), None);
        storage.append(&running("a")).unwrap();
        storage.append(&running("b")).unwrap();
        storage.append(&done("a", r#"{"turn":1}"#)).unwrap();
        let found = storage.load("a", NOW).unwrap().unwrap();
        assert_eq!(found, done("a", r#"{"turn":1}"#));
        assert_eq!(storage.load("b", NOW).unwrap().unwrap(), running("b"));
    });
}

#[test]
fn records_round_trip() {
    let inputs = vec![
        prompt("i1", "also \"this\"\n", &[]),
        prompt("i2", "look", &["data:image/png;base64,AA=="]),
    ];
    let records = [
        with_inputs(running("ids are any text\n\u{2028}\""), inputs),
        with_owner(ended(running("x"), "\u{1f600}\r\n\0"), ALICE),
        lasting(with_owner(running("x"), Owner::Unsigned), None),
        with_status(running("x"), RecordStatus::Other("later".into())),
        done(
            "x",
            r#"{"messages":[{"role":"user","content":"ü"}],"n":1.50,"turn":2}"#,
        ),
        with_status(running(""), RecordStatus::WaitingApproval),
    ];
    for record in records {
        both(|storage| {
            storage.append(&record).unwrap();
            let found = storage.load(&record.session_id, NOW).unwrap();
            assert_eq!(found.as_ref(), Some(&record));
        });
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
    both(|storage| {
        storage.append(&done("a", r#"{"turn":1}"#)).unwrap();
        storage.append(&running("a")).unwrap();
        assert_eq!(session(storage, "a").unwrap(), r#"{"turn":1}"#);
        storage.compact(NOW).unwrap();
        storage.append(&running("a")).unwrap();
        storage.recover(NOW).unwrap();
        assert_eq!(session(storage, "a").unwrap(), r#"{"turn":1}"#);
    });
}

#[test]
fn a_foreign_session_is_not_overwritten() {
    both(|storage| {
        let alice = with_owner(done("a", r#"{"secret":1}"#), ALICE);
        storage.append(&alice).unwrap();
        storage.append(&with_owner(running("a"), BOB)).unwrap();
        assert_eq!(session(storage, "a"), None);
        storage.compact(NOW).unwrap();
        assert_eq!(session(storage, "a"), None);
    });
}

#[test]
fn a_writer_without_owners_keeps_the_owner() {
    both(|storage| {
        storage.append(&with_owner(running("a"), ALICE)).unwrap();
        storage.append(&done("a", "{}")).unwrap();
        let owner = |storage: &dyn Storage| storage.load("a", NOW).unwrap().unwrap().owner;
        assert_eq!(owner(storage), Some(ALICE));
        storage.compact(NOW).unwrap();
        assert_eq!(owner(storage), Some(ALICE));
        assert_eq!(session(storage, "a").unwrap(), "{}");
    });
}

#[test]
fn records_expire_and_runs_do_not() {
    both(|storage| {
        storage.append(&done("a", "{}")).unwrap();
        storage.append(&running("b")).unwrap();
        storage
            .append(&ended(lasting(running("c"), None), ""))
            .unwrap();
        let there = |id, now| storage.load(id, now).unwrap().is_some();
        assert!(there("a", NOW + DAY));
        let later = NOW + DAY + 1.0;
        assert!(!there("a", later) && there("b", later) && there("c", later));
        storage.compact(later).unwrap();
        // Even a clock that goes back does not bring it back.
        assert!(!there("a", NOW) && there("b", NOW) && there("c", NOW));
    });
}

#[test]
fn orphaned_runs_are_found_once_with_their_conversation() {
    both(|storage| {
        let unread = vec![prompt("i", "also this", &[])];
        storage.append(&running("a")).unwrap();
        storage.append(&done("b", "{}")).unwrap();
        storage
            .append(&with_inputs(running("c"), unread.clone()))
            .unwrap();
        let waiting = with_status(running("d"), RecordStatus::WaitingApproval);
        storage.append(&waiting).unwrap();
        let found = storage.recover(NOW + 2.0 * DAY).unwrap();
        let ids: Vec<_> = found.iter().map(|it| it.session_id.to_string()).collect();
        assert_eq!(ids, ["a", "c"]);
        assert_eq!(found[1].inputs, unread);
        assert_eq!(found[1].prompt, "hello");
        let record = storage.load("c", NOW + 2.5 * DAY).unwrap().unwrap();
        assert_eq!(record.status, RecordStatus::Interrupted);
        assert_eq!(record.inputs, unread);
        assert!(storage.load("c", NOW + 3.5 * DAY).unwrap().is_none());
        assert!(storage.recover(NOW + 2.0 * DAY).unwrap().is_empty());
    });
}

#[test]
fn memory_is_bounded() {
    let storage = MemoryStorage::new(2);
    for id in ["a", "b", "a", "c"] {
        storage.append(&running(id)).unwrap();
    }
    assert_eq!(storage.sessions(), 2);
    assert!(storage.load("b", NOW).unwrap().is_none());
    assert!(storage.load("a", NOW).unwrap().is_some());
}

#[test]
fn files_of_the_real_host_round_trip() {
    let sample = include_str!("../vectors/session_results-1.2.1.jsonl");
    let scratch = Scratch::new();
    let path = scratch.file("results.jsonl");
    let storage = open(&path);
    for line in sample.lines() {
        let record = Record::parse(line).unwrap();
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(value(&record.to_line()), value(line));
        storage.append(&record).unwrap();
    }
    drop(storage);
    let found = open(&path);
    assert_eq!((found.sessions(), found.skipped_lines()), (2, 0));
    let now = 1_795_293_500.0;
    let ended = found.load("b5f6bc3c-cff4-4377-b4f0-cf6bc93bf72e", now);
    let ended = ended.unwrap().unwrap();
    assert_eq!(ended.status, RecordStatus::Done);
    assert_eq!(ended.result.as_deref(), Some("echo: hello"));
    assert_eq!(ended.duration_ms, Some(14));
    let waits = found.load("284a997c-6aac-49f9-9672-dcc40975eaed", now);
    let waits = waits.unwrap().unwrap();
    assert_eq!(waits.status, RecordStatus::WaitingApproval);
    assert!(waits.session.unwrap().get().contains("pending_tool"));
}

#[test]
fn a_file_cut_at_any_byte_keeps_every_whole_record() {
    let scratch = Scratch::new();
    let whole = scratch.file("whole.jsonl");
    let storage = open(&whole);
    let records = [
        done("a", r#"{"turn":1}"#),
        running("b"),
        running("a"),
        ended(running("b"), "\u{fc}\u{1f600}"),
    ];
    let mut ends = vec![0];
    for record in &records {
        storage.append(record).unwrap();
        ends.push(fs::read(&whole).unwrap().len());
    }
    let bytes = fs::read(&whole).unwrap();
    let cut = scratch.file("cut.jsonl");
    for at in 0..=bytes.len() {
        fs::write(&cut, &bytes[..at]).unwrap();
        let storage = open(&cut);
        // A record without its line break is whole, too.
        let written = ends
            .iter()
            .filter(|end| **end <= at + 1 && **end > 0)
            .count();
        let (written, rest) = records.split_at(written);
        for id in ["a", "b"] {
            let of_id = |record: &&Record| record.session_id == id;
            let status = |record: Option<&Record>| record.map(|it| it.status.clone());
            let found = storage.load(id, NOW).unwrap();
            let expected = written.iter().rev().find(of_id);
            assert_eq!(status(found.as_ref()), status(expected), "{id} at {at}");
        }
        if !written.is_empty() {
            assert_eq!(session(&storage, "a").unwrap(), r#"{"turn":1}"#, "at {at}");
        }
        for record in rest {
            storage.append(record).unwrap();
        }
        drop(storage);
        let again = open(&cut);
        let ended = again.load("b", NOW).unwrap().unwrap();
        assert_eq!(ended, records[3], "at {at}");
        assert!(again.skipped_lines() <= 1);
        assert_eq!(session(&again, "a").unwrap(), r#"{"turn":1}"#, "at {at}");
    }
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
    let storage = open(&path);
    assert_eq!((storage.sessions(), storage.skipped_lines()), (2, 5));
    assert_eq!(storage.load("a", NOW).unwrap().unwrap(), running("a"));
    let found = storage.load("b", NOW).unwrap().unwrap();
    assert_eq!(found.status, RecordStatus::Done);
    assert_eq!((found.prompt.as_str(), found.expires), ("", None));
    // What another host wrote besides stays when the file is compacted.
    storage.compact(NOW).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text, format!("{good}\n{later}\n"));
    assert_eq!(storage.skipped_lines(), 0);
}

#[test]
fn lines_are_bounded() {
    let scratch = Scratch::new();
    let path = scratch.file("results.jsonl");
    let long = running(&"x".repeat(300));
    let text = format!("{}\n{}\n", long.to_line(), running("a").to_line());
    fs::write(&path, text).unwrap();
    let options = JsonlOptions {
        max_line_bytes: 250,
        ..JsonlOptions::default()
    };
    let storage = JsonlStorage::open(&path, options).unwrap();
    assert_eq!((storage.sessions(), storage.skipped_lines()), (1, 1));
    let refused = storage.append(&long).unwrap_err();
    assert!(matches!(refused, StorageError::TooLarge { max: 250, .. }));
    assert!(!refused.is_retryable());
    storage.append(&running("b")).unwrap();
    assert!(storage.load("a", NOW).unwrap().is_some());
    assert!(storage.load("b", NOW).unwrap().is_some());
}

#[test]
fn a_file_grows_with_live_records_only() {
    let scratch = Scratch::new();
    let path = scratch.file("results.jsonl");
    let options = JsonlOptions {
        compact_from: Some(4096),
        ..JsonlOptions::default()
    };
    let storage = JsonlStorage::open(&path, options).unwrap();
    for turn in 0..2000 {
        let session = format!(r#"{{"turn":{turn}}}"#);
        storage.append(&running("a")).unwrap();
        storage.append(&done("a", &session)).unwrap();
        assert!(size(&path) < 16_384, "turn {turn}");
    }
    assert_eq!(session(&storage, "a").unwrap(), r#"{"turn":1999}"#);
    drop(storage);
    assert_eq!(session(&open(&path), "a").unwrap(), r#"{"turn":1999}"#);
}

#[test]
fn expired_records_are_removed_while_running() {
    let scratch = Scratch::new();
    let path = scratch.file("results.jsonl");
    let options = JsonlOptions {
        compact_from: Some(4096),
        ..JsonlOptions::default()
    };
    let storage = JsonlStorage::open(&path, options).unwrap();
    for hour in 0..2000 {
        let now = NOW + f64::from(hour) * 3600.0;
        let record = ended(run(hour.to_string(), "hello", now), "hi");
        storage.append(&lasting(record, Some(now + DAY))).unwrap();
        assert!(size(&path) < 32_768 && storage.sessions() < 200);
    }
    let last = NOW + 1999.0 * 3600.0;
    assert!(storage.load("1980", last).unwrap().is_some());
    assert_eq!(storage.load("1970", last).unwrap(), None);
}

#[test]
fn an_interrupted_compaction_is_recovered() {
    let scratch = Scratch::new();
    let path = scratch.file("results.jsonl");
    fs::write(scratch.file("results.jsonl.switchboard-tmp"), "{\"session").unwrap();
    let storage = open(&path);
    storage.append(&done("a", "{}")).unwrap();
    storage.append(&done("a", r#"{"turn":2}"#)).unwrap();
    storage.compact(NOW).unwrap();
    storage.append(&running("b")).unwrap();
    drop(storage);
    let storage = open(&path);
    assert_eq!((storage.sessions(), storage.skipped_lines()), (2, 0));
    assert_eq!(session(&storage, "a").unwrap(), r#"{"turn":2}"#);
    assert!(!scratch.file("results.jsonl.switchboard-tmp").exists());
}

#[test]
fn a_compaction_that_fails_loses_nothing() {
    let scratch = Scratch::new();
    let path = scratch.file("results.jsonl");
    // A folder where the new file would be.
    fs::create_dir(scratch.file("results.jsonl.switchboard-tmp")).unwrap();
    let storage = open(&path);
    storage.append(&done("a", "{}")).unwrap();
    let failed = storage.compact(NOW).unwrap_err();
    assert!(failed.is_retryable());
    storage.append(&running("b")).unwrap();
    assert!(session(&storage, "a").is_some());
    drop(storage);
    assert_eq!(open(&path).sessions(), 2);
}

#[test]
fn a_second_storage_on_the_same_file_is_refused() {
    let scratch = Scratch::new();
    let path = scratch.file("results.jsonl");
    let storage = open(&path);
    storage.append(&running("a")).unwrap();
    let options = JsonlOptions::default();
    let error = JsonlStorage::open(&path, options).unwrap_err();
    assert!(matches!(&error, StorageError::InUse { .. }) && error.is_retryable());
    let number = format!("(process {})", std::process::id());
    assert!(error.to_string().contains(&number), "{error}");
    storage.compact(NOW).unwrap();
    assert!(JsonlStorage::open(&path, options).is_err());
    // One that is told to waits for the first to end.
    let next = std::thread::spawn({
        let options = JsonlOptions {
            wait: std::time::Duration::from_secs(60),
            ..options
        };
        move || JsonlStorage::open(path, options).unwrap().sessions()
    });
    storage.append(&running("b")).unwrap();
    drop(storage);
    assert_eq!(next.join().unwrap(), 2);
}

#[test]
fn the_file_is_bounded_with_a_quarter_per_owner() {
    let scratch = Scratch::new();
    let path = scratch.file("results.jsonl");
    let options = JsonlOptions {
        max_file_bytes: 40_000,
        ..JsonlOptions::default()
    };
    let storage = JsonlStorage::open(&path, options).unwrap();
    let record = |id: &str, owner, now: f64| {
        let record = ended(run(id, "x".repeat(4000), now), "hi");
        lasting(with_owner(record, owner), Some(now + DAY))
    };
    for (id, owner) in [("1", ALICE), ("2", ALICE), ("3", BOB), ("4", BOB)] {
        storage.append(&record(id, owner, NOW)).unwrap();
    }
    let full = storage.append(&record("5", ALICE, NOW)).unwrap_err();
    assert_eq!(full, StorageError::Full { max: 10_000 });
    // What is replaced makes room, and what has expired.
    for _ in 0..20 {
        storage.append(&record("1", ALICE, NOW)).unwrap();
    }
    assert!(fs::metadata(&path).unwrap().len() <= 40_000);
    storage
        .append(&record("5", ALICE, NOW + 2.0 * DAY))
        .unwrap();
    let owners = |number: u8| Owner::Key(Address::from_bytes([number; 32]));
    let stored = (0..20).filter(|it| {
        storage
            .append(&record(&it.to_string(), owners(*it), NOW))
            .is_ok()
    });
    assert!(stored.count() < 10);
    assert!(fs::metadata(&path).unwrap().len() <= 40_000);
}

/// Where the child writes; it is this very program.
#[cfg(unix)]
const FULL: &str = "CONNECTONION_FULL_FILE";

/// Writes to a disk that gets full. Does nothing in a usual test run.
#[cfg(unix)]
#[test]
fn the_child_with_a_full_disk() {
    let Some(path) = std::env::var_os(FULL) else {
        return;
    };
    let storage = open(Path::new(&path));
    let small = run("small", "x".repeat(1000), NOW);
    storage.append(&small).unwrap();
    let before = size(path.as_ref());
    let large = run("large", "x".repeat(1_000_000), NOW);
    assert!(storage.append(&large).unwrap_err().is_retryable());
    assert_eq!(fs::metadata(&path).unwrap().len(), before);
    storage.append(&small).unwrap();
    assert_eq!(storage.load("small", NOW).unwrap(), Some(small));
    assert_eq!(storage.load("large", NOW).unwrap(), None);
    println!("a full disk was met");
}

#[cfg(unix)]
#[test]
fn a_write_refused_by_a_full_disk_leaves_nothing_behind() {
    let scratch = Scratch::new();
    let path = scratch.file("results.jsonl");
    // A file that grows beyond the limit is an error, and no signal.
    let script = "trap '' XFSZ; ulimit -f 64; exec \"$@\"";
    let child = std::process::Command::new("sh")
        .args(["-c", script, "sh"])
        .arg(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "storage::the_child_with_a_full_disk",
            "--nocapture",
        ])
        .env(FULL, &path)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(said.contains("a full disk was met"), "{child:?}");
    let storage = open(&path);
    assert_eq!((storage.sessions(), storage.skipped_lines()), (1, 0));
}

#[test]
fn a_file_truncated_by_another_program_is_detected() {
    let scratch = Scratch::new();
    let path = scratch.file("results.jsonl");
    let storage = open(&path);
    storage.append(&running("a")).unwrap();
    fs::write(&path, "").unwrap();
    assert_eq!(storage.load("a", NOW), Err(StorageError::Changed));
}

#[test]
fn syncing_does_not_change_records() {
    let scratch = Scratch::new();
    let path = scratch.path().join("new/folders/results.jsonl");
    let options = JsonlOptions {
        sync: true,
        ..JsonlOptions::default()
    };
    let storage = JsonlStorage::open(&path, options).unwrap();
    storage.append(&running("a")).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text, running("a").to_line() + "\n");
}

#[cfg(unix)]
#[test]
fn only_the_user_may_read_the_file() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = Scratch::new();
    let path = scratch.file("results.jsonl");
    let storage = open(&path);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    storage.append(&running("a")).unwrap();
    storage.compact(NOW).unwrap();
    assert_eq!(mode(&path), 0o600);
}

/// One thing that is done to a storage.
#[derive(Clone, Debug)]
enum Op {
    Append(Box<Record>),
    Recover(f64),
    Compact(f64),
    Delete(&'static str),
    Reopen,
    /// The last bytes of a write that did not happen whole.
    Tear(usize),
}
