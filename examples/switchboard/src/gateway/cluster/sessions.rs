//! [`Sessions`]: the records of all sessions, in a bucket.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_nats::jetstream::stream::Stream;
use bytes::Bytes;
use futures_util::StreamExt as _;
use rpc_core::cluster::try_token;
use rpc_core::net::nats::{Bucket, BucketConfig, Change, Nats, NatsError, Watch};
use sha2::{Digest as _, Sha256};
use tokio::time::{Instant, sleep};

use super::nodes::Nodes;
use super::record::{Beside, PastOwner, Place, Record, Segment};
use super::{ClusterConfig, part_of, passes};
use crate::gateway::memory::Turn;
use crate::gateway::store::{Commit, Recalled, StoreError, StoreLimits};

/// The pause after a failed request.
const PAUSE: Duration = Duration::from_millis(50);
/// The longest pause between two looks at the nodes before a waiting turn.
const LOOK: Duration = Duration::from_secs(2);
/// The bucket of sessions and budgets.
const BUCKET: &str = "gateway";
/// Most records and segments that are kept in memory.
const MAX_CACHED: usize = 1024;
/// Most bytes of one value of a segment. The server's limit may be lower.
const MAX_CHUNK: usize = 512 * 1024;

/// What to do with a changed record.
enum Write {
    Keep,
    Write(Beside),
}

/// The records of all sessions.
pub(super) struct Sessions {
    pub(super) nats: Nats,
    pub(super) bucket: Bucket,
    /// The bucket's.
    pub(super) stream: Stream,
    pub(super) nodes: Nodes,
    pub(super) limits: StoreLimits,
    patience: Duration,
    /// How often a waiting turn looks whether the nodes before it are alive.
    look: Duration,
    chunk: usize,
    /// Records as they were last known. A write that finds another revision reads again.
    cache: Mutex<HashMap<String, (Record, u64)>>,
    /// Segments never change.
    segments: Mutex<HashMap<String, Arc<Vec<Turn>>>>,
    /// Commits and places that are still to be written.
    late: Mutex<Vec<Late>>,
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Sessions").field(&self.bucket).finish()
    }
}

/// What could not be written in time.
#[derive(Debug)]
struct Late {
    id: String,
    commit: Commit,
    place: Option<Place>,
}

/// A session's turn that runs on this node. Dropping it ends the turn.
#[derive(Debug)]
pub struct SharedTurn {
    sessions: Arc<Sessions>,
    /// The record when the turn began.
    record: Record,
    session: String,
    place: Option<Place>,
}

impl SharedTurn {
    /// Returns the tokens that the session had used when the turn began.
    #[must_use]
    pub const fn tokens(&self) -> u64 {
        self.record.tokens
    }
}

impl Drop for SharedTurn {
    fn drop(&mut self) {
        let Some(place) = self.place.take() else {
            return;
        };
        // Without a runtime the process is at its end, and the others see that it is gone.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let sessions = Arc::clone(&self.sessions);
            let commit = Commit::new(&*self.session, "", 0);
            runtime.spawn(async move {
                let id = sessions.nodes.id();
                let _ = sessions.finish(id, commit, Some(place)).await;
            });
        }
    }
}

/// Returns the key of a session: its name as a token, or a hash of a long one. No token has `==`.
fn key_of(session: &str) -> String {
    let token = try_token(session).unwrap_or_else(|_| {
        let hash = Sha256::digest(session.as_bytes());
        let hex = hash.iter().map(|byte| format!("{byte:02x}"));
        format!("=={}", hex.collect::<String>())
    });
    format!("s.{token}")
}

fn decode<T: serde::de::DeserializeOwned>(value: &[u8]) -> Result<T, StoreError> {
    rpc_core::json::from_slice(value)
        .map_err(|error| StoreError::damaged("NATS", error.to_string()))
}

fn encode(value: &impl serde::Serialize) -> Result<Bytes, StoreError> {
    let text = serde_json::to_vec(value);
    let text = text.map_err(|error| StoreError::damaged("NATS", error.to_string()))?;
    Ok(text.into())
}

fn put<T>(cache: &Mutex<HashMap<String, T>>, key: String, value: T) {
    let mut cache = cache.lock().unwrap_or_else(PoisonError::into_inner);
    if cache.len() >= MAX_CACHED {
        cache.clear();
    }
    cache.insert(key, value);
}

impl Sessions {
    pub(super) async fn open(
        nats: &Nats,
        nodes: Nodes,
        config: ClusterConfig,
    ) -> Result<Self, NatsError> {
        let bucket = nats.bucket(BUCKET, BucketConfig::default()).await?;
        let stream = format!("KV_{}_{BUCKET}", nats.prefix());
        let stream = nats.jetstream().get_stream(stream).await;
        let stream = stream.map_err(|error| NatsError::Unavailable {
            message: error.to_string(),
        })?;
        let most = nats.client().server_info().max_payload;
        Ok(Self {
            nats: nats.clone(),
            bucket,
            stream,
            nodes,
            limits: config.limits,
            patience: config.patience,
            look: (config.lease.lease / 4).min(LOOK),
            chunk: (most / 4 * 3).clamp(1024, MAX_CHUNK),
            cache: Mutex::default(),
            segments: Mutex::default(),
            late: Mutex::default(),
        })
    }

    /// Returns the subject of a key, or of a pattern of keys.
    pub(super) fn subject(&self, key: &str) -> String {
        format!("$KV.{}_{BUCKET}.{key}", self.nats.prefix())
    }

    /// Reads a record. The revision is 0 if there is none.
    pub(super) async fn read(&self, session: &str) -> Result<(Record, u64), StoreError> {
        Ok(self.read_key(&key_of(session)).await?.unwrap_or_default())
    }

    /// Reads the record of a key of the bucket, with its revision.
    pub(super) async fn read_key(&self, key: &str) -> Result<Option<(Record, u64)>, StoreError> {
        match self.bucket.get(key).await? {
            Some(entry) => Ok(Some((decode(&entry.value)?, entry.revision))),
            None => Ok(None),
        }
    }

    fn cached(&self, session: &str) -> Option<(Record, u64)> {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        cache.remove(session)
    }

    /// Changes a record: as often as it takes, because other nodes change it too, or nobody knows
    /// whether it was written.
    async fn change(
        &self,
        session: &str,
        mut change: impl FnMut(&mut Record) -> Result<Write, StoreError> + Send,
    ) -> Result<Record, StoreError> {
        let until = Instant::now() + self.patience;
        let mut known = self.cached(session);
        loop {
            let attempt = async {
                let known = known.take();
                let is_old = known.is_some();
                let (mut record, revision) = match known {
                    Some(known) => known,
                    None => self.read(session).await?,
                };
                let beside = match change(&mut record) {
                    Ok(Write::Write(beside)) => beside,
                    Ok(Write::Keep) => return Ok((record, revision)),
                    // What was last known may have changed.
                    Err(_) if is_old => return Err(NatsError::Conflict.into()),
                    Err(error) => return Err(error),
                };
                let segment = self.spill(session, &mut record, beside.spilled).await?;
                let key = key_of(session);
                let value = encode(&record)?;
                let written = match revision {
                    0 => self.bucket.create(&key, value).await,
                    revision => self.bucket.update(&key, value, revision).await,
                };
                let unused = match (&written, segment) {
                    (Err(NatsError::Conflict), Some(segment)) => vec![segment],
                    (Ok(_), _) => beside.dropped,
                    _ => Vec::new(),
                };
                self.remove(&unused).await;
                Ok::<_, StoreError>((record, written?))
            };
            match attempt.await {
                Ok((record, revision)) => {
                    let known = (record.clone(), revision);
                    put(&self.cache, session.to_owned(), known);
                    return Ok(record);
                }
                Err(StoreError::Nats(NatsError::Conflict)) => {
                    sleep(part_of(PAUSE / 10)).await;
                }
                Err(StoreError::Nats(error)) if passes(&error) && Instant::now() < until => {
                    tracing::debug!(%error, "a session is written again");
                    sleep(PAUSE).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes turns that are too many for a record as a segment of their own.
    async fn spill(
        &self,
        session: &str,
        record: &mut Record,
        turns: Vec<Turn>,
    ) -> Result<Option<Segment>, StoreError> {
        if turns.is_empty() {
            return Ok(None);
        }
        // All turns of a session have keys that begin with its name.
        let key = key_of(session);
        let id = format!("{}.{}", key.trim_start_matches("s."), self.nodes.id());
        let value = encode(&turns)?;
        let mut chunks = 0;
        for chunk in value.chunks(self.chunk) {
            let chunk = Bytes::copy_from_slice(chunk);
            self.bucket.put(&format!("t.{id}.{chunks}"), chunk).await?;
            chunks += 1;
        }
        let segment = Segment {
            id: id.clone(),
            turns: turns.len() as u64,
            bytes: value.len() as u64,
            chunks,
        };
        put(&self.segments, id, Arc::new(turns));
        record.segments.push(segment.clone());
        Ok(Some(segment))
    }

    async fn turns_of(&self, segment: &Segment) -> Result<Arc<Vec<Turn>>, StoreError> {
        let cached = {
            let segments = self.segments.lock().unwrap_or_else(PoisonError::into_inner);
            segments.get(&segment.id).cloned()
        };
        if let Some(turns) = cached {
            return Ok(turns);
        }
        let mut value = Vec::new();
        for chunk in 0..segment.chunks {
            let entry = self
                .bucket
                .get(&format!("t.{}.{chunk}", segment.id))
                .await?;
            let missing = || StoreError::damaged("NATS", "turns of a session are missing");
            value.extend_from_slice(&entry.ok_or_else(missing)?.value);
        }
        let turns: Arc<Vec<Turn>> = Arc::new(decode(&value)?);
        put(&self.segments, segment.id.clone(), Arc::clone(&turns));
        Ok(turns)
    }

    /// Begins a turn as soon as the earlier ones of the session have ended, on whatever node.
    pub(super) async fn enter(
        self: &Arc<Self>,
        session: &str,
        now: u64,
    ) -> Result<SharedTurn, StoreError> {
        let mut turn = SharedTurn {
            sessions: Arc::clone(self),
            record: Record::default(),
            session: session.to_owned(),
            place: None,
        };
        let mut watch = None;
        loop {
            let lease = self.nodes.joined(self.patience).await?;
            let place = Place {
                node: lease.node().to_string(),
                number: self.nodes.number(),
            };
            let former = turn.place.replace(place.clone());
            let enter = |record: &mut Record| {
                if let Some(former) = &former {
                    record.replace(former, &place);
                }
                record.enter(session, &place, now);
                Ok(Write::Write(Beside::default()))
            };
            turn.record = self.change(session, enter).await?;
            // Without a valid lease, the others end this turn, or have done so.
            while lease.is_valid() && turn.record.line.contains(&place) {
                if turn.record.is_running(&place) {
                    return Ok(turn);
                }
                if let Some(record) = self.wait(session, &place, &mut watch).await? {
                    turn.record = record;
                }
            }
        }
    }

    /// Waits until the record may have changed, or a node before this place is gone.
    async fn wait(
        &self,
        session: &str,
        place: &Place,
        watch: &mut Option<Watch>,
    ) -> Result<Option<Record>, StoreError> {
        if watch.is_none() {
            *watch = self.bucket.watch(&key_of(session)).await.ok();
        }
        let changes = async {
            match watch {
                Some(watch) => watch.next().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            change = changes => {
                return match change {
                    Some(Ok(Change::Put(entry))) => decode(&entry.value).map(Some),
                    Some(Ok(Change::Current)) => Ok(None),
                    Some(Ok(Change::Deleted { .. })) => Ok(Some(Record::default())),
                    Some(Err(_)) | None => {
                        *watch = None;
                        sleep(PAUSE).await;
                        Ok(None)
                    }
                };
            }
            () = sleep(self.look) => {}
        }
        match self.remove_gone(session, place).await {
            // Whoever waits goes on waiting: NATS may come back.
            Err(StoreError::Nats(error)) if passes(&error) => Ok(None),
            outcome => outcome.map(Some),
        }
    }

    /// Waits until no turn of a session runs or waits.
    pub(super) async fn ended(&self, session: &str) -> Result<(), StoreError> {
        if self.read(session).await?.0.line.is_empty() {
            return Ok(());
        }
        let mut watch = self.bucket.watch(&key_of(session)).await?;
        while let Some(change) = watch.next().await {
            let is_over = match change? {
                Change::Put(entry) => decode::<Record>(&entry.value)?.line.is_empty(),
                Change::Deleted { .. } => true,
                Change::Current => false,
            };
            if is_over {
                break;
            }
        }
        Ok(())
    }

    /// Ends the turns of nodes that are gone and come before this place.
    async fn remove_gone(&self, session: &str, place: &Place) -> Result<Record, StoreError> {
        let (record, _) = self.read(session).await?;
        let gone = self.nodes.gone(record.nodes_before(place)).await?;
        if gone.is_empty() {
            return Ok(record);
        }
        tracing::info!(?gone, "nodes are gone, and their turns of a session over");
        let remove = |record: &mut Record| {
            record.remove_nodes(&gone);
            Ok(Write::Write(Beside::default()))
        };
        self.change(session, remove).await
    }

    /// Writes the results of a run, and ends its turn.
    pub(super) async fn commit(
        &self,
        id: String,
        commit: Commit,
        turn: Option<&mut SharedTurn>,
    ) -> Result<(), StoreError> {
        self.finish(id, commit, turn.and_then(|turn| turn.place.take()))
            .await
    }

    /// Writes a commit. If that is not possible now, its tokens are written later.
    async fn finish(
        &self,
        id: String,
        mut commit: Commit,
        place: Option<Place>,
    ) -> Result<(), StoreError> {
        let mut outcome = self.apply(&id, &commit, place.as_ref()).await;
        if outcome.is_err() {
            (commit.turn, commit.facts) = (None, Vec::new());
        }
        if outcome == Err(StoreError::PastOwner) {
            let counted = self.apply(&id, &commit, place.as_ref()).await;
            outcome = counted.and(outcome);
        }
        match outcome {
            Ok(()) | Err(StoreError::PastOwner) => {}
            Err(_) => self.late().push(Late { id, commit, place }),
        }
        outcome
    }

    async fn apply(
        &self,
        id: &str,
        commit: &Commit,
        place: Option<&Place>,
    ) -> Result<(), StoreError> {
        let limits = self.limits;
        let change = |record: &mut Record| {
            if record.has(id) {
                return Ok(Write::Keep);
            }
            match record.commit(id, commit, place, limits) {
                Ok(beside) => Ok(Write::Write(beside)),
                Err(PastOwner) => Err(StoreError::PastOwner),
            }
        };
        self.change(&commit.session, change).await.map(drop)
    }

    fn late(&self) -> std::sync::MutexGuard<'_, Vec<Late>> {
        self.late.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes what could not be written before. Returns whether nothing is left.
    pub(super) async fn write_late(&self) -> bool {
        let late = std::mem::take(&mut *self.late());
        let mut is_done = true;
        for Late { id, commit, place } in late {
            is_done &= self.finish(id, commit, place).await.is_ok();
        }
        is_done
    }

    /// Returns the last turns of a session and its facts: as its running turn knows them, or as they
    /// are stored.
    pub(super) async fn recall(
        &self,
        session: &str,
        turn: Option<&SharedTurn>,
        most: usize,
    ) -> Result<Recalled, StoreError> {
        let record = match turn {
            Some(turn) => turn.record.clone(),
            None => self.read(session).await?.0,
        };
        let most = most.min(usize::try_from(self.limits.turns).unwrap_or(usize::MAX));
        let mut turns = record.recent;
        for segment in record.segments.iter().rev() {
            if turns.len() >= most {
                break;
            }
            let mut older = (*self.turns_of(segment).await?).clone();
            older.append(&mut turns);
            turns = older;
        }
        turns.drain(..turns.len().saturating_sub(most));
        let mut recalled = Recalled::default();
        (recalled.turns, recalled.facts) = (turns, record.facts);
        Ok(recalled)
    }

    /// Forgets the turns of a session whose turn runs here.
    pub(super) async fn forget(&self, session: &str) -> Result<bool, StoreError> {
        let mut is_known = false;
        self.change(session, |record| {
            is_known = record.created > 0 || record.count > 0;
            let dropped = record.forget();
            let spilled = Vec::new();
            Ok(Write::Write(Beside { spilled, dropped }))
        })
        .await?;
        Ok(is_known)
    }
}
