//! What a connection holds in memory while nothing happens on it, at the server and at the client.
//! Printed, and bounded from above.

use std::thread;
use std::time::Duration;

use allocation_counter::measure;
use snek_proto::client::ClientConfig;
use snek_proto::net::{
    Client, Events, MemoryBackend, Server, ServerHandle, ServerOptions, connect_lazy,
};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

const COUNT: usize = 100;

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

async fn bind() -> Server<MemoryBackend> {
    let backend = MemoryBackend::new()
        .with_channel("general", "General")
        .with_user("ann", "a", "Ann");
    Server::bind("127.0.0.1:0", backend, ServerOptions::default())
        .await
        .unwrap()
}

/// Clients that are logged in and stay connected.
async fn clients(url: &str, count: usize) -> Vec<(Client, Events)> {
    let mut clients = Vec::with_capacity(count);
    for _ in 0..count {
        let (client, mut events, connection) =
            connect_lazy(url, ClientConfig::new("ann", "a")).unwrap();
        tokio::spawn(connection.run());
        client.ready().await.unwrap();
        while events.try_next_link().is_some() {}
        clients.push((client, events));
    }
    clients
}

/// Clients on a thread of their own, so that what they hold does not count. They live as long as
/// what is returned.
async fn crowd(url: &str, count: usize) -> (Runtime, Vec<(Client, Events)>) {
    let (told, opened) = oneshot::channel();
    let url = url.to_owned();
    thread::spawn(move || {
        let runtime = runtime();
        let clients = runtime.block_on(clients(&url, count));
        assert!(told.send((runtime, clients)).is_ok());
    });
    let opened = opened.await.unwrap();
    // What the server still has to do after the last frame has left.
    for _ in 0..COUNT {
        tokio::task::yield_now().await;
    }
    opened
}

#[test]
fn an_idle_connection_uses_little_memory() {
    let runtime = runtime();
    let server = runtime.block_on(bind());
    let url = server.url();
    let task = runtime.spawn(server.run());
    // What the first ones cost only once is left out.
    let first = runtime.block_on(crowd(&url, 10));
    let mut others = None;
    let info = measure(|| others = Some(runtime.block_on(crowd(&url, COUNT))));
    task.abort();
    drop((first, others));
    let each = info.bytes_current / COUNT as i64;
    println!("idle at the server: {each} bytes");
    assert!(each <= 7 * 1024, "{each} bytes");
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
    assert!(each <= 8 * 1024, "{each} bytes");
}
