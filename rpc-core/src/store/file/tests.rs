//! A file that is damaged, and a disk that is full, at every place.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use redb::StorageBackend;

use super::disk::Disk;
use super::salvage::salvage;
use super::*;
use crate::store::{Expect, Log, LogConfig, Record, Store};
use crate::sync::Mutex;

/// A file in memory that outlives the database on it.
#[derive(Clone, Debug)]
struct Memory {
    bytes: Arc<Mutex<Vec<u8>>>,
    /// How many more changes succeed.
    room: Arc<AtomicI64>,
}

impl Memory {
    fn new(bytes: Vec<u8>) -> Self {
        Self {
            bytes: Arc::new(Mutex::new(bytes)),
            room: Arc::new(AtomicI64::new(i64::MAX)),
        }
    }

    fn disk(&self) -> Disk {
        Disk::new(self.clone(), Fsync::Always).unwrap()
    }

    fn table(&self) -> FileTable {
        FileTable::on(Path::new("/"), self.disk(), 1024 * 1024)
    }

    fn fail_after(&self, changes: i64) {
        self.room.store(changes, Ordering::SeqCst);
    }

    fn change(&self) -> io::Result<()> {
        match self.room.fetch_sub(1, Ordering::SeqCst) {
            ..=0 => Err(io::ErrorKind::StorageFull.into()),
            _ => Ok(()),
        }
    }
}

impl StorageBackend for Memory {
    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes.lock().len() as u64)
    }

    fn read(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let start = usize::try_from(offset).unwrap();
        Ok(self.bytes.lock()[start..start + len].to_vec())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.change()?;
        self.bytes.lock().resize(usize::try_from(len).unwrap(), 0);
        Ok(())
    }

    fn sync_data(&self, _: bool) -> io::Result<()> {
        self.change()
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.change()?;
        let start = usize::try_from(offset).unwrap();
        self.bytes.lock()[start..start + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }
}

async fn log(store: &FileStore) -> Arc<dyn Log> {
    let opening = store.log("log", LogConfig::new("s.>"));
    opening.await.unwrap()
}

async fn append(log: &dyn Log, number: u64) -> Result<u64, StoreError> {
    let (id, payload) = (format!("id {number}"), format!("payload {number}"));
    let expect = Expect {
        id: Some(&id),
        last: None,
    };
    let subject = format!("s.{}", number % 3);
    let stored = log.append(&subject, payload.into(), expect).await?;
    Ok(stored.sequence)
}

fn is_right(record: &Record) -> bool {
    let number = record.sequence;
    record.subject == *format!("s.{}", number % 3)
        && record.id == *format!("id {number}")
        && record.payload == format!("payload {number}")
}

#[tokio::test]
async fn an_append_to_a_full_disk_says_so_and_a_later_one_is_stored() {
    // Wherever in the work of the database that is.
    for changes in 0..40 {
        let memory = Memory::new(Vec::new());
        let store = FileStore::over(memory.table()).unwrap();
        let log = log(&store).await;
        assert_eq!(append(&*log, 1).await, Ok(1));
        memory.fail_after(changes);
        let mut stored = vec![1];
        for number in 2..6 {
            match append(&*log, number).await {
                Ok(sequence) => stored.push(sequence),
                Err(error) => assert!(matches!(error, StoreError::Full { .. }), "{error:?}"),
            }
        }
        memory.fail_after(i64::MAX);
        // One whose append failed is stored now, or is already.
        for number in 2..6 {
            append(&*log, number).await.unwrap();
        }
        let found = log.read("s.>", 0, 99).await.unwrap();
        let mut payloads: Vec<_> = found.into_iter().map(|it| it.payload).collect();
        payloads.sort();
        let expected = (1..6).map(|it| format!("payload {it}"));
        assert_eq!(payloads, expected.collect::<Vec<_>>(), "after {changes}");
    }
}

#[tokio::test]
async fn a_changed_byte_costs_at_most_its_record() {
    flip(61).await;
}

#[tokio::test]
#[ignore = "every byte: minutes"]
async fn any_changed_byte_of_a_file_store_costs_at_most_its_record() {
    flip(1).await;
}

/// Changes each `step`th byte that is not of what is free, one at a time, and reads everything.
async fn flip(step: usize) {
    const RECORDS: u64 = 12;
    let memory = Memory::new(Vec::new());
    let store = FileStore::over(memory.table()).unwrap();
    let filling = log(&store).await;
    for number in 1..=RECORDS {
        append(&*filling, number).await.unwrap();
    }
    drop((filling, store));
    let whole = memory.bytes.lock().clone();
    let used = (0..whole.len()).filter(|at| ![0, 0xff].contains(&whole[*at]));
    for at in used.step_by(step) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        let memory = Memory::new(bytes);
        let mut table = memory.table();
        if !table.is_whole().unwrap() {
            let other = Memory::new(Vec::new()).table();
            salvage(&memory.disk(), &other).unwrap();
            table = other;
        }
        let store = FileStore::over(table).unwrap();
        let log = log(&store).await;
        let mut damaged = Vec::new();
        let records = log.read_around("s.>", 0, 99, &mut damaged).await.unwrap();
        assert!(records.iter().all(is_right), "byte {at}: {records:?}");
        assert!(damaged.len() <= 1, "byte {at}: {damaged:?}");
        let all = records.len() + damaged.len();
        assert_eq!(all as u64, RECORDS, "byte {at}: {records:?}");
        let mut of_subjects = 0;
        for subject in ["s.0", "s.1", "s.2"] {
            let records = log.read_around(subject, 0, 99, &mut damaged).await;
            of_subjects += records.unwrap().len();
        }
        assert_eq!(of_subjects, records.len(), "byte {at}");
        let next = append(&*log, RECORDS + 1).await;
        assert_eq!(next, Ok(RECORDS + 1), "byte {at}");
    }
}
