//! What a connection holds in memory at the server while nothing happens on it. Printed, and bounded
//! from above.

use std::net::SocketAddr;
use std::thread;

use allocation_counter::measure;
use smarthole_proto::hub::Input;
use smarthole_proto::net::{RouterRuntime, Server, ServerOptions, http_config};
use smarthole_proto::router::Keywords;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, oneshot};

use crate::wire::{Wire, ack};

const COUNT: usize = 100;

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

async fn bind() -> Server<Keywords> {
    let mut http = http_config();
    http.limits.max_websockets = None;
    let options = ServerOptions {
        http,
        ..ServerOptions::default()
    };
    Server::bind("127.0.0.1:0", Keywords::new(), options)
        .await
        .unwrap()
}

/// Opens clients on a thread of their own, so that what they hold does not count; if they `talk`,
/// each of them acknowledges one message. They live as long as what is returned.
async fn crowd(
    address: SocketAddr,
    router: &RouterRuntime,
    names: std::ops::Range<usize>,
    talk: bool,
) -> mpsc::UnboundedSender<()> {
    let (told, opened) = oneshot::channel();
    let (alive, mut ended) = mpsc::unbounded_channel();
    let range = names.clone();
    thread::spawn(move || {
        runtime().block_on(async {
            let mut wires = Vec::new();
            for name in range {
                wires.push(Wire::client(address, &format!("c{name}")).await);
            }
            told.send(()).unwrap();
            for wire in wires.iter_mut().filter(|_| talk) {
                let id = wire.id().await;
                wire.say(&ack(&id)).await;
            }
            assert!(ended.recv().await.is_none());
        });
    });
    opened.await.unwrap();
    for name in names.filter(|_| talk) {
        router.submit(Input::text(format!("c{name}: hi"))).unwrap();
    }
    while router.in_flight() > 0 {
        tokio::task::yield_now().await;
    }
    // What the server still has to do after the last frame has left.
    for _ in 0..COUNT {
        tokio::task::yield_now().await;
    }
    alive
}

/// Bytes that each of [`COUNT`] registered clients holds at the server.
fn held_at_the_server(talk: bool) -> i64 {
    let tokio = runtime();
    let server = tokio.block_on(bind());
    let (address, router) = (server.local_addr(), server.runtime());
    let task = tokio.spawn(server.run());
    // What the first ones cost only once is left out.
    let first = tokio.block_on(crowd(address, &router, 0..10, talk));
    let mut others = None;
    let info = measure(|| {
        let names = 10..10 + COUNT;
        others = Some(tokio.block_on(crowd(address, &router, names, talk)));
    });
    task.abort();
    drop((first, others));
    info.bytes_current / COUNT as i64
}

#[test]
fn an_idle_client_uses_little_memory_at_the_server() {
    let each = held_at_the_server(false);
    println!("a registered client at the server: {each} bytes");
    assert!(each <= 7 * 1024, "{each} bytes");
}

#[test]
fn an_answered_message_frees_its_memory() {
    let each = held_at_the_server(true);
    println!("after a message, at the server: {each} bytes");
    assert!(each <= 8 * 1024, "{each} bytes");
}
