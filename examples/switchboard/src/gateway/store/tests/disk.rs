//! A disk that fails in the middle of something.

use std::io;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use redb::StorageBackend;

use super::*;
use crate::gateway::engine::Records as _;
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
fn a_store_continues_when_the_disk_has_room_again() {
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

#[tokio::test]
async fn usage_of_a_full_disk_is_kept_and_written_with_the_next_run() {
    let disk = Disk::new();
    let store = Arc::new(disk.store().unwrap());
    let keeper = Keeper::start(Arc::clone(&store) as Arc<dyn Store>).unwrap();
    disk.fail_after(0);
    for number in 1..=3 {
        let error = keeper
            .commit(used("s", number, 10), None, None)
            .await
            .unwrap_err();
        assert!(matches!(error, StoreError::Io { .. }), "{error:?}");
    }
    disk.fail_after(i64::MAX);
    keeper.commit(used("t", 4, 1), None, None).await.unwrap();
    let entries = store.usage(9).unwrap().into_iter();
    assert_eq!(entries.map(|it| it.at).collect::<Vec<_>>(), [4, 3, 2, 1]);
    assert_eq!(store.totals().unwrap().days, [(0, 31)]);
    // It is not written once more.
    keeper.commit(turn("s", 5), None, None).await.unwrap();
    assert_eq!(store.totals().unwrap().days, [(0, 31)]);
}

#[tokio::test]
async fn usage_that_cannot_be_written_does_not_hold_up_others() {
    #[derive(Debug)]
    struct Picky(EmbeddedStore);
    impl Store for Picky {
        fn commit(&self, commits: &[Commit]) -> Result<(), StoreError> {
            if commits.iter().any(|commit| commit.session == "bad") {
                return Err(StoreError::damaged("file", "a row"));
            }
            self.0.commit(commits)
        }
        fn recall(&self, session: &str, max: usize) -> Result<Vec<Turn>, StoreError> {
            self.0.recall(session, max)
        }
        fn sessions(&self, max: usize) -> Result<Vec<SessionInfo>, StoreError> {
            self.0.sessions(max)
        }
        fn session_count(&self, since: u64) -> Result<u64, StoreError> {
            self.0.session_count(since)
        }
        fn usage(&self, max: usize) -> Result<Vec<UsageEntry>, StoreError> {
            self.0.usage(max)
        }
        fn totals(&self) -> Result<Totals, StoreError> {
            self.0.totals()
        }
        fn forget(&self, session: &str, what: Forget) -> Result<bool, StoreError> {
            self.0.forget(session, what)
        }
    }
    let store = Arc::new(Picky(memory(StoreLimits::default())));
    let keeper = Keeper::start(Arc::clone(&store) as Arc<dyn Store>).unwrap();
    assert!(keeper.commit(used("bad", 1, 10), None, None).await.is_err());
    assert_eq!(keeper.commit(used("good", 2, 1), None, None).await, Ok(()));
    assert_eq!(store.totals().unwrap().days, [(0, 1)]);
    assert_eq!(keeper.usage(9).await.unwrap().len(), 2);
}

#[test]
fn sums_without_a_session_count_for_their_day_alone() {
    let store = memory(StoreLimits::default());
    let entry = UsageEntry::new(1, "", "").with_tokens(10, 0);
    let sum = Commit::new("", 1).with_usage(entry);
    store.commit(&[sum, used("s", 2, 1)]).unwrap();
    let totals = store.totals().unwrap();
    assert_eq!(totals.days, [(0, 11)]);
    assert_eq!(totals.sessions, [("s".to_owned(), 1)]);
    assert_eq!(store.session_count(0), Ok(1));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn a_run_is_stored_whole_or_not_at_all_wherever_the_disk_fails(changes in 0_i64..40) {
        let disk = Disk::new();
        let store = disk.store().unwrap();
        let mut whole = 0;
        disk.fail_after(changes);
        for number in 0..5 {
            let run = turn("s", number);
            let entry = UsageEntry::new(number, "s", "agent").with_tokens(1, 0);
            if store.commit(&[run.with_usage(entry)]).is_err() {
                break;
            }
            whole += 1;
        }
        // The process is killed and started again, on a disk that works.
        let copy = Disk::new();
        disk.bytes.lock().unwrap().clone_into(&mut copy.bytes.lock().unwrap());
        let store = copy.store().unwrap();
        let kept = store.recall("s", 99).unwrap().len();
        prop_assert!(kept == whole || kept == whole + 1, "{kept} of {whole}");
        prop_assert_eq!(store.usage(99).unwrap().len(), kept);
        let used: u64 = store.totals().unwrap().days.iter().map(|(_, tokens)| tokens).sum();
        prop_assert_eq!(used, kept as u64);
    }
}
