//! [`StateWatch`]: the state of a link, for everyone who asks.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::LinkState;
use crate::net::dial::Node;

/// The state of a link.
///
/// The channel to await changes is larger than everything else here, and the accepted connections
/// of a server rarely need it: it exists only while a task waits.
#[derive(Debug)]
pub(super) struct StateWatch {
    now: Mutex<Now>,
}

#[derive(Debug)]
struct Now {
    state: LinkState,
    /// Where the last connection went.
    node: Option<Node>,
    watched: Option<watch::Sender<LinkState>>,
    /// Whether the state is final.
    is_final: bool,
}

impl StateWatch {
    pub(super) const fn new(state: LinkState) -> Self {
        Self {
            now: Mutex::new(Now {
                state,
                node: None,
                watched: None,
                is_final: false,
            }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn get(&self) -> LinkState {
        self.lock().state.clone()
    }

    pub(super) fn node(&self) -> Option<Node> {
        self.lock().node.clone()
    }

    pub(super) fn set_node(&self, node: Option<Node>) {
        self.lock().node = node;
    }

    pub(super) fn is_ended(&self) -> bool {
        self.lock().state.ended().is_some()
    }

    pub(super) fn set(&self, state: LinkState) {
        let mut now = self.lock();
        if let Some(watched) = &now.watched {
            watched.send_replace(state.clone());
        }
        now.state = state;
    }

    /// Marks the state as final, which ends all waits.
    pub(super) fn finish(&self) {
        let mut now = self.lock();
        now.is_final = true;
        now.watched = None;
    }

    pub(super) fn watch(&self) -> watch::Receiver<LinkState> {
        let mut now = self.lock();
        if let Some(watched) = &now.watched {
            return watched.subscribe();
        }
        let (sender, receiver) = watch::channel(now.state.clone());
        if !now.is_final {
            now.watched = Some(sender);
        }
        receiver
    }

    /// Waits until `find` returns a value. `None` if the link ends first.
    pub(super) async fn wait<R>(&self, mut find: impl FnMut(&LinkState) -> Option<R>) -> Option<R> {
        if let Some(found) = find(&self.lock().state) {
            return Some(found);
        }
        let mut states = self.watch();
        let mut found = None;
        let changed = states
            .wait_for(|state| {
                found = find(state);
                found.is_some()
            })
            .await
            .is_ok();
        drop(states);
        let mut now = self.lock();
        if now
            .watched
            .as_ref()
            .is_some_and(|watched| watched.receiver_count() == 0)
        {
            now.watched = None;
        }
        if changed { found } else { None }
    }
}
