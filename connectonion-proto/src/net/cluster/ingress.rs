//! Which node serves a connection: this one, or the owner of its session.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, SystemTime};

use futures_util::future::BoxFuture;
use futures_util::{Sink, SinkExt, Stream, StreamExt};
use http::request::Parts;
use rpc_core::net::server::Accepted;
use rpc_core::net::{Cancellation, DialError, Message, Transport, TransportError, mem};
use rpc_core::sync::Mutex;
use rpc_core::{CloseFrame, Outgoing};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::Cluster;
use super::forward::{CLOSE_TIMEOUT, Forward, close, forward};
use super::node::Node;
use super::peers::{Head, Question, Replied};
use crate::frame::ClientFrame;
use crate::limits::{SERVICE_RESTART, defaults};

/// How long to wait before an owner that gives no answer is asked again.
const PAUSE: Duration = Duration::from_millis(200);

/// A connection that is served here, until it names a session of another node in its first CONNECT: then
/// it ends here, and is left to be passed on.
pub(in crate::net) struct Incoming {
    transport: Box<dyn Transport>,
    /// `None` once it is clear that this node serves it.
    router: Option<Router>,
    finding: Option<(BoxFuture<'static, OwnerConnection>, Message)>,
    elsewhere: Elsewhere,
}

/// Where a connection is left that is not served here, with its CONNECT.
type Elsewhere = Arc<Mutex<Option<(Box<dyn Transport>, Message, OwnerConnection)>>>;

/// The socket of a session's owner, `None` for this node; or why there is none.
type OwnerConnection = Result<Option<(Box<dyn Transport>, Forward)>, &'static str>;

/// Finds the owner of a client's session.
struct Router {
    cluster: Cluster,
    peer: SocketAddr,
    head: Arc<Parts>,
    clock: fn() -> SystemTime,
}

impl Cluster {
    /// Serves a connection: with `here` at this node, or at the owner of the session that its first
    /// CONNECT names. `clock` judges its signature.
    pub(in crate::net) async fn serve<F>(
        &self,
        accepted: Accepted,
        clock: fn() -> SystemTime,
        here: impl FnOnce(Accepted) -> F,
    ) where
        F: Future<Output = ()>,
    {
        let elsewhere = Elsewhere::default();
        let router = Router {
            cluster: self.clone(),
            peer: accepted.peer,
            head: Arc::clone(&accepted.parts),
            clock,
        };
        let (permit, cancellation) = (accepted.permit.clone(), accepted.cancellation.clone());
        let mut accepted = accepted;
        accepted.socket = Box::new(Incoming {
            transport: accepted.socket,
            router: Some(router),
            finding: None,
            elsewhere: Arc::clone(&elsewhere),
        });
        here(accepted).await;
        let Some((client, first, found)) = elsewhere.lock().take() else {
            return;
        };
        // It need not make room any more.
        let is_kept = permit.is_none_or(|permit| permit.logged_in());
        match found.and_then(|found| is_kept.then_some(found).ok_or("too many connections")) {
            Ok(Some((owner, passed))) => {
                forward(client, first, owner, ended(passed, cancellation)).await;
            }
            Ok(None) => {}
            Err(why) => {
                let (to, from) = client.split();
                let why = CloseFrame::new(CloseFrame::TRY_AGAIN, why);
                let _ = timeout(CLOSE_TIMEOUT, close(to, from, Some(why))).await;
            }
        }
    }
}

/// Waits until a connection that is passed on has to end.
async fn ended(mut passed: Forward, mut cancellation: Cancellation) -> CloseFrame {
    let why = tokio::select! {
        () = passed.moved() => "the session's host does not serve it any more: connect again",
        () = cancellation.cancelled() => "the host is shutting down",
    };
    CloseFrame::new(SERVICE_RESTART, why)
}

/// Why there is no connection to an owner.
enum NotDialled {
    /// It gives no answer: it may be dead.
    NoAnswer,
    /// It has no room.
    Full,
    /// It cannot be reached.
    Unreachable(DialError),
}

impl Router {
    /// Finds the node that serves a session, `None` for a new one. An owner that gives no answer is
    /// waited for until its lease is over.
    async fn find(self, session_id: Option<String>) -> OwnerConnection {
        // What was answered before is sent meanwhile.
        tokio::task::yield_now().await;
        let shared = &self.cluster.shared;
        // A new session waits for no owner.
        let lease = shared.options.lease.lease;
        let lease = session_id.as_ref().map_or(Duration::ZERO, |_| lease);
        let deadline = Instant::now() + lease + shared.options.patience;
        let mut is_given_up = false;
        loop {
            let joined = timeout_at(deadline, shared.member.joined()).await;
            let node = joined.map_err(|_| "this host is not in the cluster")?;
            let Some(session_id) = &session_id else {
                return Ok(None);
            };
            match node.claims.holder(session_id).await {
                Ok(None) => return Ok(None),
                Ok(Some(owner)) if owner == *node.id() => return Ok(None),
                // It removes its claim.
                Ok(Some(_)) if is_given_up => {}
                Ok(Some(owner)) => {
                    let passed = node.forwards.add(session_id, &owner);
                    match self.dial(&node, &owner).await {
                        Ok(transport) => return Ok(Some((transport, passed))),
                        Err(NotDialled::Full) => return Err("the session's host is full"),
                        Err(NotDialled::NoAnswer) => {}
                        Err(NotDialled::Unreachable(error)) => {
                            tracing::warn!(%owner, %error, "this host does not reach another one");
                            let session_id = session_id.as_str().into();
                            match node.ask(&owner, &Question::Release { session_id }).await {
                                Ok(Replied::Released(true)) => is_given_up = true,
                                Ok(_) => return Err("the session is used at a host out of reach"),
                                Err(_) => {}
                            }
                        }
                    }
                }
                Err(error) => tracing::debug!(%error, "the owner of a session was not found"),
            }
            if Instant::now() >= deadline {
                return Err("the session's host does not answer");
            }
            sleep(PAUSE).await;
        }
    }

    /// Opens a connection to the owner of a session, with a ticket of it.
    async fn dial(&self, node: &Node, owner: &str) -> Result<Box<dyn Transport>, NotDialled> {
        let head = Head::new(self.peer, &self.head, (self.clock)());
        match node.ask(owner, &Question::Ticket(head)).await {
            Ok(Replied::Ticket(url)) => match self.cluster.dial(&url).await {
                Err(DialError::Status { status: 503, .. }) => Err(NotDialled::Full),
                dialled => dialled.map_err(NotDialled::Unreachable),
            },
            Ok(_) => Err(NotDialled::Full),
            Err(_) => Err(NotDialled::NoAnswer),
        }
    }
}

/// Returns the session of a CONNECT, if a message is one; `None` in it for a new one.
fn session_of(message: &Message) -> Option<Option<String>> {
    let Message::Text(text) = message else {
        return None;
    };
    let Ok(ClientFrame::Connect(connect)) = ClientFrame::decode(text.as_str(), &defaults()) else {
        return None;
    };
    let max = crate::hub::MAX_SESSION_ID;
    let id = connect.session_id;
    let id = id.filter(|id| !id.is_empty() && id.len() <= max);
    Some(id.map(|id| id.to_string()))
}

impl Stream for Incoming {
    type Item = Result<Message, TransportError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            if let Some((finding, _)) = &mut this.finding {
                let found = ready!(finding.as_mut().poll(cx));
                let first = this.finding.take().map(|(_, first)| first);
                if let Ok(None) = found {
                    return Poll::Ready(first.map(Ok));
                }
                // One that is cut.
                let transport = std::mem::replace(&mut this.transport, Box::new(mem::duplex(1).0));
                *this.elsewhere.lock() = first.map(|first| (transport, first, found));
            }
            let message = ready!(this.transport.poll_next_unpin(cx));
            let session_id = match &message {
                Some(Ok(message)) if this.router.is_some() => session_of(message),
                _ => None,
            };
            match (session_id, message, this.router.take()) {
                (Some(session_id), Some(Ok(message)), Some(router)) => {
                    this.finding = Some((Box::pin(router.find(session_id)), message));
                }
                (_, message, router) => {
                    this.router = router;
                    return Poll::Ready(message);
                }
            }
        }
    }
}

impl Sink<Outgoing> for Incoming {
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
