//! One connection from its upgrade to its end.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future;
use rpc_core::net::server::Accepted;
use rpc_core::net::{LinkConfig, LinkEvent, Running};
use rpc_core::{CloseFrame, Json, Refused, Secret, Str};

use super::Backend;
use super::peer::{Peer, Pushes, slow_reader};
use super::protocol::ServerSide;
use crate::error::RpcError;
use crate::hub::ConnId;
use crate::server::{RequestId, ServerConfig, ServerEvent};

/// What the connections of a server have in common.
pub(super) struct Shared<B> {
    pub(super) backend: Arc<B>,
    pub(super) connection: Arc<ServerConfig>,
    pub(super) link: Arc<LinkConfig>,
    pub(super) shutdown_timeout: Duration,
    pub(super) next: AtomicU64,
}

/// One connection from its upgrade to its end. Not an `async fn`, and nothing around the two
/// futures: each layer would hold a second copy of them, and there is one for every idle connection.
pub(super) fn serve<B: Backend>(
    shared: Arc<Shared<B>>,
    accepted: Accepted,
) -> impl Future<Output = ()> {
    let side = ServerSide::new(Arc::clone(&shared.connection));
    let (link, mut events, connection) =
        rpc_core::net::over(side, accepted.socket, Arc::clone(&shared.link));
    let peer = Arc::new(Peer {
        id: ConnId(shared.next.fetch_add(1, Ordering::Relaxed)),
        address: accepted.peer,
        parts: accepted.parts,
        link,
        pushes: Arc::new(Pushes::new(&shared.connection.limits)),
        cancellation: accepted.cancellation,
    });
    let work = async move {
        // Not tasks of their own: a runtime starts tasks in any order, and then the last part of a
        // message could overtake the others.
        let mut calls = Running::new();
        let mut cancellation = peer.cancellation();
        let mut ending = false;
        loop {
            tokio::select! {
                event = events.next() => match event {
                    None => break,
                    Some(LinkEvent::Event(event)) => {
                        start(&shared, &peer, event, &mut calls);
                    }
                    Some(_) => {}
                },
                () = calls.next() => {}
                () = cancellation.cancelled(), if !ending => {
                    ending = true;
                    calls.push(drain(Arc::clone(&peer), shared.shutdown_timeout));
                }
            }
        }
        drop(calls);
        shared.backend.disconnected(&peer).await;
    };
    future::join(connection.run(), work).map(drop)
}

async fn drain(peer: Arc<Peer>, timeout: Duration) {
    let frame = CloseFrame::new(CloseFrame::GOING_AWAY, "server shutdown");
    peer.link.drain_with(timeout, frame).await;
}

fn start<B: Backend>(
    shared: &Arc<Shared<B>>,
    peer: &Arc<Peer>,
    event: ServerEvent,
    calls: &mut Running,
) {
    let (shared, peer) = (Arc::clone(shared), Arc::clone(peer));
    match event {
        ServerEvent::Login {
            id,
            username,
            password,
        } => {
            calls.push(async move {
                login(&shared, &peer, id, &username, &password).await;
            });
        }
        ServerEvent::Request { id, call } => {
            calls.push(async move {
                let outcome = guarded(shared.backend.call(&peer, &call)).await;
                respond(&peer, id, outcome).await;
            });
        }
        ServerEvent::Warning(error) => {
            tracing::debug!(peer = ?peer.id, %error, "a frame was ignored");
        }
        _ => {}
    }
}

async fn login<B: Backend>(
    shared: &Shared<B>,
    peer: &Arc<Peer>,
    id: RequestId,
    username: &str,
    password: &Secret<Str>,
) {
    let checked = guarded(async {
        let user = shared.backend.login(peer, username, password).await?;
        shared.backend.logged_in(peer, &user).await;
        Ok(user)
    })
    .await;
    peer.run(move |conn| match checked {
        Ok(user) => conn.accept_login(id, user),
        Err(error) => conn.refuse_login(id, error.message()),
    })
    .await;
}

/// A panic of a backend becomes an error that says nothing about it.
async fn guarded<T>(work: impl Future<Output = Result<T, RpcError>>) -> Result<T, RpcError> {
    AssertUnwindSafe(work)
        .catch_unwind()
        .await
        .unwrap_or_else(|_| {
            tracing::error!("a backend panicked");
            Err(RpcError::new("internal error"))
        })
}

async fn respond(peer: &Arc<Peer>, id: RequestId, outcome: Result<Json, RpcError>) {
    let sent = peer
        .run(move |conn| match &outcome {
            Ok(value) => match conn.reply(id, value) {
                Err(Refused::TooLarge { .. } | Refused::Encode { .. }) => {
                    conn.fail(id, "the answer is too large")
                }
                other => other,
            },
            Err(error) => conn.fail(id, error.message()),
        })
        .await;
    if sent == Some(Err(Refused::QueueFull)) {
        peer.close(slow_reader());
    }
}
