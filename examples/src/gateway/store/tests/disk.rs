//! A disk that fails in the middle of something.

use std::io;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use redb::StorageBackend;

use super::*;
use crate::gateway::store::engine::Engine;

/// Bytes that outlive the database on them.
#[derive(Clone, Debug)]
struct Disk {
    bytes: Arc<Mutex<Vec<u8>>>,
    /// How many more changes succeed.
    room: Arc<AtomicI64>,
}

impl Disk {
    fn new() -> Self {
        let room = Arc::new(AtomicI64::new(i64::MAX));
        let bytes = Arc::default();
        Self { bytes, room }
    }

    fn fail_after(&self, changes: i64) {
        self.room.store(changes, Ordering::SeqCst);
    }

    fn change(&self) -> io::Result<()> {
        if self.room.fetch_sub(1, Ordering::SeqCst) <= 0 {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        Ok(())
    }

    fn store(&self) -> Result<EmbeddedStore, StoreError> {
        let disk = self.clone();
        let engine = Engine::start("disk".to_owned(), move |builder| {
            builder.create_with_backend(disk.clone())
        })?;
        EmbeddedStore::new(engine, StoreLimits::default())
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes.lock().unwrap().len() as u64)
    }

    fn read(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let start = usize::try_from(offset).unwrap();
        Ok(self.bytes.lock().unwrap()[start..start + len].to_vec())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.change()?;
        self.bytes
            .lock()
            .unwrap()
            .resize(usize::try_from(len).unwrap(), 0);
        Ok(())
    }

    fn sync_data(&self, _eventual: bool) -> io::Result<()> {
        self.change()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.change()?;
        let start = usize::try_from(offset).unwrap();
        self.bytes.lock().unwrap()[start..start + data.len()].copy_from_slice(data);
        Ok(())
    }
}

#[test]
fn a_store_goes_on_when_the_disk_has_room_again() {
    let disk = Disk::new();
    let store = disk.store().unwrap();
    store.commit(&[turn("s", 1)]).unwrap();
    disk.fail_after(0);
    for _ in 0..3 {
        let error = store.commit(&[turn("s", 2)]).unwrap_err();
        assert!(matches!(error, StoreError::Io { .. }), "{error:?}");
        assert!(error.to_string().starts_with("disk: "), "{error}");
    }
    disk.fail_after(i64::MAX);
    store.commit(&[turn("s", 3)]).unwrap();
    assert_eq!(questions(&store, "s", 9), ["q1", "q3"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn a_run_is_kept_whole_or_not_at_all_wherever_the_disk_fails(changes in 0_i64..40) {
        let disk = Disk::new();
        let store = disk.store().unwrap();
        let mut whole = 0;
        disk.fail_after(changes);
        for number in 0..5 {
            let facts = vec![Fact::new(number.to_string(), "x", number)];
            let run = turn("s", number).with_facts(facts);
            let entry = UsageEntry::new(number, "s", "agent").with_tokens(1, 0, None);
            if store.commit(&[run.with_usage(entry)]).is_err() {
                break;
            }
            whole += 1;
        }
        // The process is killed and started again, on a disk that works.
        let copy = Disk::new();
        disk.bytes.lock().unwrap().clone_into(&mut copy.bytes.lock().unwrap());
        let store = copy.store().unwrap();
        let recalled = store.recall("s", "agent", 99).unwrap();
        let kept = recalled.turns.len();
        prop_assert!(kept == whole || kept == whole + 1, "{kept} of {whole}");
        prop_assert_eq!(recalled.facts.len(), kept);
        prop_assert_eq!(store.usage(99).unwrap().len(), kept);
        let used: u64 = store.totals().unwrap().days.iter().map(|(_, tokens)| tokens).sum();
        prop_assert_eq!(used, kept as u64);
    }
}
