//! Which node serves a connection: this one, or the owner of its session.

use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use futures_util::future::Either;
use futures_util::{Sink, SinkExt, Stream, StreamExt};
use http::request::Parts;
use rpc_core::net::mem::{self, MemTransport};
use rpc_core::net::{Cancellation, Message, Transport, TransportError};
use rpc_core::{CloseFrame, Outgoing};
use tokio::time::{Instant, sleep, timeout};

use super::Cluster;
use super::relays::{OpenError, Relayed};
use crate::frame::ClientFrame;
use crate::limits::{SERVICE_RESTART, defaults};

/// How long a client may take for its first frame before the connection is served here.
const FIRST_FRAME: Duration = Duration::from_secs(20);
/// How long a connection may take for its Close.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long to wait before an owner that gives no answer is asked again.
const PAUSE: Duration = Duration::from_millis(200);

/// A connection whose first frame was read.
pub(in crate::net) struct Peeked<T> {
    first: Option<Message>,
    /// A socket, or the [lobby](Cluster::lobby).
    line: Either<T, MemTransport>,
}

/// Where a connection is served.
enum Route {
    Here,
    There(Box<Relayed>),
}

/// Where the client of a connection comes from.
#[derive(Clone)]
pub(in crate::net) struct Origin {
    pub(in crate::net) peer: Option<IpAddr>,
    pub(in crate::net) head: Option<Arc<Parts>>,
    pub(in crate::net) cancellation: Cancellation,
    /// The clock of the host that it came to.
    pub(in crate::net) clock: fn() -> SystemTime,
}

impl Cluster {
    /// Serves a connection: with `here` at this node, or at the owner of the session that its first
    /// CONNECT names.
    pub(in crate::net) async fn serve<T, F>(
        &self,
        mut transport: T,
        mut origin: Origin,
        here: impl FnOnce(Peeked<T>) -> F,
    ) where
        T: Transport,
        F: Future<Output = ()>,
    {
        let first = tokio::select! {
            first = timeout(FIRST_FRAME, first_frame(&mut transport)) => match first {
                Ok(Some(first)) => first,
                // It is over.
                Ok(None) => return,
                Err(_) => return self.lobby(transport, None, origin, here).await,
            },
            () = origin.cancellation.cancelled() => {
                let line = Either::Left(transport);
                return here(Peeked { first: None, line }).await;
            }
        };
        let session_id = match destination(&first) {
            Destination::Nothing => return self.lobby(transport, Some(first), origin, here).await,
            Destination::Session(session_id) => session_id,
        };
        match self.route(session_id.as_deref(), &origin).await {
            Ok(Route::Here) => {
                let (first, line) = (Some(first), Either::Left(transport));
                here(Peeked { first, line }).await;
            }
            Ok(Route::There(relayed)) => there(transport, first, *relayed, origin).await,
            Err(why) => refuse(transport, why).await,
        }
    }

    /// Serves a client here whose first frame names no session, until it sends a CONNECT for a
    /// session of another node.
    async fn lobby<T, F>(
        &self,
        transport: T,
        first: Option<Message>,
        origin: Origin,
        here: impl FnOnce(Peeked<T>) -> F,
    ) where
        T: Transport,
        F: Future<Output = ()>,
    {
        let (ours, theirs) = mem::duplex(8);
        let line = Either::Right(theirs);
        let serving = here(Peeked { first: None, line });
        let (mut to_client, mut from_client) = transport.split();
        let (mut to_host, mut from_host) = ours.split();
        let elsewhere = {
            let up = async {
                let mut next = first;
                let mut is_waiting = true;
                loop {
                    if let Some(message) = next.take() {
                        if is_waiting && let Destination::Session(id) = destination(&message) {
                            match self.route(id.as_deref(), &origin).await {
                                Ok(Route::Here) => is_waiting = false,
                                Ok(Route::There(relayed)) => return Some(Ok((message, relayed))),
                                Err(why) => return Some(Err(why)),
                            }
                        }
                        if let Some(frame) = forward(message)
                            && to_host.send(frame).await.is_err()
                        {
                            return None;
                        }
                    }
                    match from_client.next().await {
                        Some(Ok(message)) => next = Some(message),
                        _ => return None,
                    }
                }
            };
            let down = async {
                while let Some(Ok(message)) = from_host.next().await {
                    if let Some(frame) = forward(message)
                        && to_client.send(frame).await.is_err()
                    {
                        return;
                    }
                }
            };
            // The last frames of the host are sent, too.
            let host = async { futures_util::future::join(serving, down).await };
            tokio::select! {
                elsewhere = up => elsewhere,
                _ = host => None,
            }
        };
        let Ok(mut transport) = from_client.reunite(to_client) else {
            return;
        };
        match elsewhere {
            Some(Ok((first, relayed))) => there(transport, first, *relayed, origin).await,
            Some(Err(why)) => refuse(transport, why).await,
            None => {
                let closing = async {
                    let _ = transport.flush().await;
                    while matches!(transport.next().await, Some(Ok(_))) {}
                };
                let _ = timeout(CLOSE_TIMEOUT, closing).await;
            }
        }
    }

    /// Finds the node that serves a session, `None` for a new one. An owner that gives no answer is
    /// waited for until its lease is over.
    async fn route(
        &self,
        session_id: Option<&str>,
        origin: &Origin,
    ) -> Result<Route, &'static str> {
        let mut cancellation = origin.cancellation.clone();
        tokio::select! {
            route = self.find(session_id, origin) => route,
            () = cancellation.cancelled() => Err("the host is shutting down"),
        }
    }

    async fn find(&self, session_id: Option<&str>, origin: &Origin) -> Result<Route, &'static str> {
        let options = &self.shared.options;
        // A new session waits for no owner.
        let lease = session_id.map_or(Duration::ZERO, |_| options.lease.lease);
        let deadline = Instant::now() + lease + options.patience;
        loop {
            let joined = tokio::time::timeout_at(deadline, self.shared.member.joined());
            let node = joined
                .await
                .map_err(|_| "this host is not in the cluster")?;
            let Some(session_id) = session_id else {
                return Ok(Route::Here);
            };
            match node.claims.holder(session_id).await {
                Ok(None) => return Ok(Route::Here),
                Ok(Some(owner)) if owner == *node.id() => return Ok(Route::Here),
                Ok(Some(owner)) => match node.relays.connect(&owner, origin).await {
                    Ok(relayed) => return Ok(Route::There(Box::new(relayed))),
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

/// What a frame says about where its connection belongs.
enum Destination {
    /// It is no CONNECT.
    Nothing,
    /// This session, or a new one.
    Session(Option<String>),
}

fn destination(message: &Message) -> Destination {
    let Message::Text(text) = message else {
        return Destination::Nothing;
    };
    match ClientFrame::decode(text.as_str(), &defaults()) {
        Ok(ClientFrame::Connect(connect)) => {
            let max = crate::hub::MAX_SESSION_ID;
            let id = connect
                .session_id
                .filter(|id| !id.is_empty() && id.len() <= max);
            Destination::Session(id.map(|id| id.to_string()))
        }
        _ => Destination::Nothing,
    }
}

/// Serves a connection at another node.
async fn there<T: Transport>(transport: T, first: Message, relayed: Relayed, origin: Origin) {
    let mut cancellation = origin.cancellation;
    let ended = async move {
        cancellation.cancelled().await;
        CloseFrame::new(SERVICE_RESTART, "the host is shutting down")
    };
    let (first, line) = (Some(first), Either::Left(transport));
    relayed.run(Peeked { first, line }, ended).await;
}

async fn refuse<T: Transport>(mut transport: T, why: &'static str) {
    let frame = CloseFrame::new(CloseFrame::TRY_AGAIN, why);
    let closing = async {
        let _ = transport.send(Outgoing::Close(frame)).await;
        while matches!(transport.next().await, Some(Ok(_))) {}
    };
    let _ = timeout(CLOSE_TIMEOUT, closing).await;
}

/// Returns the frame to pass on.
fn forward(message: Message) -> Option<Outgoing> {
    match message {
        Message::Text(text) => Some(Outgoing::Text(text)),
        Message::Binary(bytes) => Some(Outgoing::Binary(bytes)),
        Message::Close(frame) => Some(Outgoing::Close(
            frame.unwrap_or_else(|| CloseFrame::new(CloseFrame::NORMAL, "")),
        )),
        _ => None,
    }
}

impl<T: Transport> Stream for Peeked<T> {
    type Item = Result<Message, TransportError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match self.first.take() {
            Some(first) => Poll::Ready(Some(Ok(first))),
            None => self.line.poll_next_unpin(cx),
        }
    }
}

impl<T: Transport> Sink<Outgoing> for Peeked<T> {
    type Error = TransportError;

    fn poll_ready(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), TransportError>> {
        self.line.poll_ready_unpin(cx)
    }

    fn start_send(mut self: Pin<&mut Self>, frame: Outgoing) -> Result<(), TransportError> {
        self.line.start_send_unpin(frame)
    }

    fn poll_flush(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), TransportError>> {
        self.line.poll_flush_unpin(cx)
    }

    fn poll_close(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), TransportError>> {
        self.line.poll_close_unpin(cx)
    }
}
