//! [`NatsStorage`]: sessions in a stream of JetStream, each written by its owner alone.

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::stream::{RawMessageError, Stream};
use bytes::Bytes;
use rpc_core::cluster::{Fence, token};
use rpc_core::net::nats::{ClaimError, Claimed, Expect, Nats, NatsError, Ownership};
use tokio::runtime::Handle;
use tokio::time::sleep;

use super::node::{Current, Node};
use super::part::{Kind, Part, Parts, decode_events, encode_events};
use crate::replay::Entry;
use crate::storage::{Record, RecordStatus, Storage, StorageError, interrupted};

/// The bytes of a message beside its part of a record: its subject, headers and first line.
const ENVELOPE: usize = 2048;
/// How long to wait before a publish without an answer is repeated.
const PAUSE: Duration = Duration::from_millis(100);
/// How often a new owner reads again because the old one still writes.
const MAX_TAKEOVERS: u32 = 20;

/// A storage of sessions that several hosts share.
///
/// - The records of a session are on one subject of a stream. A record longer than a message is
///   stored in parts, and counts when its last part is there. Replaced records are purged.
/// - A session has one owner. Every write names the last message of the session that the owner knows,
///   so the server refuses the writes of all others; [`StorageError::Fenced`] is the end of the
///   session at this host. An owner whose host is gone is replaced: its run becomes
///   [interrupted](RecordStatus::Interrupted), by a record after which nothing of the old owner is
///   accepted.
/// - The [events](Storage::append_events) of a run are stored between the records, and purged with its
///   beginning.
/// - An [appended](Storage::append) record is in the stream when the call returns. Without an
///   answer it is sent again under the same id until there is one, or until this host has lost its
///   lease: then it is fenced, and its clients find out at the next host. So no record is both
///   refused and stored.
///
/// Calls block, and need the tokio runtime on which the cluster was opened.
pub struct NatsStorage {
    current: Current,
    log: Log,
    owned: Mutex<HashMap<String, (Fence, Ownership)>>,
    max_record_bytes: usize,
    handle: Handle,
}

/// The stream, and how it is written.
#[derive(Clone)]
struct Log {
    nats: Nats,
    stream: Stream,
    max_part_bytes: usize,
}

impl NatsStorage {
    pub(super) fn new(current: Current, nats: Nats, stream: Stream, max_record: usize) -> Self {
        let max = nats.client().server_info().max_payload;
        let max_part_bytes = max.saturating_sub(ENVELOPE).clamp(1024, 512 * 1024);
        Self {
            current,
            log: Log {
                nats,
                stream,
                max_part_bytes,
            },
            owned: Mutex::default(),
            max_record_bytes: max_record,
            handle: Handle::current(),
        }
    }

    fn owned(&self) -> MutexGuard<'_, HashMap<String, (Fence, Ownership)>> {
        self.owned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets all ownerships, because the node they belong to is gone.
    pub(super) fn forget_all(&self) {
        self.owned().clear();
    }

    fn known(&self, session_id: &str) -> Option<Fence> {
        let owned = self.owned();
        // What belongs to an earlier life of this host is claimed again.
        let (fence, _) = owned.get(session_id).filter(|(_, it)| it.is_valid())?;
        Some(*fence)
    }

    fn forget(&self, session_id: &str) -> Option<Ownership> {
        self.owned().remove(session_id).map(|(_, it)| it)
    }

    fn keep(&self, session_id: &str, fence: Fence) {
        if let Some((known, _)) = self.owned().get_mut(session_id) {
            *known = fence;
        }
    }

    fn node(&self) -> Result<Arc<Node>, StorageError> {
        self.current.get().ok_or_else(|| StorageError::Io {
            what: "store the session",
            kind: io::ErrorKind::NotConnected,
            message: "this host is not a part of the cluster at the moment".to_owned(),
        })
    }

    async fn load_async(&self, session_id: &str, now: f64) -> Result<Option<Record>, StorageError> {
        let node = self.node()?;
        let subject = self.log.subject(session_id);
        let record = match self.known(session_id) {
            Some(mut fence) => self.log.read(&node, &subject, &mut fence).await?,
            None => self.take(&node, session_id, &subject, now).await?,
        };
        Ok(record.filter(|record| !record.is_expired(now)))
    }

    /// Becomes the owner of a session, and reads what there is.
    async fn take(
        &self,
        node: &Node,
        session_id: &str,
        subject: &str,
        now: f64,
    ) -> Result<Option<Record>, StorageError> {
        let ownership = match node.claims.claim(session_id).await {
            Ok(Claimed::Owned(ownership)) => ownership,
            Ok(Claimed::Held { .. }) => return Err(StorageError::Fenced),
            Err(error) => return Err(not_claimed(&error)),
        };
        let is_taken = ownership.taken_from().is_some();
        let mut fence = Fence::new(ownership.fence());
        for _ in 0..MAX_TAKEOVERS {
            let mut found = self.log.read(node, subject, &mut fence).await?;
            if is_taken {
                let record = found.take().map(|record| match record.status {
                    RecordStatus::Running => interrupted(record, now),
                    _ => record,
                });
                let line = record.clone().map(|mut record| {
                    record.session = None;
                    record.to_line()
                });
                let line = line.unwrap_or_default();
                let line = (Kind::Record, &*line);
                match self.log.append(node, subject, &mut fence, line).await {
                    Ok(_) => {}
                    // The old owner was still at work, or there is a new one: reading tells.
                    Err(NatsError::Conflict) => continue,
                    Err(error) => return Err(failed(&error)),
                }
                found = record;
            }
            self.owned()
                .insert(session_id.to_owned(), (fence, ownership));
            return Ok(found);
        }
        Err(StorageError::Fenced)
    }

    async fn append_async(&self, record: &Record) -> Result<(), StorageError> {
        let session_id = &*record.session_id;
        let line = record.to_line();
        if line.len() > self.max_record_bytes {
            return Err(StorageError::TooLarge {
                size: line.len(),
                max: self.max_record_bytes,
            });
        }
        let node = self.node()?;
        let subject = self.log.subject(session_id);
        let fence = match self.known(session_id) {
            Some(fence) => fence,
            None => {
                // A session of this host alone, until now.
                let found = self
                    .take(&node, session_id, &subject, record.created)
                    .await?;
                let fence = self.known(session_id).ok_or(StorageError::Fenced)?;
                if found.is_some() {
                    // Another host had it meanwhile: what is known here is old.
                    self.give_back(session_id).await;
                    return Err(StorageError::Fenced);
                }
                fence
            }
        };
        let line = (Kind::Record, &*line);
        let first = self.write(&node, session_id, fence, line).await?;
        if record.session.is_some() && record.status != RecordStatus::Running {
            // What it replaces; if this fails, the next one does it.
            let log = self.log.clone();
            self.handle.spawn(async move {
                let purge = log.stream.purge().sequence(first).filter(subject);
                if let Err(error) = purge.await {
                    tracing::debug!(%error, "replaced records were not purged");
                }
            });
        }
        Ok(())
    }

    /// Stores events of a session that this host owns.
    async fn append_events_async(
        &self,
        session_id: &str,
        events: &[Entry],
    ) -> Result<(), StorageError> {
        let node = self.node()?;
        let Some(fence) = self.known(session_id) else {
            // Its prompt was not stored either.
            return Ok(());
        };
        let lines = encode_events(events);
        let written = self.write(&node, session_id, fence, (Kind::Events, &lines));
        written.await.map(drop)
    }

    /// Writes to the log of a session. Returns the sequence of the first message.
    async fn write(
        &self,
        node: &Node,
        session_id: &str,
        mut fence: Fence,
        line: (Kind, &str),
    ) -> Result<u64, StorageError> {
        let subject = self.log.subject(session_id);
        let written = self.log.append(node, &subject, &mut fence, line).await;
        if written == Err(NatsError::Conflict) {
            self.forget(session_id);
        } else {
            self.keep(session_id, fence);
        }
        written.map_err(|error| failed(&error))
    }

    async fn give_back(&self, session_id: &str) {
        if let Some(ownership) = self.forget(session_id) {
            ownership.release().await;
        }
    }

    /// Waits on the runtime of the cluster.
    fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        self.handle.block_on(future)
    }
}

impl Storage for NatsStorage {
    fn load(&self, session_id: &str, now: f64) -> Result<Option<Record>, StorageError> {
        self.wait(self.load_async(session_id, now))
    }

    fn append(&self, record: &Record) -> Result<(), StorageError> {
        self.wait(self.append_async(record))
    }

    fn append_events(&self, session_id: &str, events: &[Entry]) -> Result<(), StorageError> {
        self.wait(self.append_events_async(session_id, events))
    }

    /// Does nothing: a session is recovered by its next owner, when it is loaded.
    fn recover(&self, _: f64) -> Result<Vec<Record>, StorageError> {
        Ok(Vec::new())
    }

    /// Does nothing: the stream forgets what is old by itself.
    fn compact(&self, _: f64) -> Result<(), StorageError> {
        Ok(())
    }

    fn release(&self, session_id: &str) {
        if self.known(session_id).is_some() {
            self.wait(self.give_back(session_id));
        }
    }
}

impl Log {
    fn subject(&self, session_id: &str) -> String {
        self.nats.subject(&["onion", "s", &token(session_id)])
    }

    /// Reads all messages of a session, and returns its record. What was stored in parts and not to
    /// its end does not count.
    async fn read(
        &self,
        node: &Node,
        subject: &str,
        fence: &mut Fence,
    ) -> Result<Option<Record>, StorageError> {
        let mut newest: Option<Record> = None;
        let mut events = Vec::new();
        let mut parts = Parts::default();
        let mut last = 0;
        loop {
            let Some(message) = self.next(node, subject, last).await? else {
                break;
            };
            last = message.sequence;
            let part = Part::parse(&message.payload);
            let owner = part.as_ref().map(|part| part.owner);
            fence.read(last, owner).map_err(|_| StorageError::Fenced)?;
            let Some((kind, text)) = part.and_then(|part| parts.take(&part)) else {
                continue;
            };
            let text = std::str::from_utf8(&text).unwrap_or_default();
            if kind == Kind::Events {
                events.extend(decode_events(text));
                continue;
            }
            match Record::parse(text).ok() {
                Some(mut record) => {
                    if !continues_run(&record) {
                        events.clear();
                    }
                    record.inherit(newest.as_ref());
                    newest = Some(record);
                }
                None => tracing::warn!(subject, "a record was not readable"),
            }
        }
        Ok(newest.map(|record| Record { events, ..record }))
    }

    /// Returns the first message of a subject after the message `last`.
    async fn next(
        &self,
        node: &Node,
        subject: &str,
        last: u64,
    ) -> Result<Option<StreamMessage>, StorageError> {
        let first = || {
            self.stream
                .get_first_raw_message_by_subject(subject, last + 1)
        };
        let found = self.read_message(node, first).await;
        found.map_err(|error| failed(&error))
    }

    /// Reads a message. Without an answer it asks again, as long as this node is alive.
    async fn read_message<F>(
        &self,
        node: &Node,
        read: impl Fn() -> F,
    ) -> Result<Option<StreamMessage>, NatsError>
    where
        F: Future<Output = Result<StreamMessage, RawMessageError>>,
    {
        loop {
            match self.nats.message(&self.stream, read()).await {
                Err(error) if error.is_retryable() && node.is_valid() => sleep(PAUSE).await,
                found => return found,
            }
        }
    }

    /// Appends a record or events in as many parts as it needs; an empty one only says who the owner
    /// is.
    /// Returns the sequence of the first part. `fence` knows the last message of the session
    /// afterwards, also after an error.
    async fn append(
        &self,
        node: &Node,
        subject: &str,
        fence: &mut Fence,
        (kind, line): (Kind, &str),
    ) -> Result<u64, NatsError> {
        let parts = line.len().div_ceil(self.max_part_bytes);
        let mut first = None;
        for part in 0..parts.max(1) {
            let from = part * self.max_part_bytes;
            let bytes = line.as_bytes();
            let to = bytes.len().min(from + self.max_part_bytes);
            let payload = Part {
                kind,
                owner: fence.fence(),
                number: part,
                of: parts,
                bytes: bytes.get(from..to).unwrap_or_default(),
            };
            let payload = payload.encode();
            let last = self
                .publish(node, subject, fence.expected(), payload)
                .await?;
            fence.stored(last, true);
            first.get_or_insert(last);
        }
        Ok(first.unwrap_or(fence.expected()))
    }

    /// Stores one message after the message `last`. Repeats it until the outcome is known.
    async fn publish(
        &self,
        node: &Node,
        subject: &str,
        last: u64,
        payload: Bytes,
    ) -> Result<u64, NatsError> {
        let id = format!(
            "{:016x}{:016x}",
            rpc_core::net::entropy(),
            rpc_core::net::entropy()
        );
        let mut is_repeated = false;
        loop {
            // Who has no lease may have no claim either.
            if !node.is_valid() {
                return Err(NatsError::Conflict);
            }
            let expect = Expect {
                id: Some(&id),
                last_subject_sequence: Some(last),
            };
            let sent = self
                .nats
                .publish(subject.to_owned(), payload.clone(), expect)
                .await;
            match sent {
                Ok(stored) => return Ok(stored.sequence),
                Err(NatsError::Conflict) if is_repeated => {
                    let last = || self.stream.get_last_raw_message_by_subject(subject);
                    // Without an answer this node no longer counts as alive.
                    let last = self.read_message(node, last).await;
                    let last = last.map_err(|_| NatsError::Conflict)?;
                    let own = last.filter(|it| {
                        let found = it.headers.get("Nats-Msg-Id");
                        found.is_some_and(|found| found.as_str() == id)
                    });
                    return own.map(|it| it.sequence).ok_or(NatsError::Conflict);
                }
                Err(NatsError::Unavailable { message }) => {
                    tracing::debug!(message, "NATS does not answer");
                    is_repeated = true;
                    sleep(PAUSE).await;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// Returns whether the events before this record belong to its run: it did not begin here, or it is run
/// again.
fn continues_run(record: &Record) -> bool {
    match record.status {
        RecordStatus::Running => record.session.is_none() || record.reruns > 0,
        RecordStatus::Interrupted => true,
        _ => false,
    }
}

/// The error of a session that was not claimed.
fn not_claimed(error: &ClaimError) -> StorageError {
    StorageError::Io {
        what: "claim the session",
        kind: match error {
            ClaimError::NotAlive => io::ErrorKind::NotConnected,
            _ => io::ErrorKind::TimedOut,
        },
        message: error.to_string(),
    }
}

/// The error of a read, or of a write that was not done.
fn failed(error: &NatsError) -> StorageError {
    let kind = match error {
        NatsError::Conflict => return StorageError::Fenced,
        NatsError::Full { .. } => io::ErrorKind::StorageFull,
        NatsError::Unavailable { .. } => io::ErrorKind::TimedOut,
        NatsError::Denied { .. } => io::ErrorKind::PermissionDenied,
        _ => io::ErrorKind::Other,
    };
    StorageError::Io {
        what: "store the session in NATS",
        kind,
        message: error.to_string(),
    }
}

impl std::fmt::Debug for NatsStorage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NatsStorage")
            .field("owned", &self.owned().len())
            .finish_non_exhaustive()
    }
}
