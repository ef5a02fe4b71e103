//! A message to 1,000 members of a channel over WebSockets in memory. Ours: a hub, and a task for
//! each connection as the servers run it. The clients read bytes and look at nothing. A round is one
//! recipient.

use std::future::pending;
use std::time::Instant;

use bytes::Bytes;
use futures_util::SinkExt;
use rpc_core::net::ws::{Role, WsConfig, WsStream};
use rpc_core::net::{ConnectionHandler, DriverConfig, Handle, Running, serve};
use rpc_core::{CloseFrame, CloseReason};
use snek_proto::server::{ServerConn, ServerEvent};
use tokio::io::{AsyncReadExt, DuplexStream, duplex};
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes, protocol};

use super::COSTS;
use super::broadcast::{channel, logged_in, say};
use crate::net::raw::small_buffers;
use crate::text;
use crate::time;
use crate::work::Work;

const MEMBERS: u64 = 1_000;
/// What a pipe holds: more than a frame.
const PIPE: usize = 4096;

pub(super) fn works() -> Vec<Work> {
    vec![
        Work::new(
            COSTS,
            "Snek message to 1,000 WebSockets in memory, each",
            0,
            |n| run(ours(n)),
        )
        .beside("tokio-tungstenite, one loop", |n| run(one_loop(n)))
        .beside("tokio-tungstenite, a task each", |n| run(task_each(n)))
        .rounds(32 * MEMBERS),
    ]
}

fn run(work: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().build().unwrap();
    runtime.block_on(work);
}

/// The handler of a connection that only listens.
struct Listener;

impl ConnectionHandler for Listener {
    type Machine = ServerConn;
    const SYSTEM: &'static str = "test";

    fn on_event(&mut self, event: ServerEvent, _: &mut Running) -> Option<CloseReason> {
        match event {
            ServerEvent::Closed(reason) => Some(reason),
            other => panic!("{other:?}"),
        }
    }

    fn close(conn: &mut ServerConn, frame: CloseFrame, now: Instant) {
        conn.close_with(frame, now);
    }

    fn shut_down(&mut self, _: &mut Running) {}
}

async fn ours(n: u64) {
    let (words, now) = (text::words(50), Instant::now());
    let mut hub = channel(MEMBERS);
    let (mut handles, mut clients) = (Vec::new(), Vec::new());
    for _ in 0..MEMBERS {
        let (client, server) = duplex(PIPE);
        let config = WsConfig::default();
        let socket = WsStream::from_upgraded(server, Bytes::new(), Role::Server, &config).await;
        let handle = Handle::new(logged_in(now));
        let config = DriverConfig::default();
        tokio::spawn(serve(handle.clone(), socket, Listener, config, pending()));
        handles.push(handle);
        clients.push(client);
    }
    let mut start = Instant::now();
    for round in 0..=n / MEMBERS {
        say(&mut hub, &words, MEMBERS);
        while let Some((to, text)) = hub.poll_transmit() {
            let pushed = handles[to.0 as usize].with(|conn| conn.push(text));
            pushed.unwrap();
        }
        read(&mut clients, round).await;
        if round == 0 {
            start = Instant::now();
        }
    }
    time::began(start);
}

/// What a member gets, as ours writes it.
fn frame() -> String {
    format!(
        r#"{{"event":"message","message":"{}","username":"u0","user_nick":"","channel_uid":"ch1","is_final":true}}"#,
        text::words(50)
    )
}

/// Reads a frame from each pipe, and checks the first ones.
async fn read(clients: &mut [DuplexStream], round: u64) {
    let text = frame();
    assert!((126..65_536).contains(&text.len()));
    let mut frame = vec![0; 4 + text.len()];
    for client in clients {
        client.read_exact(&mut frame).await.unwrap();
        if round == 0 {
            assert_eq!(&frame[..2], [0x81, 126]);
            assert_eq!(&frame[4..], text.as_bytes());
        }
    }
}

/// Bytes that all frames share.
fn shared() -> Utf8Bytes {
    Utf8Bytes::from(frame())
}

async fn sockets() -> (Vec<WebSocketStream<DuplexStream>>, Vec<DuplexStream>) {
    let (mut sockets, mut clients) = (Vec::new(), Vec::new());
    for _ in 0..MEMBERS {
        let (client, server) = duplex(PIPE);
        let (role, config) = (protocol::Role::Server, Some(small_buffers()));
        sockets.push(WebSocketStream::from_raw_socket(server, role, config).await);
        clients.push(client);
    }
    (sockets, clients)
}

/// By hand: a loop over the sockets, which waits for the slowest.
async fn one_loop(n: u64) {
    let (mut sockets, mut clients) = sockets().await;
    let mut start = Instant::now();
    for round in 0..=n / MEMBERS {
        let text = shared();
        for socket in &mut sockets {
            socket.send(Message::Text(text.clone())).await.unwrap();
        }
        read(&mut clients, round).await;
        if round == 0 {
            start = Instant::now();
        }
    }
    time::began(start);
}

/// By hand: a task for each socket, with a queue.
async fn task_each(n: u64) {
    let (sockets, mut clients) = sockets().await;
    let mut queues = Vec::new();
    for mut socket in sockets {
        let (queue, mut texts) = mpsc::channel(64);
        queues.push(queue);
        tokio::spawn(async move {
            while let Some(text) = texts.recv().await {
                socket.send(Message::Text(text)).await.unwrap();
            }
        });
    }
    let mut start = Instant::now();
    for round in 0..=n / MEMBERS {
        let text = shared();
        for queue in &queues {
            queue.try_send(text.clone()).unwrap();
        }
        read(&mut clients, round).await;
        if round == 0 {
            start = Instant::now();
        }
    }
    time::began(start);
}
