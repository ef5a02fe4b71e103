//! tokio-tungstenite with buffers of 4 KiB.

use futures_util::{SinkExt, StreamExt};
use tokio::io::{DuplexStream, duplex};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use crate::net::raw::small_buffers;

type Socket = WebSocketStream<DuplexStream>;

pub(super) async fn echo(rounds: u64, at_once: u64) {
    let config = Some(small_buffers());
    let (client, server) = duplex(super::PIPE);
    let mut client = WebSocketStream::from_raw_socket(client, Role::Client, config).await;
    let mut server = WebSocketStream::from_raw_socket(server, Role::Server, config).await;
    let text = Utf8Bytes::try_from(super::payload()).unwrap();
    for _ in 0..rounds / at_once {
        for _ in 0..at_once {
            client.feed(Message::Text(text.clone())).await.unwrap();
        }
        client.flush().await.unwrap();
        for _ in 0..at_once {
            let asked = take(&mut server).await;
            server.feed(Message::Text(asked)).await.unwrap();
        }
        server.flush().await.unwrap();
        for _ in 0..at_once {
            assert_eq!(take(&mut client).await.len(), 100);
        }
    }
}

async fn take(socket: &mut Socket) -> Utf8Bytes {
    match socket.next().await {
        Some(Ok(Message::Text(text))) => text,
        other => panic!("{other:?}"),
    }
}
