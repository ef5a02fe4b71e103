//! The file of ConnectOnion's own hosts: what is found in any bytes, wherever they are cut.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use connectonion_proto::internals::ResultsFile;
use connectonion_proto::storage::Record;
use rpc_core::Json;

/// The last record of each session is found, and nothing that was cut short counts. The first byte
/// says where the file is cut.
pub fn jsonl(data: &[u8]) {
    let Some((&first, file)) = data.split_first() else {
        return;
    };
    let place = Place::new();
    whole(file, &place);
    for line in file.split(|byte| *byte == b'\n') {
        if let Ok(line) = std::str::from_utf8(line) {
            record(line);
        }
    }
    let cut = usize::from(first) * file.len() / 256;
    whole(file.get(..cut).unwrap_or_default(), &place);
}

/// A file of its own, which goes with it.
struct Place(PathBuf);

impl Place {
    fn new() -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("switchboard-jsonl-{}-{number}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// The reader finds what the lines say, read one by one.
fn whole(file: &[u8], place: &Place) {
    let mut last = HashMap::new();
    let mut skipped = 0;
    for line in file.split(|byte| *byte == b'\n') {
        let text = std::str::from_utf8(line).ok();
        match text.and_then(|line| Record::parse(line).ok()) {
            Some(record) => {
                last.insert(record.session_id.to_string(), record);
            }
            None => skipped += u64::from(!line.is_empty()),
        }
    }
    fs::write(&place.0, file).expect("a file is written");
    let read = ResultsFile::open(&place.0).expect("a file is opened");
    assert_eq!(read.sessions(0).count(), last.len(), "sessions");
    assert_eq!(read.skipped_lines(), skipped, "lines that are not records");
    for (id, mut record) in last {
        let found = read.record(&id).expect("a record is read");
        // A line that adds to one that is not there has none.
        let Some(mut found) = found else { continue };
        // Taken over from the record before.
        (found.session, found.owner) = (None, None);
        (record.session, record.owner) = (None, None);
        assert_eq!(found, record, "the last record");
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
