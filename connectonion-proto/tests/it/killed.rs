//! A host that is killed while it writes: what it said was stored is there.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use connectonion_proto::storage::{JsonlOptions, JsonlStorage, Record, RecordStatus, Storage};

use super::scratch::Scratch;

/// Where the child writes; it is this very program.
const FILE: &str = "CONNECTONION_KILLED_FILE";
const NOW: f64 = 1_795_293_457.5;

/// Writes until it is killed, and says what it has stored. Does nothing in a usual test run.
#[test]
fn the_child_that_is_killed() {
    let Some(path) = env::var_os(FILE) else {
        return;
    };
    // Compacts all the time, so that it may be killed in the middle of that, too.
    let options = JsonlOptions {
        compact_from: Some(20_000),
        ..JsonlOptions::default()
    };
    let storage = JsonlStorage::open(path, options).unwrap();
    let mut out = std::io::stdout().lock();
    for turn in 0.. {
        let id = format!("session-{}", turn % 50);
        let prompt = format!("turn {turn} {}", "x".repeat(200));
        let mut run = Record::new(id, RecordStatus::Running, prompt, NOW);
        storage.append(&run).unwrap();
        writeln!(out, "began {turn}").unwrap();
        run.status = RecordStatus::Done;
        run.result = Some(turn.to_string().into());
        storage.append(&run).unwrap();
        writeln!(out, "ended {turn}").unwrap();
        out.flush().unwrap();
    }
}

#[test]
fn stored_records_survive_a_kill() {
    let scratch = Scratch::new();
    for round in 0..3 {
        let path = scratch.file(&format!("{round}.jsonl"));
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "killed::the_child_that_is_killed", "--nocapture"])
            .env(FILE, &path)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let said = |line: String| {
            let (what, turn) = line.split_once(' ')?;
            let turn: u64 = turn.parse().ok()?;
            matches!(what, "began" | "ended").then(|| (what == "ended", turn))
        };
        let mut last = (false, 0);
        while last.1 < 300 + 7 * round {
            // The first lines are the test harness's.
            last = said(lines.next().unwrap().unwrap()).unwrap_or(last);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // What it said before it died.
        for line in lines.map_while(Result::ok) {
            last = said(line).unwrap_or(last);
        }
        let (ended, turn) = last;
        let storage = JsonlStorage::open(&path, JsonlOptions::default()).unwrap();
        storage.recover(NOW).unwrap();
        for session in 0..50 {
            // The newest turn of this session that was said to be stored.
            let newest = (0..=turn).rev().find(|turn| turn % 50 == session).unwrap();
            let record = storage.load(&format!("session-{session}"), NOW);
            let record = record.unwrap().expect("a session that was stored");
            let stored = record.prompt.split(' ').nth(1).unwrap();
            let stored: u64 = stored.parse().unwrap();
            assert!(stored >= newest, "session {session}: {stored} of {newest}");
            if stored == newest && (newest < turn || ended) {
                assert_eq!(record.status, RecordStatus::Done, "turn {newest}");
                assert_eq!(record.result.as_deref(), Some(newest.to_string().as_str()));
            }
        }
    }
}
