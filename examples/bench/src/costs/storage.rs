//! Records that a storage writes, one call each: ConnectOnion's file of lines, and the database of
//! the gateway among the examples. Beside a plain file to which the same bytes are appended.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::time::Instant;

use connectonion_proto::storage::{JsonlOptions, JsonlStorage, Record, RecordStatus, Storage};
use rpc_core::Json;

use super::COSTS;
use crate::folder::Folder;
use crate::report::Report;
use crate::text;

/// Ours and the peer in turn, so often.
const TIMES: usize = 5;
/// The sessions whose records are replaced in turn.
const SESSIONS: usize = 64;
const CREATED: f64 = 1_770_000_000.5;

pub(super) fn table(report: &mut Report, quick: bool) {
    let (many, few) = if quick { (5_000, 50) } else { (20_000, 300) };
    let whole = JsonlOptions {
        compact_from: None,
        ..JsonlOptions::default()
    };
    lines(
        report,
        "JSONL record, no fsync, no compaction",
        whole,
        many,
        false,
    );
    lines(
        report,
        "JSONL record, no fsync but at each compaction (default)",
        JsonlOptions::default(),
        many,
        false,
    );
    lines(
        report,
        "JSONL record, fsync for each",
        JsonlOptions {
            sync: true,
            ..JsonlOptions::default()
        },
        few,
        true,
    );
    gateway(report, few);
}

/// Records of about 1 KB, as a host stores them at the end of a run.
fn records() -> Vec<Record> {
    let session = format!(
        r#"{{"messages":[{{"role":"user","content":"search"}},{{"role":"assistant","content":"{}"}}]}}"#,
        text::words(600)
    );
    let session = Json::new(&session).unwrap();
    let record = |number| {
        let id = format!("session-{number:02}");
        let mut record = Record::new(id, RecordStatus::Done, "search", CREATED);
        record.result = Some(text::words(100).into());
        record.duration_ms = Some(250);
        record.session = Some(session.clone());
        record
    };
    (0..SESSIONS).map(record).collect()
}

fn lines(report: &mut Report, what: &str, options: JsonlOptions, writes: usize, sync: bool) {
    let records = records();
    let texts: Vec<String> = records.iter().map(|it| it.to_line() + "\n").collect();
    let ours = || {
        let folder = Folder::new("storage");
        let path = folder.path().join("sessions.jsonl");
        let storage = JsonlStorage::open(&path, options).unwrap();
        let time = each(writes, |number| {
            storage.append(&records[number % SESSIONS]).unwrap();
        });
        let written: usize = (0..writes).map(|it| texts[it % SESSIONS].len()).sum();
        let is_compacted = std::fs::metadata(&path).unwrap().len() < written as u64;
        let is_large = options.compact_from.is_some_and(|at| at < written as u64);
        assert_eq!(is_compacted, is_large);
        let (first, found) = (&records[0], storage.load("session-00", CREATED).unwrap());
        assert_eq!(found.as_ref(), Some(first));
        time
    };
    beside_a_file(report, what, ours, &texts, writes, sync);
}

/// Measures ours in turn with a file to which these texts are appended.
fn beside_a_file(
    report: &mut Report,
    what: &str,
    ours: impl Fn() -> f64,
    texts: &[String],
    writes: usize,
    sync: bool,
) {
    eprintln!("{what}, {writes} writes");
    let (mut own, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..TIMES {
        own.push(ours());
        theirs.push(plain(texts, writes, sync));
    }
    let least = |times: &[f64]| times.iter().copied().fold(f64::INFINITY, f64::min);
    let text = |times: &[f64]| format!("{:.0} writes/s", 1.0 / least(times));
    let ratios = theirs.iter().zip(&own).map(|(theirs, own)| theirs / own);
    let peer = match sync {
        true => "write_all, sync_data",
        false => "write_all",
    };
    let peer = (peer, text(&theirs));
    report.repeated(COSTS, what, text(&own), peer, (ratios.collect(), None));
}

fn plain(texts: &[String], writes: usize, sync: bool) -> f64 {
    let folder = Folder::new("storage");
    let path = folder.path().join("plain");
    let mut options = OpenOptions::new();
    let mut file: File = options.create(true).append(true).open(path).unwrap();
    each(writes, |number| {
        let text = &texts[number % texts.len()];
        file.write_all(text.as_bytes()).unwrap();
        if sync {
            file.sync_data().unwrap();
        }
    })
}

/// Seconds per write.
fn each(writes: usize, mut write: impl FnMut(usize)) -> f64 {
    let start = Instant::now();
    (0..writes).for_each(&mut write);
    start.elapsed().as_secs_f64() / writes as f64
}

const GATEWAY: &str = "gateway's redb, a turn with its usage, fsync for each";

#[cfg(not(feature = "gateway"))]
fn gateway(report: &mut Report, _: usize) {
    let why = "build with `--features gateway`";
    report.missing(COSTS, GATEWAY, "write_all, sync_data", why);
}

#[cfg(feature = "gateway")]
fn gateway(report: &mut Report, writes: usize) {
    use switchboard::gateway::memory::Turn;
    use switchboard::gateway::store::{Commit, EmbeddedStore, Store, StoreLimits};
    use switchboard::gateway::usage::UsageEntry;

    let commit = |number: usize| {
        let (session, at) = (format!("session-{:02}", number % SESSIONS), 1_770_000_000);
        let turn = Turn::new(text::words(100), text::words(600), at);
        let used = UsageEntry::new(at, session.as_str(), "main").with_tokens(20, 150, None);
        Commit::new(session.as_str(), "main", at)
            .with_turn(turn)
            .with_usage(used)
    };
    let commits: Vec<Commit> = (0..SESSIONS).map(commit).collect();
    let ours = || {
        let folder = Folder::new("storage");
        let store = EmbeddedStore::open(folder.path(), StoreLimits::default()).unwrap();
        let time = each(writes, |number| {
            let commit = &commits[number % SESSIONS];
            store.commit(std::slice::from_ref(commit)).unwrap();
        });
        assert_eq!(store.usage(usize::MAX).unwrap().len(), writes);
        time
    };
    let texts: Vec<String> = commits
        .iter()
        .map(|it| serde_json::to_string(&it.turn).unwrap() + "\n")
        .collect();
    beside_a_file(report, GATEWAY, ours, &texts, writes, true);
}
