//! A WebSocket client that writes what a test says, byte for byte, and reads what comes.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

const LONG: Duration = Duration::from_secs(60);

/// One frame, as it came.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    Text(String),
    Ping,
    Close(u16, String),
    /// The line has ended.
    End,
}

pub(crate) struct Wire {
    pub(crate) tcp: TcpStream,
}

/// A masked frame; the mask is zero, so the payload is in it as it is.
pub(crate) fn frame(opcode: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x80 | opcode];
    match payload.len() {
        short @ 0..126 => frame.push(0x80 | u8::try_from(short).unwrap()),
        middle @ 126..=0xffff => {
            frame.push(0x80 | 126);
            frame.extend_from_slice(&u16::try_from(middle).unwrap().to_be_bytes());
        }
        long => {
            frame.push(0x80 | 127);
            frame.extend_from_slice(&u64::try_from(long).unwrap().to_be_bytes());
        }
    }
    frame.extend_from_slice(&[0; 4]);
    frame.extend_from_slice(payload);
    frame
}

pub(crate) fn upgrade_request(more: &str) -> String {
    format!(
        "GET / HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n{more}\r\n"
    )
}

pub(crate) fn registration(name: &str) -> String {
    let payload = json!({"name": name, "description": format!("The client {name}.")});
    json!({"type": "registration", "payload": payload}).to_string()
}

/// A response with this payload: `null` for none of its own.
pub(crate) fn response(id: &str, kind: &str, payload: &Value) -> String {
    let payload = json!({"messageId": id, "type": kind, "payload": payload});
    json!({"type": "response", "payload": payload}).to_string()
}

pub(crate) fn ack(id: &str) -> String {
    response(id, "ack", &json!({}))
}

pub(crate) fn reject(id: &str, reason: &str) -> String {
    response(id, "reject", &json!({"reason": reason}))
}

/// The answer to a request from this address, read to its end.
pub(crate) async fn ask_from(local: &str, address: SocketAddr, request: &str) -> String {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(local.parse().unwrap()).unwrap();
    let mut tcp = socket.connect(address).await.unwrap();
    tcp.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let is_upgraded =
        |answer: &[u8]| answer.starts_with(b"HTTP/1.1 101") && answer.ends_with(b"\r\n\r\n");
    let read =
        async { while !is_upgraded(&answer) && tcp.read_buf(&mut answer).await.unwrap() > 0 {} };
    timeout(LONG, read).await.expect("an answer in time");
    let answer = String::from_utf8(answer).unwrap();
    answer["HTTP/1.1 ".len()..].to_owned()
}

pub(crate) async fn ask(address: SocketAddr, request: &str) -> String {
    ask_from("127.0.0.1:0", address, request).await
}

impl Wire {
    pub(crate) async fn open(address: SocketAddr) -> Self {
        let mut tcp = TcpStream::connect(address).await.unwrap();
        let request = upgrade_request("");
        tcp.write_all(request.as_bytes()).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(tcp.read_u8().await.unwrap());
        }
        assert!(head.starts_with(b"HTTP/1.1 101"), "{head:?}");
        Self { tcp }
    }

    /// Whether no one listens there.
    pub(crate) async fn open_refused(address: SocketAddr) -> bool {
        TcpStream::connect(address).await.is_err()
    }

    /// A client that is registered under this name.
    pub(crate) async fn client(address: SocketAddr, name: &str) -> Self {
        let mut wire = Self::open(address).await;
        let answer = wire.register(name).await;
        assert_eq!(answer["success"], true, "{answer}");
        wire
    }

    /// The payload of the answer to a registration.
    pub(crate) async fn register(&mut self, name: &str) -> Value {
        self.send(&registration(name)).await;
        self.payload("registration_response").await
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        // The server may have hung up: what counts is what it said.
        let _ = timeout(LONG, self.tcp.write_all(bytes)).await;
    }

    pub(crate) async fn send(&mut self, text: &str) {
        self.write(&frame(1, text.as_bytes())).await;
    }

    pub(crate) async fn next(&mut self) -> Frame {
        timeout(LONG, self.read()).await.expect("a frame in time")
    }

    /// The payload of the next frame, which is of this type.
    pub(crate) async fn payload(&mut self, kind: &str) -> Value {
        let Frame::Text(text) = self.next().await else {
            panic!("a text was expected");
        };
        let mut frame: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(frame["type"], kind, "{text}");
        frame["payload"].take()
    }

    /// The next message.
    pub(crate) async fn message(&mut self) -> Value {
        self.payload("message").await
    }

    /// The id of the next message.
    pub(crate) async fn id(&mut self) -> String {
        self.message().await["id"].as_str().unwrap().to_owned()
    }

    async fn read(&mut self) -> Frame {
        let Some((first, mut payload)) = self.frame().await else {
            return Frame::End;
        };
        // A long text comes in several frames.
        let mut is_last = first & 0x80 != 0;
        while !is_last {
            let Some((head, more)) = self.frame().await else {
                return Frame::End;
            };
            payload.extend(more);
            is_last = head & 0x80 != 0;
        }
        let len = payload.len();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        match first & 0x0f {
            1 => Frame::Text(text(&payload)),
            8 if len < 2 => Frame::Close(1005, String::new()),
            8 => Frame::Close(
                u16::from_be_bytes([payload[0], payload[1]]),
                text(&payload[2..]),
            ),
            9 => Frame::Ping,
            other => panic!("opcode {other}"),
        }
    }

    /// The first byte of a frame, and its payload.
    async fn frame(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut head = [0; 2];
        self.tcp.read_exact(&mut head).await.ok()?;
        let len = match head[1] {
            126 => usize::from(self.tcp.read_u16().await.unwrap()),
            127 => usize::try_from(self.tcp.read_u64().await.unwrap()).unwrap(),
            len => usize::from(len),
        };
        let mut payload = vec![0; len];
        self.tcp.read_exact(&mut payload).await.ok()?;
        Some((head[0], payload))
    }
}
