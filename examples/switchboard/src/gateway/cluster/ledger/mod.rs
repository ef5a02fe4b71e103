//! [`SharedLedger`]: the budgets of many nodes, kept in one stored value.

mod pools;
#[cfg(test)]
mod tests;
mod value;

use std::collections::VecDeque;
use std::fmt;

use exoclaw_proto::budget::pools::{Pools, day_of};
use exoclaw_proto::budget::{Budgets, Exceeded, Scope};

use pools::{Merge, used};
use value::Value;

/// The name of a call of a [`SharedLedger`] that waits for an answer. Never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Ticket(u64);

/// Tokens of the budgets reserved for one run, until [`SharedLedger::settle`] releases them. A run
/// counts for the day and the month in which it was admitted, even if it ends later.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "what is not settled stays reserved"]
pub struct Reservation {
    day: u64,
    held: u64,
}

/// What a [`SharedLedger`] asks of the store. Exhaustive: a user has to do all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LedgerRequest {
    /// Read the value. Answer with [`SharedLedger::handle_read`] or
    /// [`SharedLedger::handle_failed`].
    Read,
    /// Find out which of these nodes are gone. Answer with [`SharedLedger::handle_gone`] or
    /// [`SharedLedger::handle_failed`].
    FindGone(Vec<String>),
    /// Replace the value of this revision, or create it. Answer with
    /// [`SharedLedger::handle_written`]; if another node was faster or the outcome is unknown, with
    /// [`SharedLedger::handle_failed`].
    Write {
        /// The value, as JSON.
        value: String,
        /// The revision that it replaces; `None` if there is no value yet.
        revision: Option<u64>,
    },
}

/// An answer of a [`SharedLedger`]. Exhaustive: a user has to handle all of them.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LedgerEvent {
    /// The run is admitted, and all nodes count its reservation.
    Admitted(Ticket, Reservation),
    /// A budget has no room for the run. The numbers were read after the call.
    Refused(Ticket, Exceeded),
    /// The value was read after the call of [`SharedLedger::refresh`].
    Refreshed(Ticket),
}

/// The error for a stored value that no ledger wrote. A retry fails until the value is removed,
/// which starts the budgets anew.
#[derive(Debug, thiserror::Error)]
#[error("the shared token budgets cannot be read: {0}")]
pub(super) struct DamagedLedger(#[source] serde_json::Error);

#[derive(Debug)]
struct Waiting {
    ticket: Ticket,
    /// The estimate of the run; `None` for [`SharedLedger::refresh`].
    run: Option<u64>,
}

/// A run that is admitted if the write succeeds.
#[derive(Debug)]
struct Candidate {
    ticket: Ticket,
    reservation: Reservation,
    is_cancelled: bool,
}

#[derive(Debug)]
struct Sent {
    value: Value,
    own: Pools,
    candidates: Vec<Candidate>,
    change: u64,
}

/// The request that is not answered yet, with the last ticket before it.
#[derive(Debug)]
enum Pending {
    Read(Ticket),
    FindGone(Ticket),
    Write(Ticket, Sent),
}

/// The tokens of all nodes, checked against the daily and the monthly budget. Sans-IO: the user
/// passes its [requests](LedgerRequest) to a store with revisions, one at a time.
///
/// A node changes the value by compare-and-set, and counts only what it could write. Calls that
/// come while a request is under way share the next write. Each node writes its own totals, so a
/// write with an unknown outcome is repeated safely. Reservations of a node that is gone are
/// released as soon as they would make a run be refused; what it has used stays. A node that was
/// counted as gone and is not may go on: its next write has its reservations again. If its name
/// counts as gone for good, it takes another one: [`rename`](Self::rename).
///
/// **The bound:** a run is admitted only if the tokens used, the tokens reserved by all nodes and
/// its own estimate are within the budgets at one revision. So the tokens used exceed a budget by
/// no more than what the runs that were open at the last admission then use beyond their
/// reservations; those of a node that was counted as gone have none.
///
/// The budget of a session is not in the value. The caller passes the tokens that the session has
/// used, and holds the session's turn while it does.
pub(super) struct SharedLedger {
    budgets: Budgets,
    node: String,
    /// Earlier names of this node that may still be in the value.
    former: Vec<String>,
    /// This node's totals.
    own: Pools,
    /// This node's totals as the value was last known to have them.
    confirmed: Option<Pools>,
    value: Value,
    revision: Option<u64>,
    is_stale: bool,
    waiting: VecDeque<Waiting>,
    pending: Option<Pending>,
    last_ticket: Ticket,
    /// The value was read after these tickets were given.
    read_after: Ticket,
    /// The gone nodes were found after these tickets were given.
    found_after: Ticket,
    /// The number of the last change of `own`, and of the last one written.
    change: u64,
    written: u64,
    is_closing: bool,
    events: VecDeque<LedgerEvent>,
}

impl SharedLedger {
    /// Creates the ledger of a node. Its name is unique among the nodes of all times.
    #[must_use]
    pub(super) fn new(budgets: Budgets, node: impl Into<String>) -> Self {
        Self {
            budgets,
            node: node.into(),
            former: Vec::new(),
            own: Pools::default(),
            confirmed: None,
            value: Value::default(),
            revision: None,
            is_stale: true,
            waiting: VecDeque::new(),
            pending: None,
            last_ticket: Ticket(0),
            read_after: Ticket(0),
            found_after: Ticket(0),
            change: 0,
            written: 0,
            is_closing: false,
            events: VecDeque::new(),
        }
    }

    /// Asks for the admission of a run; the answer is an event. `session_used` is what its session
    /// has used.
    ///
    /// # Errors
    /// [`Exceeded`] if the session's budget has no room. Nothing changed.
    pub(super) fn reserve(&mut self, session_used: u64, estimate: u64) -> Result<Ticket, Exceeded> {
        used(session_used).check(Scope::Session, self.budgets.session, estimate)?;
        Ok(self.wait(Some(estimate)))
    }

    /// Asks for a fresh read, for [`daily_used`](Self::daily_used) and
    /// [`monthly_used`](Self::monthly_used).
    pub(super) fn refresh(&mut self) -> Ticket {
        self.wait(None)
    }

    fn wait(&mut self, run: Option<u64>) -> Ticket {
        self.last_ticket.0 += 1;
        let ticket = self.last_ticket;
        self.waiting.push_back(Waiting { ticket, run });
        ticket
    }

    /// Withdraws a call whose event was not taken yet. It gets none; a run that is admitted
    /// meanwhile is settled.
    pub(super) fn cancel(&mut self, ticket: Ticket) {
        self.waiting.retain(|it| it.ticket != ticket);
        if let Some(Pending::Write(_, sent)) = &mut self.pending {
            let mut sent = sent.candidates.iter_mut();
            if let Some(candidate) = sent.find(|it| it.ticket == ticket) {
                candidate.is_cancelled = true;
            }
        }
        let place = self.events.iter().position(|event| match event {
            LedgerEvent::Admitted(it, _)
            | LedgerEvent::Refused(it, _)
            | LedgerEvent::Refreshed(it) => *it == ticket,
        });
        let event = place.and_then(|place| self.events.remove(place));
        if let Some(LedgerEvent::Admitted(_, reservation)) = event {
            self.settle(reservation);
        }
    }

    /// Records tokens that a run has used. They reduce its reservation.
    pub(super) fn record(&mut self, reservation: &mut Reservation, tokens: u64) {
        let released = tokens.min(reservation.held);
        reservation.held -= released;
        self.own.take(reservation.day, tokens, released);
        self.change += 1;
    }

    /// Ends a run and releases the rest of its reservation.
    #[allow(clippy::needless_pass_by_value, reason = "it is used up")]
    pub(super) fn settle(&mut self, reservation: Reservation) {
        self.own.take(reservation.day, 0, reservation.held);
        self.change += 1;
    }

    /// Goes on under another name, as unique as the first, because the node counts as gone under that.
    /// The next write moves its totals and its reservations to the new name.
    pub(super) fn rename(&mut self, node: impl Into<String>) {
        let node = node.into();
        if node != self.node {
            self.former.push(std::mem::replace(&mut self.node, node));
            self.is_stale = true;
            self.change += 1;
        }
    }

    /// Gives what the value has under a former name to the present one.
    fn move_totals(&mut self) {
        if self.value.get(&self.node).is_some() {
            self.former.clear();
        }
        for former in &self.former {
            self.value.rename(former, &self.node);
        }
    }

    /// Leaves: moves this node's totals to those of the nodes that are gone. Waiting calls get no
    /// event. Settle all runs first. It is done when [`is_written`](Self::is_written).
    pub(super) fn close(&mut self) {
        self.waiting.clear();
        self.is_closing = true;
    }

    /// Returns the number of the last change of this node's totals.
    #[must_use]
    pub(super) const fn change(&self) -> u64 {
        self.change
    }

    /// Returns the number of the last change that all nodes count: it survives the end of this one.
    #[must_use]
    pub(super) const fn written(&self) -> u64 {
        self.written
    }

    /// Returns whether there is nothing to write, and no call waits.
    #[must_use]
    pub(super) fn is_written(&self) -> bool {
        let is_left = !self.is_closing || self.confirmed.is_none();
        self.pending.is_none() && self.waiting.is_empty() && self.written == self.change && is_left
    }

    /// Returns the tokens used on the latest day seen, as this node last knew.
    #[must_use]
    pub(super) fn daily_used(&self) -> u64 {
        self.total().daily.used
    }

    /// Returns the tokens used in the month of the latest day seen, as this node last knew.
    #[must_use]
    pub(super) fn monthly_used(&self) -> u64 {
        self.total().monthly.used
    }

    fn total(&self) -> Pools {
        self.value.others(&self.node).plus(self.own)
    }

    /// Takes the next answer.
    #[must_use]
    pub(super) fn poll_event(&mut self) -> Option<LedgerEvent> {
        self.events.pop_front()
    }

    /// Returns the next request for the store: `None` if there is nothing to do, or the last one is
    /// not answered. After a failed one, wait a little first.
    #[must_use = "it is asked once"]
    pub(super) fn poll_request(&mut self, unix_seconds: u64) -> Option<LedgerRequest> {
        self.own.advance(day_of(unix_seconds));
        self.admit_without_budget();
        if self.pending.is_some() || self.is_written() {
            return None;
        }
        let last = self.last_ticket;
        if self.is_stale {
            self.pending = Some(Pending::Read(last));
            return Some(LedgerRequest::Read);
        }
        self.own.advance(self.value.day());
        let others = self.value.others(&self.node);
        let holders = self.value.holders(&self.node);
        let (mut must_read, mut must_find, mut candidates) = (false, false, Vec::new());
        let mut still = VecDeque::new();
        for waiting in std::mem::take(&mut self.waiting) {
            let is_fresh = waiting.ticket <= self.read_after;
            let Some(estimate) = waiting.run else {
                if is_fresh {
                    let event = LedgerEvent::Refreshed(waiting.ticket);
                    self.events.push_back(event);
                } else {
                    must_read = true;
                    still.push_back(waiting);
                }
                continue;
            };
            match others.plus(self.own).check(self.budgets, estimate) {
                Ok(()) => {
                    self.own.reserve(estimate);
                    candidates.push(Candidate {
                        ticket: waiting.ticket,
                        reservation: Reservation {
                            day: self.own.day,
                            held: estimate,
                        },
                        is_cancelled: false,
                    });
                }
                Err(_) if !is_fresh => {
                    must_read = true;
                    still.push_back(waiting);
                }
                Err(_) if !holders.is_empty() && waiting.ticket > self.found_after => {
                    must_find = true;
                    still.push_back(waiting);
                }
                Err(exceeded) => {
                    let event = LedgerEvent::Refused(waiting.ticket, exceeded);
                    self.events.push_back(event);
                }
            }
        }
        self.waiting = still;
        let is_changed = self.written < self.change || !candidates.is_empty();
        if is_changed || (self.is_closing && self.confirmed.is_some()) {
            let mut value = self.value.clone();
            value.put(&self.node, self.own);
            // What is folded must be known to be written: it cannot be written again.
            if self.is_closing && !is_changed && self.confirmed == value.get(&self.node) {
                value.fold(&self.node);
            }
            return self.write(value, candidates);
        }
        if must_read {
            self.pending = Some(Pending::Read(last));
            return Some(LedgerRequest::Read);
        }
        must_find.then(|| {
            self.pending = Some(Pending::FindGone(last));
            LedgerRequest::FindGone(holders)
        })
    }

    /// Without a daily and a monthly budget there is nothing to reserve, and nothing to wait for.
    fn admit_without_budget(&mut self) {
        if self.budgets.daily.is_some() || self.budgets.monthly.is_some() {
            return;
        }
        for waiting in std::mem::take(&mut self.waiting) {
            match waiting.run {
                Some(_) => {
                    let day = self.own.day;
                    let reservation = Reservation { day, held: 0 };
                    let event = LedgerEvent::Admitted(waiting.ticket, reservation);
                    self.events.push_back(event);
                }
                None => self.waiting.push_back(waiting),
            }
        }
    }

    fn write(&mut self, value: Value, candidates: Vec<Candidate>) -> Option<LedgerRequest> {
        // A value of texts and numbers always has a JSON text.
        let text = serde_json::to_string(&value).ok()?;
        let sent = Sent {
            value,
            own: self.own,
            candidates,
            change: self.change,
        };
        self.pending = Some(Pending::Write(self.last_ticket, sent));
        Some(LedgerRequest::Write {
            value: text,
            revision: self.revision,
        })
    }

    /// Takes the value and its revision, or `None` if there is none.
    ///
    /// # Errors
    /// [`DamagedLedger`]. The next request is the same read.
    pub(super) fn handle_read(&mut self, value: Option<(&[u8], u64)>) -> Result<(), DamagedLedger> {
        let Some(Pending::Read(after)) = self.pending.take() else {
            return Ok(());
        };
        self.is_stale = true;
        let text = value.map(|(text, _)| serde_json::from_slice(text));
        let text = text.transpose().map_err(DamagedLedger)?;
        self.value = text.unwrap_or_default();
        self.revision = value.map(|(_, revision)| revision);
        self.move_totals();
        (self.is_stale, self.read_after) = (false, after);
        let stored = self.value.get(&self.node);
        match (stored, self.confirmed) {
            // The others have added it to what gone nodes used. An absent value has nothing.
            (None, Some(folded)) if value.is_some() => {
                self.own.minus_used(folded);
                self.confirmed = None;
            }
            _ => self.confirmed = stored,
        }
        Ok(())
    }

    /// Takes those of the nodes asked for that are gone.
    pub(super) fn handle_gone(&mut self, gone: &[String]) {
        let Some(Pending::FindGone(after)) = self.pending.take() else {
            return;
        };
        self.found_after = after;
        self.value.release(gone);
        if !gone.is_empty() {
            self.change += 1;
        }
    }

    /// Takes the revision that the written value has.
    pub(super) fn handle_written(&mut self, revision: u64) {
        let Some(Pending::Write(after, sent)) = self.pending.take() else {
            return;
        };
        (self.value, self.revision) = (sent.value, Some(revision));
        (self.read_after, self.written) = (after, sent.change);
        self.move_totals();
        self.confirmed = self.value.get(&self.node);
        if self.is_closing && self.confirmed.is_none() {
            self.own.minus_used(sent.own);
        }
        for candidate in sent.candidates {
            if candidate.is_cancelled {
                self.settle(candidate.reservation);
            } else {
                let event = LedgerEvent::Admitted(candidate.ticket, candidate.reservation);
                self.events.push_back(event);
            }
        }
    }

    /// Takes the failure of a request, whatever its outcome. It is made again after a read.
    pub(super) fn handle_failed(&mut self) {
        (self.is_stale, self.found_after) = (true, Ticket(0));
        let Some(Pending::Write(_, sent)) = self.pending.take() else {
            return;
        };
        for candidate in sent.candidates.into_iter().rev() {
            let Candidate {
                ticket,
                reservation,
                is_cancelled,
            } = candidate;
            let held = reservation.held;
            self.own.take(reservation.day, 0, held);
            // It may have been written.
            self.change += 1;
            if !is_cancelled {
                let run = Some(held);
                self.waiting.push_front(Waiting { ticket, run });
            }
        }
    }
}

impl fmt::Debug for SharedLedger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedLedger")
            .field("budgets", &self.budgets)
            .field("node", &self.node)
            .field("revision", &self.revision)
            .field("waiting", &self.waiting.len())
            .field("unwritten", &(self.change - self.written))
            .finish_non_exhaustive()
    }
}
