//! [`Budget`]: the token budgets of all nodes, in one value that they change by compare-and-set.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use exoclaw_proto::budget::Exceeded;
use rpc_core::cluster::{Bucket, StoreError as Failure};
use tokio::sync::{Notify, oneshot, watch};
use tokio::time::{sleep, timeout};

use super::ledger::{LedgerEvent, LedgerRequest, Reservation, SharedLedger, Ticket};
use super::nodes::Nodes;
use super::{ClusterConfig, part_of, unavailable};
use crate::gateway::store::StoreError;

/// The key of the value.
const KEY: &str = "budget";
/// The pause after the first failure, and the longest one.
const PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// Why a run is not admitted.
#[derive(Debug)]
pub enum NotAdmitted {
    /// A budget has no room.
    Exceeded(Exceeded),
    /// The budgets cannot be read or written.
    Store(StoreError),
}

type Answer = Result<Option<Reservation>, Exceeded>;

/// The budgets, of which one task does all reading and writing.
pub(super) struct Budget {
    bucket: Bucket,
    nodes: Nodes,
    patience: Duration,
    clock: fn() -> u64,
    state: Mutex<State>,
    wake: Notify,
    /// The number of the last change that is written.
    written: watch::Sender<u64>,
    /// Set by the end of the task.
    ended: watch::Sender<bool>,
}

struct State {
    ledger: SharedLedger,
    waiting: HashMap<Ticket, oneshot::Sender<Answer>>,
    is_closing: bool,
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Budget").field(&self.state().ledger).finish()
    }
}

/// A call that waits. It is withdrawn if its caller goes away.
struct Waiting<'b> {
    budget: &'b Budget,
    ticket: Ticket,
    answer: oneshot::Receiver<Answer>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut state = self.budget.state();
        if state.waiting.remove(&self.ticket).is_some() {
            state.ledger.cancel(self.ticket);
        }
        // It was admitted, but its caller has gone.
        if let Ok(Ok(Some(reservation))) = self.answer.try_recv() {
            state.ledger.settle(reservation);
        }
        drop(state);
        self.budget.wake.notify_one();
    }
}

impl Budget {
    pub(super) fn new(
        bucket: Bucket,
        node: &str,
        nodes: Nodes,
        config: ClusterConfig,
        clock: fn() -> u64,
    ) -> Self {
        let ledger = SharedLedger::new(config.budgets, node);
        Self {
            bucket,
            nodes,
            patience: config.patience,
            clock,
            state: Mutex::new(State {
                ledger,
                waiting: HashMap::new(),
                is_closing: false,
            }),
            wake: Notify::new(),
            written: watch::Sender::new(0),
            ended: watch::Sender::new(false),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Goes on as the node with this id.
    pub(super) fn rename(&self, node: &str) {
        self.state().ledger.rename(node);
        self.wake.notify_one();
    }

    /// Admits a run, if the budgets have room for it.
    pub(super) async fn reserve(
        &self,
        session_used: u64,
        estimate: u64,
    ) -> Result<Reservation, NotAdmitted> {
        let ask = |ledger: &mut SharedLedger| ledger.reserve(session_used, estimate);
        match self.ask(ask).await? {
            Some(reservation) => Ok(reservation),
            None => Err(NotAdmitted::Store(StoreError::Closed)),
        }
    }

    /// Returns the tokens of the day and of the month, as all nodes have used them.
    pub(super) async fn used(&self) -> Result<(u64, u64), StoreError> {
        match self.ask(|ledger| Ok(ledger.refresh())).await {
            Err(NotAdmitted::Store(error)) => Err(error),
            _ => {
                let state = self.state();
                Ok((state.ledger.daily_used(), state.ledger.monthly_used()))
            }
        }
    }

    async fn ask(
        &self,
        ask: impl FnOnce(&mut SharedLedger) -> Result<Ticket, Exceeded>,
    ) -> Result<Option<Reservation>, NotAdmitted> {
        let (sender, answer) = oneshot::channel();
        let ticket = {
            let mut state = self.state();
            if state.is_closing {
                return Err(NotAdmitted::Store(StoreError::Closed));
            }
            let ticket = ask(&mut state.ledger).map_err(NotAdmitted::Exceeded)?;
            state.waiting.insert(ticket, sender);
            ticket
        };
        let mut waiting = Waiting {
            budget: self,
            ticket,
            answer,
        };
        self.wake.notify_one();
        match timeout(self.patience, &mut waiting.answer).await {
            Ok(Ok(answer)) => answer.map_err(NotAdmitted::Exceeded),
            Ok(Err(_)) => Err(NotAdmitted::Store(StoreError::Closed)),
            Err(_) => Err(NotAdmitted::Store(unavailable(self.patience))),
        }
    }

    /// Settles a run with the budgets. Returns the number to [wait](Self::is_written) for.
    pub(super) fn settle(&self, mut reservation: Reservation, tokens: u64) -> u64 {
        let mut state = self.state();
        state.ledger.record(&mut reservation, tokens);
        state.ledger.settle(reservation);
        let change = state.ledger.change();
        drop(state);
        self.wake.notify_one();
        change
    }

    /// Waits until a change is written.
    pub(super) async fn is_written(&self, change: u64) -> Result<(), StoreError> {
        let mut written = self.written.subscribe();
        let wait = written.wait_for(|written| *written >= change);
        match timeout(self.patience, wait).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) => Err(StoreError::Closed),
            Err(_) => Err(unavailable(self.patience)),
        }
    }

    /// Leaves the budgets, and waits for the end of the task, but not for ever.
    pub(super) async fn close(&self) {
        {
            let mut state = self.state();
            state.is_closing = true;
            state.waiting.clear();
            state.ledger.close();
        }
        self.wake.notify_one();
        let mut ended = self.ended.subscribe();
        let _ = timeout(self.patience, ended.wait_for(|ended| *ended)).await;
    }

    /// Reads and writes until it is closed.
    pub(super) async fn run(self: Arc<Self>) {
        let mut failures = 0;
        loop {
            let request = self.next();
            self.written.send_replace(self.state().ledger.written());
            let Some(request) = request else {
                if self.is_done() {
                    self.ended.send_replace(true);
                    return;
                }
                self.wake.notified().await;
                continue;
            };
            match self.serve(request).await {
                Ok(()) => failures = 0,
                Err(error) => {
                    self.state().ledger.handle_failed();
                    if error != StoreError::from(Failure::Conflict) {
                        tracing::warn!(%error, "the token budgets are not written");
                    }
                    let pause = PAUSE * 2_u32.pow(failures);
                    sleep(part_of(pause.min(LONGEST_PAUSE))).await;
                    failures = (failures + 1).min(10);
                }
            }
        }
    }

    fn is_done(&self) -> bool {
        let state = self.state();
        state.is_closing && state.ledger.is_written()
    }

    /// Passes on the answers, and returns the next request.
    fn next(&self) -> Option<LedgerRequest> {
        let mut state = self.state();
        loop {
            let request = state.ledger.poll_request((self.clock)());
            let mut is_changed = false;
            while let Some(event) = state.ledger.poll_event() {
                let (ticket, answer) = match event {
                    LedgerEvent::Admitted(ticket, reservation) => (ticket, Ok(Some(reservation))),
                    LedgerEvent::Refused(ticket, exceeded) => (ticket, Err(exceeded)),
                    LedgerEvent::Refreshed(ticket) => (ticket, Ok(None)),
                };
                let unread = match state.waiting.remove(&ticket) {
                    Some(waiting) => waiting.send(answer).err(),
                    None => Some(answer),
                };
                if let Some(Ok(Some(reservation))) = unread {
                    state.ledger.settle(reservation);
                    is_changed = true;
                }
            }
            if request.is_some() || !is_changed {
                return request;
            }
        }
    }

    async fn serve(&self, request: LedgerRequest) -> Result<(), StoreError> {
        match request {
            LedgerRequest::Read => {
                let entry = self.bucket.get(KEY).await?;
                let value = entry.as_ref().map(|it| (&*it.value, it.revision));
                let read = self.state().ledger.handle_read(value);
                read.map_err(|error| StoreError::damaged("the cluster", error.to_string()))
            }
            LedgerRequest::FindGone(nodes) => {
                let gone = self.nodes.gone(nodes).await?;
                self.state().ledger.handle_gone(&gone);
                Ok(())
            }
            LedgerRequest::Write { value, revision } => {
                let value = value.into();
                let written = match revision {
                    Some(revision) => self.bucket.update(KEY, value, revision).await?,
                    None => self.bucket.create(KEY, value).await?,
                };
                self.state().ledger.handle_written(written);
                Ok(())
            }
        }
    }
}
