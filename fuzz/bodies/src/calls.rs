//! [`Calls`]: what a client has asked, from command to end.

use std::fmt::Debug;
use std::mem::{replace, take};
use std::time::Duration;

use rpc_core::Refused;

use crate::machine::{FEW, SLACK};
use crate::script::Script;

/// What a client has asked, from command to end.
pub(crate) struct Calls<I, K> {
    calls: Vec<Call<I, K>>,
    /// Their ids on the wire, and others that have left.
    pub(crate) ids: Vec<String>,
    /// Commands since events were last taken: each may end with an event.
    recent: usize,
}

pub(crate) struct Call<I, K> {
    pub(crate) id: I,
    pub(crate) kind: K,
    pub(crate) state: State,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum State {
    Open,
    /// Cancelled; events from before may still be there to be polled.
    Cancelled,
    Over,
}

impl<I, K> Default for Calls<I, K> {
    fn default() -> Self {
        Self {
            calls: Vec::new(),
            ids: Vec::new(),
            recent: 0,
        }
    }
}

impl<I: Copy + PartialEq, K: PartialEq + Debug> Calls<I, K> {
    /// A command was given; it has an id if it was taken.
    pub(crate) fn made(&mut self, id: &Result<I, Refused>, kind: K) {
        let Ok(id) = *id else { return };
        let is_new = self.calls.iter().all(|call| call.id != id);
        assert!(is_new, "an id was given twice");
        self.recent += 1;
        let state = State::Open;
        self.calls.push(Call { id, kind, state });
    }

    /// A request leaves.
    pub(crate) fn sent(&mut self, id: impl Into<String>) {
        let id = id.into();
        assert!(!self.ids.contains(&id), "an id is new");
        self.ids.push(id);
    }

    pub(crate) fn any(&self, of: impl Fn(&Call<I, K>) -> bool) -> bool {
        self.calls.iter().any(of)
    }

    /// One of all that were made.
    pub(crate) fn pick(&mut self, script: &mut Script<'_>) -> Option<&mut Call<I, K>> {
        let at = usize::from(script.byte_or_zero()).checked_rem(self.calls.len())?;
        self.calls.get_mut(at)
    }

    /// One of all that were made is cancelled.
    pub(crate) fn cancel(&mut self, script: &mut Script<'_>, cancel: impl FnOnce(I) -> bool) {
        if let Some(call) = self.pick(script) {
            call.cancelled(cancel(call.id));
        }
    }

    /// One of all that were made gets another deadline, or none: of these kinds, what is open can.
    pub(crate) fn extend(
        &mut self,
        script: &mut Script<'_>,
        can: impl Fn(&K) -> bool,
        extend: impl FnOnce(I, Option<Duration>) -> bool,
    ) {
        let wait = Some(script.seconds()).filter(|wait| !wait.is_zero());
        if let Some(call) = self.pick(script) {
            let may = call.state == State::Open && can(&call.kind);
            let changed = extend(call.id, wait);
            assert!(may || !changed, "what is over still waits");
        }
    }

    pub(crate) fn first_open(&mut self) -> Option<&mut Call<I, K>> {
        self.calls.iter_mut().find(|call| call.state == State::Open)
    }

    /// The id of the first open one of this kind.
    pub(crate) fn first_open_of(&self, kind: &K) -> Option<I> {
        let is_it = |call: &&Call<I, K>| call.state == State::Open && call.kind == *kind;
        self.calls.iter().find(is_it).map(|call| call.id)
    }

    pub(crate) fn open(&self) -> usize {
        let open = self.calls.iter().filter(|call| call.state == State::Open);
        open.count()
    }

    pub(crate) fn kind(&mut self, id: I) -> &K {
        &self.find(id).kind
    }

    fn find(&mut self, id: I) -> &mut Call<I, K> {
        match self.calls.iter_mut().find(|call| call.id == id) {
            Some(call) => call,
            None => panic!("an event about what nobody asked"),
        }
    }

    /// An event that ends nothing.
    pub(crate) fn goes_on(&mut self, id: I, kind: &K) {
        let call = self.find(id);
        assert_eq!(call.kind, *kind, "what it is about");
        assert!(call.state != State::Over, "an event after the end");
    }

    /// One of them ends, in an event that tells its kind or does not. Gives what it was until then.
    pub(crate) fn end(&mut self, id: I, kind: Option<&K>) -> State {
        let call = self.find(id);
        let is_kind = kind.is_none_or(|kind| call.kind == *kind);
        assert!(is_kind, "{kind:?} about {:?}", call.kind);
        assert!(call.state != State::Over, "it ended twice");
        replace(&mut call.state, State::Over)
    }

    /// So many events were taken: of what is in flight, and a few of the last operation. Nothing more
    /// comes of what was cancelled.
    pub(crate) fn events_taken(&mut self, events: usize) {
        let most = 2 * FEW + SLACK + take(&mut self.recent);
        assert!(events <= most, "events that wait are bounded");
        for call in &mut self.calls {
            if call.state == State::Cancelled {
                call.state = State::Over;
            }
        }
    }

    /// The end leaves nothing open.
    pub(crate) fn assert_none_open(&self) {
        let open = self.any(|call| call.state == State::Open);
        assert!(!open, "the end leaves something open");
    }
}

impl<I: Copy, K> Call<I, K> {
    /// A command to cancel it was given: only what is open can be cancelled.
    pub(crate) fn cancelled(&mut self, cancelled: bool) {
        if cancelled {
            assert!(self.state == State::Open, "what is over was cancelled");
            self.state = State::Cancelled;
        }
    }
}
