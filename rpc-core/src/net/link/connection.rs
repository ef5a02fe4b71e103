//! [`Connection`]: the work of a link, to be run by the application.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use super::handle::Shared;
use super::state_watch::StateWatch;
use super::{LinkState, Protocol};
use crate::error::CloseReason;

/// The work of a link: dials, serves, reconnects. Spawn [`run`](Self::run).
///
/// Dropping it ends every call with [`CloseReason::TaskGone`]. Until `run` is called, calls fail at
/// once with [`Refused::NotConnected`](crate::Refused::NotConnected).
#[must_use = "nothing happens unless it is run"]
pub struct Connection {
    work: Pin<Box<dyn Future<Output = CloseReason> + Send>>,
    link: Arc<dyn Worked>,
}

/// What a connection knows of its link, whatever the protocol.
trait Worked: Send + Sync {
    fn set_running(&self, runs: bool);
    fn state(&self) -> &StateWatch;
}

impl<P: Protocol> Worked for Shared<P> {
    fn set_running(&self, runs: bool) {
        self.inbox.set_running(runs);
    }

    fn state(&self) -> &StateWatch {
        &self.state
    }
}

impl Connection {
    pub(super) fn new<P: Protocol>(
        work: impl Future<Output = CloseReason> + Send + 'static,
        link: Arc<Shared<P>>,
    ) -> Self {
        let work = Box::pin(work);
        Self { work, link }
    }

    /// Connects, serves and reconnects until the link is closed or gives up. Returns the reason.
    ///
    /// # Cancel safety
    /// Dropping the future drops the connection without a closing handshake; every call ends.
    ///
    /// # Panics
    /// Outside a tokio runtime with its timer enabled.
    pub fn run(self) -> impl Future<Output = CloseReason> + Send {
        self.link.set_running(true);
        self.work
    }

    /// Makes the first attempt: dials, and waits for the end of the opening handshake, both with
    /// their own deadlines. Events are queued meanwhile. The connection that it returns still has to
    /// be run.
    ///
    /// # Errors
    /// The reason why the attempt failed; [`CloseReason::retry`] says whether another one may
    /// succeed.
    ///
    /// # Cancel safety
    /// Dropping the future drops the connection.
    ///
    /// # Panics
    /// As for [`run`](Self::run).
    pub async fn establish(mut self) -> Result<Self, CloseReason> {
        self.link.set_running(true);
        let first = self.link.state().wait(|state| match state {
            LinkState::Ready { .. } => Some(Ok(())),
            LinkState::Lost { cause: reason, .. }
            | LinkState::GaveUp { cause: reason }
            | LinkState::Closed { reason } => Some(Err(reason.clone())),
            LinkState::Connecting { attempt: 1.. } => Some(Err(CloseReason::Lost)),
            LinkState::Connecting { .. } | LinkState::Closing => None,
        });
        tokio::select! {
            biased;
            reason = &mut self.work => return Err(reason),
            first = first => first.unwrap_or(Err(CloseReason::TaskGone))?,
        }
        self.link.set_running(false);
        Ok(self)
    }
}

crate::debug::debug_fields!([] Connection, this => { state: this.link.state().get() });
