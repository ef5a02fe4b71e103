//! [`StateWatch`]: the state of a link, for everyone who asks.

use tokio::sync::watch;

use super::LinkState;
use crate::net::dial::Node;
use crate::sync::Mutex;

/// The state of a link.
///
/// The channel to await changes is larger than everything else here, so it exists only while a task
/// waits.
#[derive(Debug)]
pub(super) struct StateWatch(Mutex<Now>);

#[derive(Debug)]
struct Now {
    state: LinkState,
    /// Where the last connection went.
    node: Option<Node>,
    watched: Option<watch::Sender<LinkState>>,
}

impl StateWatch {
    pub(super) const fn new(state: LinkState) -> Self {
        Self(Mutex::new(Now {
            state,
            node: None,
            watched: None,
        }))
    }

    pub(super) fn get(&self) -> LinkState {
        self.0.lock().state.clone()
    }

    pub(super) fn node(&self) -> Option<Node> {
        self.0.lock().node.clone()
    }

    pub(super) fn set_node(&self, node: Option<Node>) {
        self.0.lock().node = node;
    }

    /// Sets the state. A final one ends all waits.
    pub(super) fn set(&self, state: LinkState) {
        let mut now = self.0.lock();
        if let Some(watched) = &now.watched {
            watched.send_replace(state.clone());
        }
        now.watched.take_if(|_| state.ended().is_some());
        now.state = state;
    }

    pub(super) fn watch(&self) -> watch::Receiver<LinkState> {
        let mut now = self.0.lock();
        if let Some(watched) = &now.watched {
            return watched.subscribe();
        }
        let (sender, receiver) = watch::channel(now.state.clone());
        now.watched = Some(sender).filter(|_| now.state.ended().is_none());
        receiver
    }

    /// Waits until `find` returns a value. `None` if the link ends first.
    pub(super) async fn wait<R>(&self, mut find: impl FnMut(&LinkState) -> Option<R>) -> Option<R> {
        let mut found = find(&self.0.lock().state);
        if found.is_none() {
            let is_found = |state: &LinkState| {
                found = find(state);
                found.is_some()
            };
            // Whatever ends the wait, `found` says what it was.
            let _ = self.watch().wait_for(is_found).await;
            let watched = &mut self.0.lock().watched;
            watched.take_if(|watched| watched.receiver_count() == 0);
        }
        found
    }
}
