//! One connection from its upgrade to its end, with the requests that run on it.

use std::future::{Future, poll_fn};
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future;
use rpc_core::CloseFrame;
use rpc_core::net::server::Accepted;
use rpc_core::net::{LinkConfig, LinkEvent, Running};

use super::backend::{Backend, ChatError, answer};
use super::outlet::{Outlet, Step};
use super::peer::Peer;
use super::protocol::ServerSide;
use super::reply::ChatReply;
use crate::error::RpcError;
use crate::frame::{Call, ChatSend};
use crate::server::{RequestId, ServerConfig, ServerEvent};

/// What a client is told when the server drains.
const SHUTDOWN: &str = "server shutdown";

/// What all connections of a server share.
pub(super) struct Shared<B> {
    pub(super) backend: Arc<B>,
    pub(super) connection: Arc<ServerConfig>,
    pub(super) link: Arc<LinkConfig>,
    pub(super) shutdown_timeout: Duration,
    pub(super) next: AtomicU64,
}

/// Tells whoever still writes that the connection is gone, however its task ends.
struct Leave(Arc<Outlet>);

impl Drop for Leave {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// Not an `async fn`, and nothing around the two futures: each layer would hold a second copy of
/// them, and there is one for every idle connection.
pub(super) fn serve<B: Backend>(
    shared: Arc<Shared<B>>,
    accepted: Accepted,
) -> impl Future<Output = ()> {
    let outlet = Arc::new(Outlet::new(&shared.connection.limits));
    let leave = Leave(Arc::clone(&outlet));
    let seen = Arc::clone(&outlet);
    let side = ServerSide::new(Arc::clone(&shared.connection)).with_outlet(Arc::clone(&outlet));
    let (link, mut events, connection) =
        rpc_core::net::over(side, accepted.socket, Arc::clone(&shared.link));
    let peer = Arc::new(Peer {
        id: shared.next.fetch_add(1, Ordering::Relaxed),
        address: accepted.peer,
        parts: accepted.parts,
        link,
        outlet,
        cancellation: accepted.cancellation,
    });
    let work = async move {
        let _leave = leave;
        // Not tasks of their own: they are started in order, they need no channel to the
        // connection's task, and they go when it goes.
        let mut requests = Running::new();
        let mut cancellation = peer.cancellation();
        let mut cancelled = pin!(cancellation.cancelled());
        let mut ending = false;
        loop {
            // What is written in this turn leaves in it, because the connection is polled behind it.
            let turn = poll_fn(|_| {
                peer.outlet.begin_turn();
                Poll::<()>::Pending
            });
            tokio::select! {
                biased;
                () = turn => {}
                event = events.next() => match event {
                    None => break,
                    Some(LinkEvent::Event(ServerEvent::Request { id, .. })) if ending => {
                        // Begun now, it would be cut off soon.
                        let error = RpcError::new(SHUTDOWN);
                        peer.tell(peer.outlet.add_end(id, Step::Refuse(Box::new(error))));
                    }
                    Some(LinkEvent::Event(event)) => start(&shared, &peer, event, &mut requests),
                    Some(_) => {}
                },
                () = requests.next() => {}
                () = gone(&peer.outlet) => break,
                () = &mut cancelled, if !ending => {
                    ending = true;
                    requests.push(drain(Arc::clone(&peer), shared.shutdown_timeout));
                }
            }
        }
        drop(requests);
        guarded("disconnected", shared.backend.disconnected(&peer)).await;
    };
    // The connection is polled behind the work, so the end that it meets is news for the work.
    let end = poll_fn(move |turn| {
        if seen.is_gone() {
            turn.waker().wake_by_ref();
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    });
    future::join3(work, connection.run(), end).map(drop)
}

/// Waits until the client has left. Only for the connection's own task, which looks for the end
/// after each of its turns and takes another one when it comes.
async fn gone(outlet: &Outlet) {
    poll_fn(|_| {
        if outlet.is_gone() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}

async fn drain(peer: Arc<Peer>, timeout: Duration) {
    let frame = CloseFrame::new(CloseFrame::GOING_AWAY, SHUTDOWN);
    peer.link.drain_with(timeout, frame).await;
}

fn start<B: Backend>(
    shared: &Arc<Shared<B>>,
    peer: &Arc<Peer>,
    event: ServerEvent,
    requests: &mut Running,
) {
    match event {
        ServerEvent::Request { id, call } => {
            let (backend, peer) = (Arc::clone(&shared.backend), Arc::clone(peer));
            match call {
                Call::ChatSend(chat) => requests.push(chat_with(backend, peer, id, chat)),
                call => requests.push(respond(backend, peer, id, call)),
            }
        }
        ServerEvent::Writable => peer.tell(peer.outlet.resume()),
        ServerEvent::Warning(error) => {
            tracing::debug!(connection = peer.id, %error, "a message was ignored");
        }
        _ => {}
    }
}

async fn chat_with<B: Backend>(backend: Arc<B>, peer: Arc<Peer>, id: RequestId, chat: ChatSend) {
    let reply = ChatReply::new(Arc::clone(&peer), id);
    let run = async { backend.chat(&peer, chat, reply.clone()).await };
    let end = match guarded("chat", run).await {
        Some(Ok(())) => Step::Done,
        Some(Err(ChatError::Refused(error))) => Step::Refuse(Box::new(error)),
        Some(Err(ChatError::Failed(error))) => Step::Error(Box::new(error)),
        // If it is still there after all, it must not wait for ever.
        Some(Err(ChatError::Gone(_))) | None => Step::Refuse(Box::new(internal_error())),
    };
    reply.end(end);
}

async fn respond<B: Backend>(backend: Arc<B>, peer: Arc<Peer>, id: RequestId, call: Call) {
    let run = async {
        // Answers may be large: none is made before there is room for it.
        peer.outlet.room().await;
        match call {
            Call::Status => answer(&backend.status(&peer).await),
            Call::PluginList => answer(&backend.plugins(&peer).await),
            call => backend.extension(&peer, call).await,
        }
    };
    let outcome = guarded("request", run).await;
    let end = match outcome.unwrap_or_else(|| Err(internal_error())) {
        Ok(value) => Step::Reply(value),
        Err(error) => Step::Refuse(Box::new(error)),
    };
    peer.tell(peer.outlet.add_end(id, end));
}

fn internal_error() -> RpcError {
    RpcError::new("internal error")
}

/// Runs a backend's work; `None` if it panics.
async fn guarded<T>(what: &'static str, work: impl Future<Output = T>) -> Option<T> {
    let outcome = AssertUnwindSafe(work).catch_unwind().await;
    if outcome.is_err() {
        tracing::error!(what, "a backend panicked");
    }
    outcome.ok()
}
