//! The sessions of a host on a store in memory, for tests without a host.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use connectonion_proto::internals::{Job, Sessions, StorageError};
use connectonion_proto::session::Owner;
use connectonion_proto::storage::Record;
use rpc_core::store::MemoryStore;
use tokio::runtime::{Builder, Runtime};

/// What the clock of the store says.
pub const NOW: f64 = 1_795_293_457.5;

fn clock() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs_f64(NOW)
}

/// A store with a runtime of its own, whose time stands still.
pub struct Stored {
    runtime: Runtime,
    pub store: MemoryStore,
    sessions: Sessions,
}

impl Stored {
    pub fn new() -> Self {
        let runtime = Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let (store, sessions) = runtime.block_on(async {
            let store = MemoryStore::new();
            let sessions = Sessions::alone(&store, clock).await.unwrap();
            (store, sessions)
        });
        Self {
            runtime,
            store,
            sessions,
        }
    }

    pub fn run<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    pub fn carry_out(&self, job: &Job, now: f64) -> Result<Option<Record>, StorageError> {
        self.run(self.sessions.carry_out(job, now))
    }

    pub fn load(&self, session_id: &str, now: f64) -> Result<Option<Record>, StorageError> {
        self.run(self.sessions.load(session_id, now))
    }

    pub fn append(&self, record: &Record) -> Result<(), StorageError> {
        self.run(self.sessions.append(record))
    }

    pub fn delete(
        &self,
        session_id: &str,
        owner: Owner,
        now: f64,
    ) -> Result<Option<Record>, StorageError> {
        self.run(self.sessions.delete(session_id, owner, now))
    }

    /// The host ends, and the next one finds what it has stored. Returns how many runs were interrupted.
    pub fn restart(&mut self, now: f64) -> usize {
        let store = self.store.clone();
        let sessions = self.run(Sessions::alone(&store, clock)).unwrap();
        self.sessions = sessions;
        self.run(self.sessions.recover(now)).unwrap()
    }
}
