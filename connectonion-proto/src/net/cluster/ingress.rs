//! Which node serves a connection: this one, or the owner of its session.

use std::future::Future;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::{Sink, SinkExt, Stream, StreamExt};
use http::request::Parts;
use rpc_core::net::{Cancellation, Message, Transport, TransportError};
use rpc_core::{CloseFrame, Outgoing};
use tokio::time::{Instant, sleep, timeout};

use super::Cluster;
use super::pump::pump;
use super::relays::{OpenError, Relayed};
use crate::frame::ClientFrame;
use crate::limits::{SERVICE_RESTART, server_limits};

/// How long a client may take for its first frame before the connection is served here.
const FIRST_FRAME: Duration = Duration::from_secs(20);
/// How long to wait before an owner that gives no answer is asked again.
const PAUSE: Duration = Duration::from_millis(200);

/// A connection whose first frame was read.
pub(in crate::net) struct Peeked<T> {
    first: Option<Message>,
    transport: T,
}

/// Where a connection is served.
enum Place {
    Here,
    There(Box<Relayed>),
}

impl Cluster {
    /// Serves a connection: with `here` at this node, or at the owner of the session that its first
    /// CONNECT names. `here` gets the connection from its first frame on.
    pub(in crate::net) async fn serve<T, F>(
        &self,
        mut transport: T,
        peer: Option<IpAddr>,
        head: Option<Arc<Parts>>,
        mut cancellation: Cancellation,
        here: impl FnOnce(Peeked<T>) -> F,
    ) where
        T: Transport,
        F: Future<Output = ()>,
    {
        let first = {
            let mut cancelled = pin!(cancellation.cancelled());
            tokio::select! {
                first = timeout(FIRST_FRAME, first_frame(&mut transport)) => match first {
                    Ok(Some(first)) => Some(first),
                    // It is over.
                    Ok(None) => return,
                    Err(_) => None,
                },
                () = &mut cancelled => None,
            }
        };
        let wanted = first.as_ref().and_then(wanted);
        let place = match &wanted {
            Some(session_id) => {
                let mut cancelled = pin!(cancellation.cancelled());
                tokio::select! {
                    place = self.place(session_id, peer, head.as_deref()) => place,
                    () = &mut cancelled => Ok(Place::Here),
                }
            }
            None => Ok(Place::Here),
        };
        match place {
            Ok(Place::Here) => here(Peeked { first, transport }).await,
            Ok(Place::There(relayed)) => {
                let ended = async move {
                    cancellation.cancelled().await;
                    CloseFrame::new(SERVICE_RESTART, "the host is shutting down")
                };
                let transport = Peeked { first, transport };
                pump(transport, *relayed, ended).await;
            }
            Err(why) => {
                let frame = CloseFrame::new(CloseFrame::TRY_AGAIN, why);
                let closing = async {
                    let _ = transport.send(Outgoing::Close(frame)).await;
                    while matches!(transport.next().await, Some(Ok(_))) {}
                };
                let _ = timeout(Duration::from_secs(5), closing).await;
            }
        }
    }

    /// Finds the node that serves a session. An owner that gives no answer is waited for until its
    /// lease is over.
    async fn place(
        &self,
        session_id: &str,
        peer: Option<IpAddr>,
        head: Option<&Parts>,
    ) -> Result<Place, &'static str> {
        let deadline =
            Instant::now() + self.shared.options.lease.lease + self.shared.options.patience;
        loop {
            let joined = tokio::time::timeout_at(deadline, self.shared.current.joined());
            let node = joined
                .await
                .map_err(|_| "this host is not in the cluster")?;
            match node.owner(session_id).await {
                Ok(None) => return Ok(Place::Here),
                Ok(Some(owner)) if owner == *node.id() => return Ok(Place::Here),
                Ok(Some(owner)) => match node.relays.connect(&owner, peer, head).await {
                    Ok(relayed) => return Ok(Place::There(Box::new(relayed))),
                    Err(OpenError::Refused) => return Err("the session's host is full"),
                    Err(OpenError::NoAnswer) => {}
                },
                Err(error) => tracing::debug!(%error, "the owner of a session was not found"),
            }
            if Instant::now() >= deadline {
                return Err("the session's host does not answer");
            }
            sleep(PAUSE).await;
        }
    }
}

/// Returns the first frame with contents; `None` at the end of the connection.
async fn first_frame<T: Transport>(transport: &mut T) -> Option<Message> {
    loop {
        match transport.next().await? {
            Ok(message @ (Message::Text(_) | Message::Binary(_))) => return Some(message),
            Ok(Message::Close(_)) => {
                while matches!(transport.next().await, Some(Ok(_))) {}
                return None;
            }
            Ok(_) => {}
            Err(_) => return None,
        }
    }
}

/// Returns the session that a CONNECT names.
fn wanted(first: &Message) -> Option<String> {
    let Message::Text(text) = first else {
        return None;
    };
    match ClientFrame::decode(text.as_str(), &server_limits()) {
        Ok(ClientFrame::Connect(connect)) => {
            let id = connect.session_id?;
            let max = crate::session::MAX_SESSION_ID;
            (!id.is_empty() && id.len() <= max).then(|| id.to_string())
        }
        _ => None,
    }
}

impl<T: Transport> Stream for Peeked<T> {
    type Item = Result<Message, TransportError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match self.first.take() {
            Some(first) => Poll::Ready(Some(Ok(first))),
            None => self.transport.poll_next_unpin(cx),
        }
    }
}

impl<T: Transport> Sink<Outgoing> for Peeked<T> {
    type Error = TransportError;

    fn poll_ready(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), TransportError>> {
        self.transport.poll_ready_unpin(cx)
    }

    fn start_send(mut self: Pin<&mut Self>, frame: Outgoing) -> Result<(), TransportError> {
        self.transport.start_send_unpin(frame)
    }

    fn poll_flush(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), TransportError>> {
        self.transport.poll_flush_unpin(cx)
    }

    fn poll_close(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), TransportError>> {
        self.transport.poll_close_unpin(cx)
    }
}
