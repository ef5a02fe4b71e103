//! The storage's file: what is found in any bytes, wherever they are cut.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use connectonion_proto::storage::{JsonlOptions, JsonlStorage, Record, RecordStatus, Storage};
use rpc_core::Json;

/// Short enough for inputs to reach.
const MAX_LINE: usize = 200;

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
    goes_on(file.get(..cut).unwrap_or_default(), &place);
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

    fn open(&self, file: &[u8]) -> JsonlStorage {
        fs::write(&self.0, file).expect("a file is written");
        self.reopen()
    }

    fn reopen(&self) -> JsonlStorage {
        let options = JsonlOptions {
            max_line_bytes: MAX_LINE,
            ..JsonlOptions::default()
        };
        JsonlStorage::open(&self.0, options).expect("a file is opened")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
        let _ = fs::remove_file(self.0.with_extension("lock"));
    }
}

/// The storage finds what the lines say, read one by one.
fn whole(file: &[u8], place: &Place) {
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
    let storage = place.open(file);
    assert_eq!(storage.sessions(), last.len(), "sessions");
    assert_eq!(
        storage.skipped_lines(),
        skipped,
        "lines that are not records"
    );
    for (id, mut record) in last {
        // Nothing has expired then.
        let found = storage.load(&id, f64::MIN).expect("a record is read");
        let mut found = found.expect("a session is missing");
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

/// A file that was cut short takes a record, and loses none that it had.
fn goes_on(file: &[u8], place: &Place) {
    let before = place.open(file);
    let (sessions, skipped) = (before.sessions(), before.skipped_lines());
    let load = |storage: &JsonlStorage| storage.load("new", f64::MIN).expect("it is read");
    let is_new = load(&before).is_none();
    let record = Record::new("new", RecordStatus::Done, "", 1.0);
    before.append(&record).expect("it is written");
    drop(before);
    let after = place.reopen();
    assert_eq!(after.skipped_lines(), skipped);
    assert_eq!(after.sessions(), sessions + usize::from(is_new));
    assert_eq!(load(&after).map(|it| it.status), Some(RecordStatus::Done));
}
