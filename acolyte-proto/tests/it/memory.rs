//! What a connection holds at the server while nothing happens on it. Printed, and bounded from
//! above.

use std::net::SocketAddr;
use std::thread;

use acolyte_proto::net::{Server, ServerOptions};
use allocation_counter::measure;
use rpc_core::net::Dialer as _;
use rpc_core::net::ws::WsDialer;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

use crate::daemon::{Peer, puppet};

const COUNT: usize = 100;

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// Opens clients on a thread of their own, so that what they hold does not count, and plays with
/// each of them. They live as long as what is returned.
async fn crowd(
    address: SocketAddr,
    count: usize,
    play: impl AsyncFn(&mut Peer) + Send + 'static,
) -> (Runtime, Vec<Peer>) {
    let (told, opened) = oneshot::channel();
    thread::spawn(move || {
        let runtime = runtime();
        let mut peers = Vec::new();
        let url = format!("ws://{address}/v1/rpc");
        runtime.block_on(async {
            for _ in 0..count {
                let ws = WsDialer::new(&url).unwrap().dial().await.unwrap();
                let mut peer = Peer::new(ws);
                play(&mut peer).await;
                peers.push(peer);
            }
        });
        assert!(told.send((runtime, peers)).is_ok());
    });
    let opened = opened.await.unwrap();
    // What the server still has to do after the last frame has left.
    for _ in 0..COUNT {
        tokio::task::yield_now().await;
    }
    opened
}

/// Bytes that each of [`COUNT`] connections holds when `play` has been played.
fn held(play: impl AsyncFn(&mut Peer) + Copy + Send + 'static) -> i64 {
    let runtime = runtime();
    // The receiver of what has ended is dropped: nothing piles up there.
    let (agent, ..) = puppet();
    let bind = Server::bind("127.0.0.1:0", agent, ServerOptions::default());
    let server = runtime.block_on(bind).unwrap();
    let address = server.local_addr();
    let task = runtime.spawn(server.run());
    // What the first ones cost only once is left out.
    let first = runtime.block_on(crowd(address, 10, play));
    let mut others = None;
    let info = measure(|| others = Some(runtime.block_on(crowd(address, COUNT, play))));
    task.abort();
    drop((first, others));
    info.bytes_current / COUNT as i64
}

#[test]
fn an_idle_connection_uses_little_memory() {
    let each = held(async |_| {});
    println!("idle at the server: {each} bytes");
    assert!(each <= 7 * 1024, "{each} bytes");
}

#[test]
fn an_ended_chat_frees_its_memory() {
    let each = held(async |peer| {
        peer.start("rpc_a", "some").await;
        peer.until("a chat.done").await;
    });
    // Its task among it, which is remembered on purpose.
    println!("after a chat of a hundred steps, at the server: {each} bytes");
    // What a burst was collected in before it was written is kept, up to 16 KiB.
    assert!(each <= 20 * 1024, "{each} bytes");
}
