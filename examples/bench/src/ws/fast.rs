//! fastwebsockets, which writes every frame by itself. A pipe in memory makes many writes cheap.

use fastwebsockets::{Frame, Payload, Role, WebSocket};
use tokio::io::duplex;

pub(super) async fn echo(rounds: u64, at_once: u64) {
    let (client, server) = duplex(super::PIPE);
    let mut client = WebSocket::after_handshake(client, Role::Client);
    let mut server = WebSocket::after_handshake(server, Role::Server);
    let text = super::payload();
    for _ in 0..rounds / at_once {
        for _ in 0..at_once {
            let frame = Frame::text(Payload::Borrowed(&text));
            client.write_frame(frame).await.unwrap();
        }
        for _ in 0..at_once {
            let asked = server.read_frame().await.unwrap();
            let asked = Frame::text(asked.payload);
            server.write_frame(asked).await.unwrap();
        }
        for _ in 0..at_once {
            assert_eq!(client.read_frame().await.unwrap().payload.len(), 100);
        }
    }
}
