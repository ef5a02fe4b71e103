//! What a connection holds in memory while nothing happens on it, at the server and at the client.
//! Printed, and bounded from above.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use allocation_counter::measure;
use exoclaw_proto::client::ClientConfig;
use exoclaw_proto::net::{
    Client, Events, MemoryBackend, Server, ServerHandle, ServerOptions, connect_lazy,
};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

use crate::harness::chat;
use crate::wire::Wire;

const COUNT: usize = 100;

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

async fn bind() -> Server<MemoryBackend> {
    let options = ServerOptions::default();
    Server::bind("127.0.0.1:0", MemoryBackend::new(), options)
        .await
        .unwrap()
}

/// Opens clients on a thread of their own, so that what they hold does not count, and plays with
/// each of them. They live as long as what is returned.
async fn crowd(
    address: SocketAddr,
    count: usize,
    play: impl AsyncFn(&mut Wire) + Send + 'static,
) -> (Runtime, Vec<Wire>) {
    let (told, opened) = oneshot::channel();
    thread::spawn(move || {
        let runtime = runtime();
        let mut wires = Vec::new();
        runtime.block_on(async {
            for _ in 0..count {
                let mut wire = Wire::open(address).await;
                assert!(wire.text().await.contains("\"ok\":true"));
                play(&mut wire).await;
                wires.push(wire);
            }
        });
        assert!(told.send((runtime, wires)).is_ok());
    });
    let opened = opened.await.unwrap();
    // What the server still has to do after the last frame has left.
    for _ in 0..COUNT {
        tokio::task::yield_now().await;
    }
    opened
}

/// Bytes that each of [`COUNT`] connections holds at the server when `play` has been played.
fn held_at_the_server(play: impl AsyncFn(&mut Wire) + Copy + Send + 'static) -> i64 {
    let runtime = runtime();
    let server = runtime.block_on(bind());
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
    let each = held_at_the_server(async |_| {});
    println!("idle at the server: {each} bytes");
    assert!(each <= 7 * 1024, "{each} bytes");
}

#[test]
fn an_ended_chat_frees_its_memory() {
    let words = "word ".repeat(1_000);
    let request: &'static str = chat("c", &words).leak();
    let each = held_at_the_server(async move |wire| {
        wire.say(request).await;
        while !wire.text().await.contains(r#""event":"done""#) {}
    });
    println!("after a chat of a thousand frames, at the server: {each} bytes");
    // What a burst was collected in before it was written is kept, up to 16 KiB.
    assert!(each <= 20 * 1024, "{each} bytes");
}

/// Clients that stay connected.
async fn clients(url: &str, count: usize) -> Vec<(Client, Events)> {
    let mut clients = Vec::with_capacity(count);
    for _ in 0..count {
        let (client, mut events, connection) = connect_lazy(url, ClientConfig::default()).unwrap();
        tokio::spawn(connection.run());
        client.ready().await.unwrap();
        while events.try_next_link().is_some() {}
        clients.push((client, events));
    }
    clients
}

/// A server on a thread of its own, so that what it holds does not count.
fn served() -> (String, ServerHandle) {
    let (told, bound) = oneshot::channel();
    thread::spawn(move || {
        runtime().block_on(async {
            let server = bind().await;
            assert!(told.send((server.url(), server.handle())).is_ok());
            server.run().await;
        });
    });
    bound.blocking_recv().unwrap()
}

#[test]
fn an_idle_client_uses_little_memory() {
    let (url, server) = served();
    let runtime = runtime();
    let first = runtime.block_on(clients(&url, 1));
    let mut others = Vec::new();
    let info = measure(|| others = runtime.block_on(clients(&url, COUNT)));
    runtime.block_on(server.drain(Duration::ZERO));
    drop((first, others));
    let each = info.bytes_current / COUNT as i64;
    println!("an idle client: {each} bytes");
    assert!(each <= 7 * 1024, "{each} bytes");
}
