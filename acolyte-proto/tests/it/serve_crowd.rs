//! Hundreds of connections with full queues at once.

use acolyte_proto::net::ServerOptions;
use rpc_core::net::server::ServerLimits;

use crate::daemon::{Peer, serve};

const PEERS: usize = 500;

/// Fills the queue of a connection, aborts one that waits, and reads to the end of all.
async fn fill(mut peer: Peer) -> usize {
    for n in 0..27 {
        peer.start(&format!("rpc_{n}"), &format!("chat {n}")).await;
    }
    peer.abort("rpc_x", "rpc_25").await;
    let (mut ended, mut refused, mut started) = (0, 0, Vec::new());
    while ended + refused < 27 {
        let short = peer.short().await;
        assert_ne!(short, "end");
        let (id, kind) = short.split_once(' ').unwrap();
        match kind {
            "chat.done" | "chat.error E_ABORTED" => ended += 1,
            "error" => refused += 1,
            "chat.started" => started.push(id.parse::<usize>().unwrap()),
            _ => {}
        }
    }
    // In the order in which they came, whichever were refused or aborted.
    assert!(started.is_sorted(), "{started:?}");
    ended
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_hundred_connections_with_full_queues_are_all_served() {
    let mut options = ServerOptions::default();
    options.http = options.http.with_limits(
        ServerLimits::default()
            .with_max_connections(PEERS)
            .with_max_body_bytes(1024),
    );
    let server = serve(options).await;
    let mut peers = Vec::new();
    for _ in 0..PEERS {
        peers.push(server.client().await);
    }
    let tasks: Vec<_> = peers
        .into_iter()
        .map(|peer| tokio::spawn(fill(peer)))
        .collect();
    for task in tasks {
        assert!(task.await.unwrap() >= 25);
    }
}
