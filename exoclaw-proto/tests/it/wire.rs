//! A client by hand: it writes what a test says, byte for byte, and reads what comes.

use std::net::SocketAddr;
use std::time::Duration;

use rpc_core::net::ws::Role;
pub(crate) use switchboard_testing::faults::upgrade_request;
use switchboard_testing::faults::{RawFrame, RawPeer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Longer than anything that works takes, shorter than patience.
pub(crate) const DEADLINE: Duration = Duration::from_millis(300);
/// For what has to move megabytes first.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// A message, or another frame, as it came.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    Text(String),
    Pong(Vec<u8>),
    Close(u16, String),
    /// The line has ended.
    End,
}

pub(crate) struct Wire(pub(crate) RawPeer);

/// A frame as a client sends it.
pub(crate) fn frame(opcode: u8, payload: &[u8]) -> Vec<u8> {
    RawFrame::new(0x80 | opcode, payload).into_bytes(Role::Client)
}

pub(crate) fn text(text: &str) -> Vec<u8> {
    frame(1, text.as_bytes())
}

/// The status and body of the answer to a request.
pub(crate) async fn ask(address: SocketAddr, request: &str) -> String {
    answer(TcpStream::connect(address).await.unwrap(), request).await
}

/// As [`ask`], over this connection.
pub(crate) async fn answer(mut tcp: TcpStream, request: &str) -> String {
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

impl Wire {
    pub(crate) async fn open(address: SocketAddr) -> Self {
        let mut peer = RawPeer::connect(address).await.unwrap();
        let head = peer.upgrade(&upgrade_request("/ws", "")).await.unwrap();
        assert!(head.starts_with("HTTP/1.1 101"), "{head:?}");
        Self(peer)
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        // The server may have hung up: what counts is what it said.
        let _ = timeout(LONG, self.0.bytes(bytes)).await;
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
        let mut text = Vec::new();
        while let Ok(Some(frame)) = self.0.receive().await {
            if let Some(code) = frame.close_code() {
                let reason = frame.payload.get(2..).unwrap_or_default().to_vec();
                return Frame::Close(code, String::from_utf8(reason).unwrap());
            }
            if frame.is_pong() {
                return Frame::Pong(frame.payload);
            }
            assert!(frame.first & 0x0f < 2, "{frame:?}");
            text.extend(frame.payload);
            // A long text comes in several frames.
            if frame.first & 0x80 != 0 {
                return Frame::Text(String::from_utf8(text).unwrap());
            }
        }
        Frame::End
    }
}
