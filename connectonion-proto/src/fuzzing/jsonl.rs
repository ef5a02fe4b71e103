//! Body of the fuzz target of the storage's file: what is found in any bytes, however they are cut.

use std::collections::HashMap;
use std::io::BufReader;

use rpc_core::Json;

use crate::storage::lines::Index;
use crate::storage::{Record, RecordStatus};

/// Short enough for inputs to reach.
const MAX_LINE: usize = 200;

/// The last record of each session is found, at its place, and nothing that was cut short counts.
/// The first byte says into how large pieces the file is read, and where it is cut.
pub fn jsonl(data: &[u8]) {
    let Some((&first, file)) = data.split_first() else {
        return;
    };
    let index = found(file, file.len().max(1));
    assert_eq!(index, found(file, usize::from(first).max(1)), "in pieces");
    whole(file, &index);
    for line in file.split(|byte| *byte == b'\n') {
        if let Ok(line) = std::str::from_utf8(line) {
            record(line);
        }
    }
    let cut = usize::from(first) * file.len() / 256;
    goes_on(file.get(..cut).unwrap_or_default());
}

fn found(file: &[u8], pieces: usize) -> Index {
    // From memory nothing can fail.
    Index::read(BufReader::with_capacity(pieces, file), MAX_LINE).unwrap_or_default()
}

/// The index says what the lines say, read one by one.
fn whole(file: &[u8], index: &Index) {
    let mut last = HashMap::new();
    let mut skipped = 0;
    for line in file.split(|byte| *byte == b'\n') {
        let text = std::str::from_utf8(line).ok();
        let text = text.filter(|line| line.len() <= MAX_LINE);
        match text.and_then(|line| Record::parse(line).ok()) {
            Some(record) => {
                last.insert(record.session_id.to_string(), record);
            }
            None => skipped += u64::from(!line.is_empty()),
        }
    }
    assert_eq!(index.sessions(), last.len(), "sessions");
    assert_eq!(index.skipped, skipped, "lines that are no records");
    assert_eq!(index.len, file.len() as u64);
    let live = index.live(|_| true);
    assert!(live <= index.len + 1, "no more counts than is there");
    assert_eq!(index.is_torn, file.last().is_some_and(|it| *it != b'\n'));
    for (id, record) in last {
        let Some(slot) = index.get(&id) else {
            panic!("a session is missing");
        };
        assert_eq!(slot.status, record.status);
        let at = usize::try_from(slot.last.offset).unwrap_or_default();
        let line = file.get(at..at + slot.last.len).unwrap_or_default();
        let there = std::str::from_utf8(line)
            .ok()
            .and_then(|it| Record::parse(it).ok());
        assert_eq!(there, Some(record), "the place of the last record");
    }
}

/// A record is one line, and comes back from it.
fn record(line: &str) {
    let Ok(record) = Record::parse(line) else {
        return;
    };
    let written = record.to_line();
    assert!(!written.contains(['\n', '\r']));
    assert!(Json::new(&written).is_ok(), "a line is JSON");
    let session = |record: &Record| record.session.as_ref().map(Json::get).map(spaced);
    let mut again = match Record::parse(&written) {
        Ok(again) => again,
        Err(error) => panic!("a record that was written is refused: {error}"),
    };
    assert_eq!(session(&again), session(&record));
    again.session = record.session.clone();
    assert_eq!(again, record);
}

/// White space in a session object may change its kind.
fn spaced(json: &str) -> String {
    json.replace(['\n', '\r'], " ")
}

/// A file that was cut short takes a record, and loses none that it had.
fn goes_on(file: &[u8]) {
    let before = found(file, 64);
    let record = Record::new("new", RecordStatus::Done, "", 1.0);
    let start = if before.is_torn { "\n" } else { "" };
    let added = [start, &record.to_line(), "\n"].concat();
    let after = found(&[file, added.as_bytes()].concat(), 64);
    assert_eq!(after.skipped, before.skipped);
    let is_new = before.get("new").is_none();
    assert_eq!(after.sessions(), before.sessions() + usize::from(is_new));
    let status = after.get("new").map(|slot| &slot.status);
    assert_eq!(status, Some(&RecordStatus::Done));
}
