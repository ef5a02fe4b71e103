//! tokio-tungstenite without RPC: what the transport itself costs. Its server echoes what it receives
//! and answers a number with so many frames; its client connects to all servers whose end alone
//! counts.

use futures_util::{FutureExt, SinkExt, StreamExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
use tokio_tungstenite::tungstenite::{Bytes, Message};
use tokio_tungstenite::{WebSocketStream, accept_async_with_config, client_async_with_config};

use super::kind::{self, Kind};
use super::load::Pace;
use super::phase;
use super::serve::{CHUNK, OnListen};
use crate::text;

type Socket = WebSocketStream<TcpStream>;

/// The longest frame of a large message.
const PIECE: usize = 4 * 1024;

/// Buffers for many connections.
fn small_buffers() -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(4096)
        .write_buffer_size(4096)
}

pub(super) async fn serve(on_listen: OnListen) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    on_listen(listener.local_addr().unwrap());
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        tokio::spawn(async move {
            stream.set_nodelay(true).unwrap();
            if let Ok(socket) = accept_async_with_config(stream, Some(small_buffers())).await {
                answer(socket).await;
            }
        });
    }
}

/// Until the client leaves. What is ready is flushed together.
async fn answer(mut socket: Socket) -> Option<()> {
    loop {
        let mut next = Some(socket.next().await);
        while let Some(message) = next {
            let message = message?.ok()?;
            let count = message.to_text().ok().map(str::trim_end);
            match count.and_then(|count| count.parse::<usize>().ok()) {
                Some(count) => {
                    let frame = text::exoclaw_text(&text::words(CHUNK));
                    for _ in 0..count {
                        socket.feed(Message::text(frame.clone())).await.ok()?;
                    }
                }
                None => socket.feed(message).await.ok()?,
            }
            next = socket.next().now_or_never();
        }
        socket.flush().await.ok()?;
    }
}

/// Connects, and says what the server's protocol wants first.
async fn open(kind: Kind<'_>, address: &str) -> Socket {
    let stream = TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let name = stream.local_addr().unwrap().port();
    let registration = format!(
        r#"{{"type":"registration","payload":{{"name":"n{name}","description":"I keep notes."}}}}"#
    );
    let login = r#"{"method":"login","args":["ann","a"],"kwargs":{},"callId":"1"}"#;
    // The path, what is said first, and whether something comes then.
    let (path, first, is_greeted) = match kind.end {
        "exoclaw" => ("/ws", "", true),
        "connectonion" => ("/ws", r#"{"type":"CONNECT"}"#, true),
        "snek" => ("/rpc.ws", login, true),
        "router" => ("/", &*registration, true),
        "acolyte" => ("/v1/rpc", r#"{"id":"rpc_1","type":"status.get"}"#, true),
        _ => ("/", "", false),
    };
    let url = format!("ws://{address}{path}");
    let socket = client_async_with_config(url, stream, Some(small_buffers())).await;
    let (mut socket, _) = socket.unwrap();
    if !first.is_empty() {
        socket.send(Message::text(first)).await.unwrap();
    }
    if is_greeted {
        let answer = socket.next().await.unwrap().unwrap();
        let answer = answer.to_text().unwrap();
        let fine = [
            "\"ok\":true",
            "\"status\":\"new\"",
            "\"success\":true",
            "\"status.result\"",
        ];
        assert!(fine.iter().any(|fine| answer.contains(fine)), "{answer}");
    }
    socket
}

/// Exchanges as many bytes as our request has, and as many frames as come back.
pub(super) async fn load(kind: Kind<'_>, address: &str, pace: Pace) {
    let (request, frames) = match kind.work {
        kind::ECHO => (text::ECHO.to_owned(), 1),
        // Ten texts and the end. Requests for several frames say how many, and blanks.
        kind::CHAT => (format!("{:<111}", 11), 11),
        _ => {
            let ping = r#"{"id":"0f1e2d3c4b5a6978","method":"ping","params":{}}"#;
            (ping.to_owned(), 1)
        }
    };
    let message = Message::text(request);
    let mut socket = open(kind, address).await;
    for calls in [pace.calls / 4, pace.calls] {
        for _ in 0..pace.in_flight {
            socket.feed(message.clone()).await.unwrap();
        }
        socket.flush().await.unwrap();
        let mut to_send = calls - pace.in_flight;
        let mut to_come = calls * frames;
        while to_come > 0 {
            let mut next = Some(socket.next().await);
            while let Some(answer) = next {
                answer.unwrap().unwrap();
                to_come -= 1;
                if to_send > 0 && to_come.is_multiple_of(frames) {
                    to_send -= 1;
                    socket.feed(message.clone()).await.unwrap();
                }
                next = socket.next().now_or_never().filter(|_| to_come > 0);
            }
            socket.flush().await.unwrap();
        }
        phase().await;
    }
}

/// Many connections that do nothing, once each has carried a message of so many bytes.
pub(super) async fn hold(kind: Kind<'_>, address: &str, count: usize, bytes: usize) {
    let mut sockets = Vec::with_capacity(count);
    for _ in 0..count {
        let mut socket = open(kind, address).await;
        if bytes > 0 {
            carry(&mut socket, bytes).await;
        }
        sockets.push(socket);
    }
    phase().await;
    drop(sockets);
}

/// Sends a message that is not a request, in pieces so that this end keeps no large buffer, and waits until
/// the server has read it.
async fn carry(socket: &mut Socket, bytes: usize) {
    let message = format!(r#"{{"x":"{}"}}"#, text::words(bytes));
    let mut pieces = message.as_bytes().chunks(PIECE).peekable();
    let mut kind = Data::Text;
    while let Some(piece) = pieces.next() {
        let is_last = pieces.peek().is_none();
        let frame = Frame::message(piece.to_vec(), OpCode::Data(kind), is_last);
        socket.send(Message::Frame(frame)).await.unwrap();
        kind = Data::Continue;
    }
    socket.send(Message::Ping(Bytes::new())).await.unwrap();
    while !socket.next().await.expect("a pong").unwrap().is_pong() {}
}

/// Asks for a stream on each connection at once and reads them all to their ends.
pub(super) async fn listen(kind: Kind<'_>, address: &str, connections: usize, frames: usize) {
    let mut sockets = Vec::with_capacity(connections);
    for _ in 0..connections {
        sockets.push(open(kind, address).await);
    }
    phase().await;
    let request = match kind.end {
        "exoclaw" => format!(
            r#"{{"id":"0f1e2d3c4b5a6978","method":"chat.send","params":{{"channel":"c","account":"a","content":"{frames}"}}}}"#
        ),
        "jsonrpsee" => {
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"subscribe","params":[{frames}]}}"#)
        }
        _ => frames.to_string(),
    };
    let mut readers = tokio::task::JoinSet::new();
    for mut socket in sockets {
        socket.send(Message::text(request.clone())).await.unwrap();
        readers.spawn(async move {
            let mut left = frames;
            while left > 0 {
                let message = socket.next().await.expect("a frame").unwrap();
                // An answer to the request itself is not a frame of the stream.
                left -= usize::from(message.to_text().is_ok_and(|it| it.contains("The quick")));
            }
            socket
        });
    }
    // Kept until all have ended: closing is not measured.
    let sockets = readers.join_all().await;
    phase().await;
    drop(sockets);
}
