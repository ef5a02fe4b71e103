//! [`Cable`]: a line that can be cut, and stays so until it is plugged in again.

use rpc_core::net::{DialError, Dialer, Node};
use tokio::sync::watch;

/// Dials as another dialer does, and while the cable is out it waits.
#[derive(Debug)]
pub(super) struct Cable<D> {
    dialer: D,
    plugged: watch::Receiver<bool>,
}

impl<D> Cable<D> {
    /// A cable that is plugged in, and what says whether it still is.
    pub(super) fn new(dialer: D) -> (Self, watch::Sender<bool>) {
        let (plug, plugged) = watch::channel(true);
        (Self { dialer, plugged }, plug)
    }
}

impl<D: Dialer> Dialer for Cable<D> {
    type Transport = D::Transport;

    async fn dial(&self) -> Result<D::Transport, DialError> {
        let plugged = self
            .plugged
            .clone()
            .wait_for(|plugged| *plugged)
            .await
            .map(|_| ());
        // Nobody is left to plug it in.
        plugged.map_err(|_| DialError::Exhausted)?;
        self.dialer.dial().await
    }

    fn node(&self) -> Option<Node> {
        self.dialer.node()
    }
}
