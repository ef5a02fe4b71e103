//! [`Standing`]: how a client stands with its router.

use rpc_core::sync::Mutex;
use smarthole_proto::error::RegistrationError;
use tokio::sync::Notify;

/// How the client stands with the router.
#[derive(Debug, Default)]
pub(super) struct Standing {
    state: Mutex<State>,
    /// Given when the client is refused that was never let in.
    pub(super) refused: Notify,
}

#[derive(Debug, Default)]
struct State {
    was_in: bool,
    refusal: Option<RegistrationError>,
}

impl Standing {
    pub(super) fn take_refusal(&self) -> Option<RegistrationError> {
        self.state.lock().refusal.take()
    }

    pub(super) fn was_in(&self) -> bool {
        self.state.lock().was_in
    }

    pub(super) fn let_in(&self) {
        self.state.lock().was_in = true;
    }

    /// Somebody who was in before may still have the name, on a line that the router believes in. Who
    /// never was need not wait for that.
    pub(super) fn turned_away(&self, error: &RegistrationError) {
        let mut state = self.state.lock();
        if !state.was_in {
            state.refusal = Some(error.clone());
            self.refused.notify_one();
        }
    }
}
