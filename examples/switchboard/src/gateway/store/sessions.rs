//! [`Sessions`]: all sessions, each under a subject of one log.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use rpc_core::store::{Expect, Log, LogConfig, Store, StoreError as Failure, Watched, try_token};
use rpc_core::sync::Mutex;
use sha2::{Digest as _, Sha256};
use tokio::time::sleep;

use super::history::{Entry, History, record_in};
use super::nodes::Nodes;
use super::record::{PastOwner, Record, TurnId};
use super::attempts::{Attempts, LONGEST_PAUSE, passes};
use super::{Commit, Forget, GatewayStoreConfig, StoreError, StoreLimits};
use crate::gateway::memory::Turn;
use crate::gateway::usage::UsageEntry;

/// The longest pause between two looks at the nodes before a waiting turn.
const LOOK: Duration = Duration::from_secs(2);
/// The log, and what its subjects begin with.
const LOG: &str = "gateway_sessions";
/// Most sessions that are kept in memory, and most bytes of their turns.
const MAX_CACHED: usize = 1024;
const MAX_CACHED_BYTES: u64 = 64 * 1024 * 1024;
/// Most bytes of one message. The store's limit may be lower.
const MAX_CHUNK: usize = 512 * 1024;
/// Most commits that wait to be written.
const MAX_LATE: usize = 4096;
/// How many messages are read at once.
const PAGE: usize = 64;

/// All sessions.
pub(super) struct Sessions {
    pub(super) log: Arc<dyn Log>,
    pub(super) nodes: Nodes,
    pub(super) limits: StoreLimits,
    patience: Duration,
    /// How often a waiting turn looks whether the nodes before it are alive.
    look: Duration,
    chunk: usize,
    /// Sessions as they were last known, and the bytes of their turns. A write that finds another revision
    /// reads on.
    cache: Mutex<(HashMap<String, History>, u64)>,
    /// What is still to be written.
    late: Mutex<VecDeque<Late>>,
}

rpc_core::debug_fields!([] Sessions, this => { log: this.log });

/// What could not be written in time.
#[derive(Debug)]
struct Late {
    id: String,
    commit: Commit,
    turn_id: Option<TurnId>,
}

/// A session's turn that runs here. Dropping it ends the turn.
#[derive(Debug)]
pub struct OpenTurn {
    sessions: Arc<Sessions>,
    /// The session when the turn began.
    history: History,
    session: String,
    /// Its place in the queue; `None` if there is no queue, or it has left it.
    turn_id: Option<TurnId>,
}

impl OpenTurn {
    /// Returns the tokens that the session had used when the turn began.
    pub const fn tokens(&self) -> u64 {
        self.history.record.tokens
    }
}

impl Drop for OpenTurn {
    fn drop(&mut self) {
        let Some(turn_id) = self.turn_id.take() else {
            return;
        };
        // Without a runtime the process is at its end, and the others see that it is gone.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let sessions = Arc::clone(&self.sessions);
            let commit = Commit::new(&*self.session, 0);
            runtime.spawn(async move {
                let id = sessions.nodes.id();
                let _ = sessions.finish(id, commit, Some(turn_id)).await;
            });
        }
    }
}

/// Returns the subject of a session: its name as a token, or a hash of a long one. No token has `==`.
fn subject_of(session: &str) -> String {
    let token = try_token(session).unwrap_or_else(|_| {
        let hash = Sha256::digest(session.as_bytes());
        let hex = hash.iter().map(|byte| format!("{byte:02x}"));
        format!("=={}", hex.collect::<String>())
    });
    format!("{LOG}.{token}")
}

impl Sessions {
    pub(super) async fn open(
        store: &dyn Store,
        nodes: Nodes,
        config: GatewayStoreConfig,
    ) -> Result<Self, Failure> {
        let mut limits = config.limits;
        let default = limits.total_bytes.saturating_mul(2);
        let log = LogConfig {
            max_bytes: config.max_bytes,
            ..LogConfig::new(&format!("{LOG}.*"))
        };
        let (log, room) = store.log_with_room(LOG, log, default).await?;
        // Sessions are forgotten before they are refused.
        limits.total_bytes = limits.total_bytes.min(room / 4 * 3);
        Ok(Self {
            log,
            nodes,
            limits,
            patience: config.patience,
            look: config.lease.map_or(LOOK, |it| (it.lease / 4).min(LOOK)),
            chunk: (store.max_payload() / 4 * 3).clamp(1024, MAX_CHUNK),
            cache: Mutex::default(),
            late: Mutex::default(),
        })
    }

    /// Returns the last record under a subject, with the number of its message.
    pub(super) async fn last(&self, subject: &str) -> Result<Option<(Record, u64)>, StoreError> {
        match self.log.last(subject).await? {
            Some(last) => Ok(Some((record_in(&last.payload)?, last.sequence))),
            None => Ok(None),
        }
    }

    pub(super) async fn record(&self, session: &str) -> Result<Record, StoreError> {
        let last = self.last(&subject_of(session)).await?;
        Ok(last.map(|(record, _)| record).unwrap_or_default())
    }

    fn cached(&self, session: &str) -> Option<History> {
        self.cache.lock().0.get(session).cloned()
    }

    fn keep(&self, session: &str, history: &History) {
        let mut cache = self.cache.lock();
        let (known, bytes) = &mut *cache;
        if known.len() >= MAX_CACHED || *bytes >= MAX_CACHED_BYTES {
            known.clear();
            *bytes = 0;
        }
        *bytes += history.record.bytes;
        let former = known.insert(session.to_owned(), history.clone());
        *bytes -= former.map_or(0, |former| former.record.bytes.min(*bytes));
    }

    pub(super) async fn read(&self, session: &str) -> Result<History, StoreError> {
        let mut history = match self.cached(session) {
            // Nobody else writes.
            Some(known) if self.nodes.is_alone() => return Ok(known),
            known => known.unwrap_or_default(),
        };
        self.read_on(session, &mut history).await?;
        self.keep(session, &history);
        Ok(history)
    }

    /// Reads what was written since a session was last known. From the beginning, if what is known of it is
    /// not there: it was forgotten, or the store has another log.
    async fn read_on(&self, session: &str, history: &mut History) -> Result<(), StoreError> {
        let subject = subject_of(session);
        let mut after = history.revision.saturating_sub(1);
        loop {
            let page = self.log.read(&subject, after, PAGE).await?;
            let mut news = page.iter().peekable();
            if history.revision > after {
                let known = news.next();
                if known.is_none_or(|it| (it.sequence, &it.id) != (history.revision, &history.id)) {
                    (*history, after) = (History::default(), 0);
                    continue;
                }
            }
            for message in news {
                let id = message.id.clone();
                history.take(message.sequence, id, &message.payload, self.limits)?;
            }
            if page.len() < PAGE {
                return Ok(());
            }
            after = history.revision;
        }
    }

    /// Changes a session: as often as it takes, because other nodes change it too, or it is unknown
    /// whether it was written.
    async fn change(
        &self,
        session: &str,
        mut change: impl FnMut(&History) -> Result<Option<Entry>, StoreError> + Send,
    ) -> Result<History, StoreError> {
        let mut history = self.cached(session).unwrap_or_default();
        let mut is_read = history.revision == 0;
        let mut attempts = Attempts::new(self.patience);
        loop {
            let attempt = async {
                if is_read {
                    self.read_on(session, &mut history).await?;
                }
                // What was last known may have changed.
                let was_read = std::mem::replace(&mut is_read, true);
                match change(&history) {
                    Ok(Some(entry)) => self.append(session, &mut history, &entry).await,
                    Ok(None) => Ok(()),
                    Err(_) if !was_read => Err(Failure::Conflict.into()),
                    Err(error) => Err(error),
                }
            };
            if attempts.run(attempt).await?.is_some() {
                self.keep(session, &history);
                return Ok(history);
            }
        }
    }

    /// Appends an entry to the log of a session, and from time to time all of it.
    async fn append(
        &self,
        session: &str,
        history: &mut History,
        entry: &Entry,
    ) -> Result<(), StoreError> {
        let subject = subject_of(session);
        self.write(&subject, history, entry).await?;
        if history.is_long() {
            // The next one tries again.
            let all = history.all();
            let _ = self.write(&subject, history, &all).await;
        }
        Ok(())
    }

    /// Appends an entry, and removes what it makes superfluous.
    pub(super) async fn write(
        &self,
        subject: &str,
        history: &mut History,
        entry: &Entry,
    ) -> Result<(), StoreError> {
        let mut first = None;
        for message in history.messages(entry, self.chunk)? {
            let id = self.nodes.id();
            let expect = Expect {
                id: Some(&id),
                last: Some(history.revision),
            };
            let stored = self.log.append(subject, message.clone(), expect).await?;
            history.take(stored.sequence, id.into(), &message, self.limits)?;
            first.get_or_insert(stored.sequence);
        }
        if let Some(first) = first.filter(|_| entry.is_all()) {
            // What cannot be removed only takes room.
            let _ = self.log.purge(subject, first).await;
        }
        Ok(())
    }

    /// Begins a turn as soon as the earlier ones of the session have ended, on whatever node.
    pub(super) async fn enter(
        self: &Arc<Self>,
        session: &str,
        now: u64,
    ) -> Result<OpenTurn, StoreError> {
        let mut turn = OpenTurn {
            sessions: Arc::clone(self),
            history: History::default(),
            session: session.to_owned(),
            turn_id: None,
        };
        let mut watch = None;
        loop {
            let Some(lease) = self.nodes.joined(self.patience).await? else {
                turn.history = self.read(session).await?;
                return Ok(turn);
            };
            let turn_id = TurnId {
                node: lease.node().to_string(),
                number: self.nodes.number(),
            };
            let former = turn.turn_id.replace(turn_id.clone());
            let enter = |history: &History| {
                let mut record = history.record.clone();
                if let Some(former) = &former {
                    record.replace(former, &turn_id);
                }
                record.enter(session, &turn_id, now);
                Ok(Some(Entry::of(record)))
            };
            turn.history = self.change(session, enter).await?;
            let mut record = turn.history.record.clone();
            // Without a valid lease, the others end this turn, or have done so.
            while lease.is_valid() && record.queue.contains(&turn_id) {
                if record.is_running(&turn_id) {
                    if turn.history.record != record {
                        turn.history = self.read(session).await?;
                    }
                    return Ok(turn);
                }
                if let Some(changed) = self.wait(session, &turn_id, &mut watch).await? {
                    record = changed;
                }
            }
        }
    }

    /// Waits until the record may have changed, or a node before this turn is gone.
    async fn wait(
        &self,
        session: &str,
        turn_id: &TurnId,
        watch: &mut Option<Watched>,
    ) -> Result<Option<Record>, StoreError> {
        if watch.is_none() {
            *watch = self.log.watch(&subject_of(session)).await.ok();
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
                    Some(Ok(Some(message))) => record_in(&message.payload).map(Some),
                    Some(Ok(None)) => Ok(None),
                    Some(Err(_)) | None => {
                        *watch = None;
                        sleep(LONGEST_PAUSE).await;
                        Ok(None)
                    }
                };
            }
            () = sleep(self.look) => {}
        }
        match self.remove_gone(session, turn_id).await {
            // Callers go on waiting: the store may come back.
            Err(StoreError::Store(error)) if passes(&error) => Ok(None),
            outcome => outcome.map(Some),
        }
    }

    /// Waits until no turn of a session runs or waits.
    pub(super) async fn ended(&self, session: &str) -> Result<(), StoreError> {
        if self.nodes.is_alone() || self.record(session).await?.queue.is_empty() {
            return Ok(());
        }
        let mut watch = self.log.watch(&subject_of(session)).await?;
        while let Some(message) = watch.next().await {
            if let Some(message) = message?
                && record_in(&message.payload)?.queue.is_empty()
            {
                break;
            }
        }
        Ok(())
    }

    /// Ends the turns of nodes that are gone and come before this one.
    async fn remove_gone(&self, session: &str, turn_id: &TurnId) -> Result<Record, StoreError> {
        let record = self.record(session).await?;
        let gone = self.nodes.gone(record.nodes_before(turn_id)).await?;
        if gone.is_empty() {
            return Ok(record);
        }
        tracing::info!(?gone, "nodes are gone, and their turns have ended");
        let remove = |history: &History| {
            let mut record = history.record.clone();
            record.remove_nodes(&gone);
            Ok(Some(Entry::of(record)))
        };
        Ok(self.change(session, remove).await?.record)
    }

    /// Writes the results of a run, and ends its turn unless it goes on.
    pub(super) async fn commit(
        &self,
        id: String,
        commit: Commit,
        turn: Option<&mut OpenTurn>,
    ) -> Result<(), StoreError> {
        if commit.goes_on {
            let turn_id = turn.and_then(|turn| turn.turn_id.as_ref());
            return self.apply(&id, &commit, turn_id).await;
        }
        self.finish(id, commit, turn.and_then(|turn| turn.turn_id.take()))
            .await
    }

    /// Writes a commit. If that is not possible now, its tokens are written later.
    async fn finish(
        &self,
        id: String,
        mut commit: Commit,
        turn_id: Option<TurnId>,
    ) -> Result<(), StoreError> {
        let mut outcome = self.apply(&id, &commit, turn_id.as_ref()).await;
        if outcome.is_err() {
            commit.turn = None;
        }
        if outcome == Err(StoreError::PastOwner) {
            let counted = self.apply(&id, &commit, turn_id.as_ref()).await;
            outcome = counted.and(outcome);
        }
        match outcome {
            Ok(()) | Err(StoreError::PastOwner) => {}
            Err(_) => self.keep_late(Late {
                id,
                commit,
                turn_id,
            }),
        }
        outcome
    }

    fn keep_late(&self, commit: Late) {
        let mut late = self.late.lock();
        late.push_back(commit);
        if late.len() > MAX_LATE
            && let Some(lost) = late.pop_front()
        {
            let tokens = lost.commit.usage.iter().map(UsageEntry::tokens);
            let tokens: u64 = tokens.sum();
            tracing::error!(tokens, "tokens of a session are lost");
        }
    }

    async fn apply(
        &self,
        id: &str,
        commit: &Commit,
        turn_id: Option<&TurnId>,
    ) -> Result<(), StoreError> {
        let change = |history: &History| {
            if history.record.has(id) {
                return Ok(None);
            }
            match history.commit(id, commit, turn_id, self.limits) {
                Ok(entry) => Ok(Some(entry)),
                Err(PastOwner) => Err(StoreError::PastOwner),
            }
        };
        self.change(&commit.session, change).await.map(drop)
    }

    /// Writes what could not be written before. Returns whether nothing is left.
    pub(super) async fn write_late(&self) -> bool {
        let late = std::mem::take(&mut *self.late.lock());
        let mut is_done = true;
        for Late {
            id,
            commit,
            turn_id,
        } in late
        {
            is_done &= self.finish(id, commit, turn_id).await.is_ok();
        }
        is_done
    }

    /// Returns the last turns of a session: as its running turn knows them, or as they are stored.
    pub(super) async fn recall(
        &self,
        session: &str,
        turn: Option<&OpenTurn>,
        most: usize,
    ) -> Result<Vec<Turn>, StoreError> {
        let read;
        let history = match turn {
            Some(turn) => &turn.history,
            None => {
                read = self.read(session).await?;
                &read
            }
        };
        let most = most.min(usize::try_from(self.limits.turns).unwrap_or(usize::MAX));
        Ok(history.last_turns(most))
    }

    /// Forgets a session, or its turns, whose turn runs here.
    pub(super) async fn forget(&self, session: &str, what: Forget) -> Result<bool, StoreError> {
        let mut is_known = false;
        let history = self
            .change(session, |history| {
                is_known = history.record.created > 0 || history.record.count > 0;
                Ok(is_known.then(|| match what {
                    Forget::Turns => history.forget(),
                    Forget::All => Entry::nothing(),
                }))
            })
            .await?;
        if is_known && what == Forget::All {
            self.cache.lock().0.remove(session);
            self.log
                .purge(&subject_of(session), history.revision + 1)
                .await?;
        }
        Ok(is_known)
    }
}
