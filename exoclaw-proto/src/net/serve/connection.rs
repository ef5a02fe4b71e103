//! One connection from its upgrade to its end, with the requests that run on it.

use std::future::{Future, poll_fn};
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use futures_util::future::{self, BoxFuture};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use rpc_core::CloseFrame;
use rpc_core::decode::SharedStr;
use rpc_core::net::server::Accepted;
use rpc_core::net::{LinkConfig, LinkEvent, link};

use super::backend::{Backend, ChatError, answer};
use super::context::Context;
use super::outlet::{Outlet, Step};
use super::protocol::ServerSide;
use super::reply::ChatReply;
use crate::error::RpcError;
use crate::frame::{Call, ChatSend, OwnedCall};
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

/// The requests of one connection. Not tasks of their own: they are started in order, they need no
/// channel to the connection's task, and they go when it goes.
type Requests = FuturesUnordered<BoxFuture<'static, ()>>;

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
    let side = ServerSide::new(Arc::clone(&shared.connection)).with_outlet(Arc::clone(&outlet));
    let (link, mut events, connection) =
        link::over(side, accepted.socket, Arc::clone(&shared.link));
    let cx = Arc::new(Context {
        id: shared.next.fetch_add(1, Ordering::Relaxed),
        address: accepted.peer,
        parts: accepted.parts,
        link,
        outlet,
        cancellation: accepted.cancellation,
    });
    let work = async move {
        let _leave = leave;
        let mut requests = Requests::new();
        let mut cancellation = cx.cancellation();
        let mut cancelled = pin!(cancellation.cancelled());
        let mut ending = false;
        loop {
            tokio::select! {
                event = events.next() => match event {
                    None => break,
                    Some(LinkEvent::Event(ServerEvent::Request { id, .. })) if ending => {
                        // Begun now, it would be cut off soon.
                        let error = RpcError::new(SHUTDOWN);
                        cx.tell(cx.outlet.add_end(id, Step::Refuse(error)));
                    }
                    Some(LinkEvent::Event(event)) => start(&shared, &cx, event, &requests),
                    Some(_) => {}
                },
                Some(()) = requests.next() => {}
                () = gone(&cx.outlet) => break,
                () = &mut cancelled, if !ending => {
                    ending = true;
                    requests.push(Box::pin(drain(Arc::clone(&cx), shared.shutdown_timeout)));
                }
            }
        }
        drop(requests);
        guarded("disconnected", shared.backend.disconnected(&cx)).await;
    };
    future::join(connection.run(), work).map(drop)
}

/// Waits until the client has left. Only for the connection's own task: what says so is a part of
/// it, and the task looks here next, without being woken for it.
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

async fn drain(cx: Arc<Context>, timeout: Duration) {
    let frame = CloseFrame::new(CloseFrame::GOING_AWAY, SHUTDOWN);
    cx.link.drain_with(timeout, frame).await;
}

fn start<B: Backend>(
    shared: &Arc<Shared<B>>,
    cx: &Arc<Context>,
    event: ServerEvent,
    requests: &Requests,
) {
    match event {
        ServerEvent::Request { id, call } => {
            let (backend, cx) = (Arc::clone(&shared.backend), Arc::clone(cx));
            requests.push(match call {
                Call::ChatSend(chat) => Box::pin(chat_with(backend, cx, id, chat)),
                call => Box::pin(respond(backend, cx, id, call)),
            });
        }
        ServerEvent::Writable => cx.tell(cx.outlet.resume()),
        ServerEvent::Warning(error) => {
            tracing::debug!(connection = cx.id, %error, "a message was ignored");
        }
        _ => {}
    }
}

async fn chat_with<B: Backend>(
    backend: Arc<B>,
    cx: Arc<Context>,
    id: RequestId,
    chat: ChatSend<SharedStr>,
) {
    let reply = ChatReply::new(Arc::clone(&cx), id);
    let run = async { backend.chat(&cx, chat, reply.clone()).await };
    let end = match guarded("chat", run).await {
        Some(Ok(())) => Step::Done,
        Some(Err(ChatError::Refused(error))) => Step::Refuse(error),
        Some(Err(ChatError::Failed(error))) => Step::Error(error),
        // If it is still there after all, it must not wait for ever.
        Some(Err(ChatError::Gone(_))) | None => Step::Refuse(internal_error()),
    };
    reply.end(end);
}

async fn respond<B: Backend>(backend: Arc<B>, cx: Arc<Context>, id: RequestId, call: OwnedCall) {
    let run = async {
        // Answers may be large: none is made before there is room for it.
        cx.outlet.room().await;
        match call {
            Call::Status => answer(&backend.status(&cx).await),
            Call::PluginList => answer(&backend.plugins(&cx).await),
            call => backend.extension(&cx, call).await,
        }
    };
    let outcome = guarded("request", run).await;
    let end = match outcome.unwrap_or_else(|| Err(internal_error())) {
        Ok(value) => Step::Reply(value),
        Err(error) => Step::Refuse(error),
    };
    cx.tell(cx.outlet.add_end(id, end));
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
