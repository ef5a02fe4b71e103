//! [`Client`]: responses by id, over a connection that reconnects.

use std::fmt;
use std::ops::Deref;

use rpc_core::net::Link;
use rpc_core::{Refused, Str};

use super::protocol::ClientProtocol;
use crate::frame::{Answer, Notification, Response};
use crate::id::MessageId;

/// A handle for responses by id, and for the connection itself. Cheap to clone; dropping the last
/// clone closes the connection.
///
/// A message has its own methods to answer; this is for ids that outlive their messages, such as
/// those stored before a restart. While there is no connection, responses fail at once with
/// [`Refused::NotConnected`] (or [`Refused::NotReady`] before the registration);
/// [`ready`](Link::ready) waits.
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
}

/// What every client has: [`ready`](Link::ready), [`state`](Link::state), [`close`](Link::close),
/// [`drain`](Link::drain) and what else a [`Link`] offers.
impl Deref for Client {
    type Target = Link<ClientProtocol>;

    fn deref(&self) -> &Link<ClientProtocol> {
        &self.link
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Client").field(&self.link.state()).finish()
    }
}
