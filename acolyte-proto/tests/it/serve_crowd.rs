//! Hundreds of connections with full queues at once.

use std::sync::Arc;

use acolyte_proto::net::ServerOptions;
use futures_util::future::try_join_all;
use rpc_core::keepalive::KeepAlive;
use serde_json::json;
use tokio::sync::Barrier;

use crate::daemon::{LONG, Peer, serve};

const PEERS: usize = 500;

/// Fills the queue of a connection, and once all are full, goes through a part of it.
async fn fill(mut peer: Peer, all_full: Arc<Barrier>) -> Peer {
    for n in 0..27 {
        peer.start(&format!("rpc_{n}"), "obey").await;
    }
    peer.until("25 chat.queued 25").await;
    peer.until("26 error").await;
    all_full.wait().await;
    peer.abort("rpc_x", "rpc_25").await;
    peer.until("25 chat.error E_ABORTED").await;
    peer.until("24 chat.queued 24").await;
    peer.until("x chat.abort.result true").await;
    for n in 0..3 {
        peer.abort("rpc_x", &format!("rpc_{n}")).await;
        peer.until(&format!("{n} chat.error E_ABORTED")).await;
        peer.until("x chat.abort.result true").await;
        peer.until(&format!("{} chat.started", n + 1)).await;
    }
    peer
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_hundred_connections_with_full_queues_are_all_served() {
    let mut options = ServerOptions::default();
    options.http.limits.max_connections = PEERS + 1;
    // Who waits for the others answers no ping meanwhile.
    options.connection.keep_alive = KeepAlive::off();
    let server = serve(options).await;
    let mut peers = Vec::new();
    for _ in 0..PEERS {
        peers.push(server.client().await);
    }
    let all_full = Arc::new(Barrier::new(PEERS));
    let tasks = peers
        .into_iter()
        .map(|peer| tokio::spawn(fill(peer, Arc::clone(&all_full))));
    // The first that fails ends the test: the others would wait for it.
    let peers = try_join_all(tasks).await.unwrap();
    let mut other = server.client().await;
    let mut load = async || {
        other
            .send(&json!({"id": "rpc_s", "type": "status.get"}))
            .await;
        let status = other.next().await.unwrap()["status"].take();
        ["tasks_total", "tasks_running", "rpc_queue_length"].map(|name| status[name].as_u64())
    };
    // Live tasks are never forgotten, those that have ended are.
    let count = |n: usize| u64::try_from(n).ok();
    assert_eq!(
        load().await,
        [count(PEERS * 22), count(PEERS), count(PEERS * 21)]
    );
    drop(peers);
    let left = async {
        while load().await[1..] != [Some(0), Some(0)] {
            tokio::task::yield_now().await;
        }
        load().await
    };
    let left = tokio::time::timeout(LONG, left).await.unwrap();
    assert_eq!(left[0], Some(1_000));
}
