//! The sessions of a [`GatewayStore`], in a [`SessionLog`](rpc_core::store::SessionLog).

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use futures_util::StreamExt as _;
use rpc_core::store::{Session, SessionInfo, StoreError as Failure, Watched};
use tokio::time::{Instant, sleep};

use super::attempts::{Attempts, LONGEST_PAUSE, passes};
use super::history::{Contents, Next, record_of};
use super::record::{Record, TurnId};
use super::{Commit, Forget, GatewayStore, StoreError};
use crate::gateway::memory::{Entity, Turn};
use crate::gateway::usage::UsageEntry;

/// Most sessions that are kept in memory, and most bytes of their records.
const MAX_CACHED: usize = 1024;
const MAX_CACHED_BYTES: u64 = 64 * 1024 * 1024;
/// Most commits that wait to be written.
const MAX_LATE: usize = 4096;

/// Sessions as they were last known. A write that finds another revision reads on.
#[derive(Debug, Default)]
pub(super) struct Cache {
    pub(super) sessions: HashMap<String, Session<Contents>>,
    bytes: u64,
}

impl Cache {
    fn insert(&mut self, id: &str, session: &Session<Contents>) {
        if self.sessions.len() >= MAX_CACHED || self.bytes >= MAX_CACHED_BYTES {
            *self = Self::default();
        }
        self.bytes += session.bytes();
        let former = self.sessions.insert(id.to_owned(), session.clone());
        self.bytes -= former.map_or(0, |former| former.bytes().min(self.bytes));
    }
}

/// What could not be written in time, and which parts of it.
#[derive(Clone, Debug)]
pub(super) struct Late {
    id: String,
    commit: Commit,
    turn_id: Option<TurnId>,
    is_stored: bool,
    is_logged: bool,
}

impl Late {
    const fn is_done(&self) -> bool {
        self.is_stored && self.is_logged
    }

    /// Returns the usage that is not in the log.
    pub(super) fn unlogged(&self) -> &[UsageEntry] {
        match self.is_logged {
            true => &[],
            false => &self.commit.usage,
        }
    }
}

/// A session's turn that runs here. Dropping it ends the turn.
#[derive(Debug)]
pub struct OpenTurn {
    store: Arc<GatewayStore>,
    /// The session when the turn began.
    known: Session<Contents>,
    session: String,
    /// Its place in the queue; `None` if there is no queue, or it has left it.
    turn_id: Option<TurnId>,
    /// The estimated tokens that the session has counted for it.
    noted: u64,
}

impl OpenTurn {
    /// Returns the tokens that the session had used when the turn began.
    pub fn tokens(&self) -> u64 {
        record_of(&self.known).tokens
    }
}

impl Drop for OpenTurn {
    fn drop(&mut self) {
        let Some(turn_id) = self.turn_id.take() else {
            return;
        };
        // Without a runtime the process is at its end, and the others see that it is gone.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let store = Arc::clone(&self.store);
            let commit = Commit::new(&*self.session, 0);
            runtime.spawn(async move { store.finish(commit, Some(turn_id)).await });
        }
    }
}

impl GatewayStore {
    pub(super) async fn record(&self, id: &str) -> Result<Record, StoreError> {
        if self.nodes.is_alone()
            && let Some(known) = self.cached(id)
        {
            return Ok(record_of(&known).into_owned());
        }
        let head = self.log.head(id).await?.and_then(|last| last.head);
        let record = head.and_then(|head| Record::in_head(&head));
        Ok(record.unwrap_or_default())
    }

    /// Returns all sessions, the last used ones first.
    pub(super) async fn list(&self) -> Result<Vec<Record>, StoreError> {
        let listed = self.log.heads().await?.into_iter().rev();
        let records = listed.filter_map(|it| Record::in_head(&it.head?));
        let mut records: Vec<_> = records.collect();
        records.sort_by_key(|record| Reverse(record.active));
        Ok(records)
    }

    fn cached(&self, id: &str) -> Option<Session<Contents>> {
        self.cache.lock().sessions.get(id).cloned()
    }

    async fn read(&self, id: &str) -> Result<Session<Contents>, StoreError> {
        let mut session = match self.cached(id) {
            // Nobody else writes.
            Some(known) if self.nodes.is_alone() => return Ok(known),
            known => known.unwrap_or_default(),
        };
        self.log.read(id, &mut session).await?;
        self.cache.lock().insert(id, &session);
        Ok(session)
    }

    /// Changes a session: as often as it takes, because other nodes change it too, or it is unknown
    /// whether it was written. Returns what is known of it afterwards.
    async fn change(
        &self,
        id: &str,
        mut change: impl FnMut(&mut Next) -> Result<bool, StoreError> + Send,
    ) -> Result<Session<Contents>, StoreError> {
        let mut session = self.cached(id).unwrap_or_default();
        let mut is_read = session.revision() == 0;
        let mut attempts = Attempts::new(self.patience);
        let until = Instant::now() + self.patience;
        loop {
            let attempt = async {
                if is_read {
                    self.log.read(id, &mut session).await?;
                }
                // What was last known may have changed.
                let was_read = std::mem::replace(&mut is_read, true) || self.nodes.is_alone();
                let mut next = Next::of(&session);
                match change(&mut next) {
                    Ok(true) => {
                        let is_due = self.log.is_due(&session, next.contents.len());
                        let entry = next.entry(is_due)?;
                        let (contents, in_time) = (next.contents, || Instant::now() < until);
                        let append = self.log.append(id, &mut session, entry, contents, in_time);
                        Ok(append.await?)
                    }
                    Ok(false) | Err(_) if !was_read => Err(Failure::Conflict.into()),
                    refused => refused.map(drop),
                }
            };
            if attempts.run(attempt).await?.is_some() {
                self.cache.lock().insert(id, &session);
                return Ok(session);
            }
        }
    }

    /// Begins a turn as soon as the earlier ones of the session have ended, on whatever node.
    ///
    /// # Errors
    /// [`StoreError`] if there is no turn.
    ///
    /// # Cancel safety
    /// Dropping the future begins none.
    pub async fn enter(self: &Arc<Self>, session: &str, now: u64) -> Result<OpenTurn, StoreError> {
        let mut turn = OpenTurn {
            store: Arc::clone(self),
            known: Session::default(),
            session: session.to_owned(),
            turn_id: None,
            noted: 0,
        };
        let mut watch = None;
        loop {
            let Some(lease) = self.nodes.joined(self.patience).await? else {
                turn.known = self.read(session).await?;
                return Ok(turn);
            };
            let turn_id = TurnId {
                node: lease.node().to_string(),
                number: self.nodes.number(),
            };
            let former = turn.turn_id.replace(turn_id.clone());
            let enter = |next: &mut Next| {
                if let Some(former) = &former {
                    next.contents.record.replace(former, &turn_id);
                }
                next.contents.record.enter(session, &turn_id, now);
                Ok(true)
            };
            turn.known = self.change(session, enter).await?;
            let mut record = record_of(&turn.known).into_owned();
            // Without a valid lease, the others end this turn, or have done so.
            while lease.is_valid() && record.queue.contains(&turn_id) {
                if record.is_running(&turn_id) {
                    if *record_of(&turn.known) != record {
                        turn.known = self.read(session).await?;
                    }
                    return Ok(turn);
                }
                if let Some(changed) = self.wait(session, &turn_id, &mut watch).await? {
                    record = changed;
                }
            }
        }
    }

    async fn watch(&self, session: &str) -> Result<Watched, Failure> {
        let subject = self.log.subject(session);
        self.log.log().watch(&subject).await
    }

    /// Returns the record in a message of a watch.
    fn record_in(&self, message: &rpc_core::store::Record) -> Record {
        let head = self.log.listed(message).head;
        head.and_then(|head| Record::in_head(&head))
            .unwrap_or_default()
    }

    /// Waits until the record may have changed, or a node before this turn is gone.
    async fn wait(
        &self,
        session: &str,
        turn_id: &TurnId,
        watch: &mut Option<Watched>,
    ) -> Result<Option<Record>, StoreError> {
        if watch.is_none() {
            *watch = self.watch(session).await.ok();
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
                    Some(Ok(Some(message))) => Ok(Some(self.record_in(&message))),
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

    /// Waits until no turn of a session runs or waits on another node.
    ///
    /// # Errors
    /// [`StoreError`] if its end cannot be seen.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn ended(&self, session: &str) -> Result<(), StoreError> {
        if self.nodes.is_alone() || self.record(session).await?.queue.is_empty() {
            return Ok(());
        }
        let mut watch = self.watch(session).await?;
        while let Some(message) = watch.next().await {
            if let Some(message) = message?
                && self.record_in(&message).queue.is_empty()
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
        let remove = |next: &mut Next| {
            next.contents.record.remove_nodes(&gone);
            Ok(true)
        };
        Ok(record_of(&self.change(session, remove).await?).into_owned())
    }

    /// Stores the results of a run in its turn, which ends unless it goes on, and waits until they are stored, and
    /// what was [settled](super::Reservation::settle). Runs of one session keep their order if each is awaited
    /// before the next.
    ///
    /// # Errors
    /// [`StoreError`] if something is not stored. The usage is kept and written later: do not commit it again.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the results stored or not.
    pub async fn commit(
        &self,
        mut commit: Commit,
        mut turn: Option<&mut OpenTurn>,
    ) -> Result<(), StoreError> {
        if commit.goes_on {
            let turn_id = turn.as_ref().and_then(|turn| turn.turn_id.as_ref());
            let id = self.nodes.id();
            // What cannot be counted now is counted with the usage at the latest.
            let (stored, _) =
                tokio::join!(self.apply(&id, &commit, turn_id), self.budget.try_write());
            if let (Ok(()), Some(turn)) = (&stored, turn) {
                turn.noted = commit.noted;
            }
            return stored;
        }
        if let Some(turn) = &mut turn {
            commit.noted = std::mem::take(&mut turn.noted);
        }
        let has_used = !commit.usage.is_empty();
        let written = async {
            match has_used {
                true => self.budget.written().await,
                false => Ok(()),
            }
        };
        let turn_id = turn.and_then(|turn| turn.turn_id.take());
        let (stored, written) = tokio::join!(self.finish(commit, turn_id), written);
        stored.and(written)
    }

    /// Writes a commit that ends its turn. What is not possible now, but for the answer, is written later.
    async fn finish(&self, commit: Commit, turn_id: Option<TurnId>) -> Result<(), StoreError> {
        let mut late = Late {
            id: self.nodes.id(),
            commit,
            turn_id,
            is_stored: false,
            is_logged: false,
        };
        let outcome = self.write(&mut late).await;
        if !late.is_done() {
            late.commit.turn = None;
            let mut all = self.late.lock();
            all.push_back(late);
            if all.len() > MAX_LATE
                && let Some(lost) = all.pop_front()
            {
                let tokens: u64 = lost.commit.usage.iter().map(UsageEntry::tokens).sum();
                tracing::error!(tokens, "the usage of these tokens is not written down");
            }
        }
        outcome
    }

    /// Writes the parts of a commit that are not written.
    async fn write(&self, late: &mut Late) -> Result<(), StoreError> {
        let (id, turn_id) = (&late.id, late.turn_id.as_ref());
        let stored = async {
            if late.is_stored {
                return Ok(());
            }
            let mut outcome = self.apply(id, &late.commit, turn_id).await;
            if outcome == Err(StoreError::PastOwner) {
                let tokens = late.commit.clone().with_turn(None);
                outcome = self.apply(id, &tokens, turn_id).await.and(outcome);
            }
            outcome
        };
        let logged = async {
            for (number, entry) in late.unlogged().iter().enumerate() {
                self.usage.append(&format!("{id}-{number}"), entry).await?;
            }
            Ok(())
        };
        let (stored, logged) = tokio::join!(stored, logged);
        late.is_stored = matches!(stored, Ok(()) | Err(StoreError::PastOwner));
        late.is_logged = logged.is_ok();
        stored.and(logged)
    }

    async fn apply(
        &self,
        id: &str,
        commit: &Commit,
        turn_id: Option<&TurnId>,
    ) -> Result<(), StoreError> {
        let change = |next: &mut Next| {
            let is_open = |turn_id| next.contents.record.queue.contains(turn_id);
            let ends_nothing = commit.is_empty() && !turn_id.is_some_and(is_open);
            // What was learnt of a session that is forgotten does not bring it back.
            let is_gone = commit.learnt.is_some() && next.contents.record.session.is_empty();
            if next.contents.record.has(id) || (turn_id.is_some() && ends_nothing) || is_gone {
                return Ok(false);
            }
            next.commit(id, commit, turn_id, self.limits).map(|()| true)
        };
        self.change(&commit.session, change).await.map(drop)
    }

    /// Writes what could not be written before. Returns whether nothing is left.
    pub(super) async fn write_late(&self) -> bool {
        let mut is_done = self.budget.try_write().await.is_ok();
        let late = self.late.lock().clone();
        for mut commit in late {
            is_done &= self.write(&mut commit).await.is_ok();
            let mut all = self.late.lock();
            if let Some(place) = all.iter().position(|it| it.id == commit.id) {
                match commit.is_done() {
                    true => drop(all.remove(place)),
                    false => all[place] = commit,
                }
            }
        }
        is_done
    }

    /// Returns the last turns of a session, oldest first: as its `turn` has found them, or as they are stored now.
    /// Empty for an unknown session.
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be read.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn recall(
        &self,
        session: &str,
        turn: Option<&OpenTurn>,
        most: usize,
    ) -> Result<Vec<Turn>, StoreError> {
        let most = most.min(usize::try_from(self.limits.turns).unwrap_or(usize::MAX));
        self.part(session, turn, |it| it.last(most)).await
    }

    /// Returns what is known from the turns of a session, oldest first, like [`recall`](Self::recall).
    ///
    /// # Errors
    /// As for [`recall`](Self::recall).
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn entities(
        &self,
        session: &str,
        turn: Option<&OpenTurn>,
    ) -> Result<Vec<Entity>, StoreError> {
        self.part(session, turn, |it| it.entities.clone()).await
    }

    async fn part<T: Default>(
        &self,
        session: &str,
        turn: Option<&OpenTurn>,
        part: impl FnOnce(&Contents) -> T + Send,
    ) -> Result<T, StoreError> {
        let part = match turn {
            Some(turn) => turn.known.state().map(part),
            None => self.read(session).await?.state().map(part),
        };
        Ok(part.unwrap_or_default())
    }

    /// Forgets a session, or its turns, in the turn of the caller; or an entity. Returns whether it was known.
    ///
    /// # Errors
    /// [`StoreError`] if nothing was forgotten. Trying again is safe.
    ///
    /// # Cancel safety
    /// Dropping the future leaves it done or not done.
    pub async fn forget(&self, session: &str, what: Forget<'_>) -> Result<bool, StoreError> {
        let mut is_known = false;
        let forget = |next: &mut Next| {
            is_known = next.forget(what);
            Ok(is_known)
        };
        let known = self.change(session, forget).await?;
        if is_known && what == Forget::All {
            self.cache.lock().sessions.remove(session);
            let subject = self.log.subject(session);
            self.log.remove(&subject, known.revision()).await?;
        }
        Ok(is_known)
    }

    /// Begins a session with the turns of another one that come before the one with this name, unless there is one
    /// already. Its tokens are its own.
    ///
    /// # Errors
    /// [`StoreError`] if nothing was begun. Trying again is safe.
    ///
    /// # Cancel safety
    /// Dropping the future leaves it done or not done.
    pub async fn copy(
        &self,
        from: &str,
        before: &str,
        to: &str,
        now: u64,
    ) -> Result<(), StoreError> {
        let mut turns = self.recall(from, None, usize::MAX).await?;
        let end = turns
            .iter()
            .position(|turn| turn.id.as_deref() == Some(before));
        turns.truncate(end.unwrap_or(turns.len()));
        let record = Record {
            session: to.to_owned(),
            created: now,
            active: now,
            count: turns.len() as u64,
            ..Record::default()
        };
        self.import_session(record, turns).await
    }

    /// Takes over a session of an earlier version, unless it is there.
    pub(super) async fn import_session(
        &self,
        record: Record,
        turns: Vec<Turn>,
    ) -> Result<(), StoreError> {
        let id = record.session.clone();
        let import = |next: &mut Next| {
            if !next.contents.record.session.is_empty() {
                return Ok(false);
            }
            next.contents.record = record.clone();
            next.import(turns.clone(), self.limits);
            Ok(true)
        };
        self.change(&id, import).await.map(drop)
    }

    /// Drops the least recently used sessions that are too many, or too large together, unless they are in use.
    /// Other nodes may do the same at the same time. Returns how many it has dropped.
    pub(super) async fn drop_surplus(&self) -> Result<u64, StoreError> {
        let state = self.log.log().state().await?;
        let most = (self.limits.sessions.max(1), self.limits.total_bytes);
        if state.subjects <= most.0 && state.bytes <= most.1 {
            return Ok(0);
        }
        let is_free = |it: SessionInfo| async move {
            let record = it.head.as_ref().and_then(Record::in_head);
            let queue = record.unwrap_or_default().queue;
            let nodes: Vec<_> = queue.into_iter().map(|it| it.node).collect();
            let count = nodes.len();
            Ok(self.nodes.gone(nodes).await?.len() == count)
        };
        let dropped = self.log.sweep(most.0, most.1, is_free).await?;
        if dropped > 0 {
            *self.cache.lock() = Cache::default();
        }
        Ok(dropped)
    }
}
