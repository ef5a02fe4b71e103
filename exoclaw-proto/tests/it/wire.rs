//! A WebSocket client that writes what a test says, byte for byte, and reads what comes.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Longer than anything that works takes, shorter than patience.
pub(crate) const DEADLINE: Duration = Duration::from_millis(300);
/// For what has to move megabytes first.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// One frame, as it came.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    Text(String),
    Pong(Vec<u8>),
    Close(u16, String),
    /// The line has ended.
    End,
}

pub(crate) struct Wire {
    pub(crate) tcp: TcpStream,
}

/// A masked frame; the mask is zero, so the payload is in it as it is.
pub(crate) fn frame(opcode: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = header(opcode, payload.len() as u64);
    frame.extend_from_slice(payload);
    frame
}

/// The head of a masked frame.
pub(crate) fn header(opcode: u8, len: u64) -> Vec<u8> {
    let mut header = vec![0x80 | opcode];
    if let Ok(short) = u8::try_from(len)
        && short < 126
    {
        header.push(0x80 | short);
    } else if let Ok(middle) = u16::try_from(len) {
        header.push(0x80 | 126);
        header.extend_from_slice(&middle.to_be_bytes());
    } else {
        header.push(0x80 | 127);
        header.extend_from_slice(&len.to_be_bytes());
    }
    header.extend_from_slice(&[0; 4]);
    header
}

pub(crate) fn text(text: &str) -> Vec<u8> {
    frame(1, text.as_bytes())
}

pub(crate) fn upgrade_request(path: &str, more: &str) -> String {
    format!(
        "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n{more}\r\n"
    )
}

/// The status and body of the answer to a request.
pub(crate) async fn ask(address: std::net::SocketAddr, request: &str) -> String {
    let mut tcp = TcpStream::connect(address).await.unwrap();
    tcp.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    timeout(LONG, tcp.read_to_string(&mut answer))
        .await
        .expect("an answer in time")
        .unwrap();
    answer["HTTP/1.1 ".len()..].to_owned()
}

impl Wire {
    pub(crate) async fn open(address: std::net::SocketAddr) -> Self {
        let mut tcp = TcpStream::connect(address).await.unwrap();
        let request = upgrade_request("/ws", "");
        tcp.write_all(request.as_bytes()).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(tcp.read_u8().await.unwrap());
        }
        assert!(head.starts_with(b"HTTP/1.1 101"), "{head:?}");
        Self { tcp }
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        // The server may have hung up: what counts is what it said.
        let _ = timeout(LONG, self.tcp.write_all(bytes)).await;
    }

    pub(crate) async fn send(&mut self, said: &str) {
        self.write(&text(said)).await;
    }

    pub(crate) async fn next(&mut self) -> Frame {
        timeout(LONG, self.read()).await.expect("a frame in time")
    }

    /// The next frame, which is a text.
    pub(crate) async fn text(&mut self) -> String {
        match self.next().await {
            Frame::Text(text) => text,
            other => panic!("{other:?}"),
        }
    }

    /// Whether nothing comes for a while.
    pub(crate) async fn is_silent(&mut self) -> bool {
        timeout(Duration::from_millis(50), self.read())
            .await
            .is_err()
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
            10 => Frame::Pong(payload),
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
