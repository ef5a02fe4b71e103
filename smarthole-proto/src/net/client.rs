//! [`Client`]: responses by id, over a connection that reconnects.

use std::fmt;
use std::time::Duration;

use rpc_core::net::{DrainReport, Link, LinkState, Node};
use rpc_core::{CloseFrame, CloseReason, Refused, Str};

use super::protocol::ClientProtocol;
use crate::frame::{Answer, Notification, Response};
use crate::id::MessageId;
use crate::limits::CLIENT_DISCONNECT;

/// A handle for responses by id, and for the connection itself. Cheap to clone; dropping the last
/// clone closes the connection.
///
/// A message has its own methods to answer; this is for ids that outlive their messages, such as
/// those stored before a restart. While there is no connection, responses fail at once with
/// [`Refused::NotConnected`] (or [`Refused::NotReady`] before the registration);
/// [`ready`](Self::ready) waits.
#[derive(Clone)]
pub struct Client {
    link: Link<ClientProtocol>,
}

impl Client {
    pub(super) const fn new(link: Link<ClientProtocol>) -> Self {
        Self { link }
    }

    /// Accepts the message with this id.
    ///
    /// # Errors
    /// As for [`respond`](Self::respond). Safe to repeat.
    ///
    /// # Cancel safety
    /// If the future is dropped before it is ready, the response may or may not be sent.
    pub async fn ack(&self, id: impl Into<MessageId>) -> Result<(), Refused> {
        self.respond(Response::new(id, Answer::Ack)).await
    }

    /// Rejects the message with this id: the router may give it to another client. The reason helps
    /// the router to choose.
    ///
    /// # Errors
    /// As for [`respond`](Self::respond).
    ///
    /// # Cancel safety
    /// If the future is dropped before it is ready, the response may or may not be sent.
    pub async fn reject(
        &self,
        id: impl Into<MessageId>,
        reason: impl Into<Str>,
    ) -> Result<(), Refused> {
        let answer = Answer::reject(Some(reason.into()));
        self.respond(Response::new(id, answer)).await
    }

    /// Shows a notification to the user about the message with this id.
    ///
    /// # Errors
    /// As for [`respond`](Self::respond).
    ///
    /// # Cancel safety
    /// If the future is dropped before it is ready, the response may or may not be sent.
    pub async fn notify(
        &self,
        id: impl Into<MessageId>,
        notification: Notification,
    ) -> Result<(), Refused> {
        let answer = Answer::Notification(notification);
        self.respond(Response::new(id, answer)).await
    }

    /// Sends any response. The server decides whether the id is still valid.
    ///
    /// # Errors
    /// [`Refused`]: nothing was sent. [`Refused::is_retryable`] says whether it may succeed later.
    ///
    /// # Cancel safety
    /// If the future is dropped before it is ready, the response may or may not be sent.
    pub async fn respond(&self, response: Response) -> Result<(), Refused> {
        self.link
            .command(move |conn, _| conn.respond(&response))
            .await?
    }

    /// Waits until the client is registered and returns the number of the connection, from 1.
    ///
    /// # Errors
    /// The reason, once there will be no connection any more, such as a refused registration.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn ready(&self) -> Result<u64, CloseReason> {
        self.link.ready().await
    }

    /// Waits until there will be no connection any more.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn closed(&self) -> CloseReason {
        self.link.closed().await
    }

    /// Returns the state of the connection.
    #[must_use]
    pub fn state(&self) -> LinkState {
        self.link.state()
    }

    /// Returns the node of the connection, or of the last one: which of the URLs, and which address
    /// of its name. `None` before the first connection.
    #[must_use]
    pub fn node(&self) -> Option<Node> {
        self.link.node()
    }

    /// Closes with code 1000, "Client disconnect". Messages without a response time out at the
    /// server; [`drain`](Self::drain) waits for them.
    pub fn close(&self) {
        self.link.close_with(disconnect());
    }

    /// Waits up to `deadline` until every message has its response, then closes with code 1000,
    /// "Client disconnect".
    ///
    /// # Cancel safety
    /// If the future is dropped, the drain goes on.
    pub async fn drain(&self, deadline: Duration) -> DrainReport {
        self.link.drain_with(deadline, disconnect()).await
    }

    /// Returns the underlying link, for what this type does not offer.
    #[must_use]
    pub const fn link(&self) -> &Link<ClientProtocol> {
        &self.link
    }
}

fn disconnect() -> CloseFrame {
    CloseFrame::new(CloseFrame::NORMAL, CLIENT_DISCONNECT)
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Client").field(&self.link.state()).finish()
    }
}
