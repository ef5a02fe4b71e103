//! [`Client`]: responses by id, over a connection that reconnects.

use std::ops::Deref;

use rpc_core::Refused;
use rpc_core::net::Link;

use super::protocol::ClientProtocol;
use crate::frame::Answer;
use crate::id::MessageId;

/// A handle for responses by id, and for the connection itself. Cheap to clone; dropping the last
/// clone closes the connection.
///
/// A message has its own methods to answer; this is for ids that outlive their messages, such as
/// those stored before a restart. While there is no connection, responses fail at once with
/// [`Refused::NotConnected`] (or [`Refused::NotReady`] before the registration);
/// [`ready`](Link::ready) waits.
#[derive(Clone, Debug)]
pub struct Client {
    link: Link<ClientProtocol>,
}

impl Client {
    pub(super) const fn new(link: Link<ClientProtocol>) -> Self {
        Self { link }
    }

    /// Answers the message with this id. The server decides whether the id is still valid.
    ///
    /// # Errors
    /// [`Refused`]: nothing was sent. [`Refused::is_retryable`] says whether it may succeed later.
    ///
    /// # Cancel safety
    /// If the future is dropped before it is ready, the response may or may not be sent.
    pub async fn respond(&self, id: impl Into<MessageId>, answer: Answer) -> Result<(), Refused> {
        let id = id.into();
        self.link
            .command(move |conn, _| conn.respond(id, answer))
            .await?
    }
}

/// Methods of every client: [`ready`](Link::ready), [`state`](Link::state), [`close`](Link::close),
/// [`drain`](Link::drain) and what else a [`Link`] offers.
impl Deref for Client {
    type Target = Link<ClientProtocol>;

    fn deref(&self) -> &Link<ClientProtocol> {
        &self.link
    }
}
