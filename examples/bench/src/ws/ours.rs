//! tokio-tungstenite as our transport, with its default buffers.

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use rpc_core::net::Message;
use rpc_core::net::ws::{Role, WsConfig, WsStream};
use rpc_core::{Outgoing, Text};
use tokio::io::{DuplexStream, duplex};

type Socket = WsStream<DuplexStream>;

pub(super) async fn echo(rounds: u64, at_once: u64) {
    let config = WsConfig::default();
    let (client, server) = duplex(super::PIPE);
    let mut client = WsStream::from_upgraded(client, Bytes::new(), Role::Client, &config).await;
    let mut server = WsStream::from_upgraded(server, Bytes::new(), Role::Server, &config).await;
    let text = Text::new(super::payload()).unwrap();
    for _ in 0..rounds / at_once {
        for _ in 0..at_once {
            client.feed(Outgoing::Text(text.clone())).await.unwrap();
        }
        client.flush().await.unwrap();
        for _ in 0..at_once {
            let asked = take(&mut server).await;
            server.feed(Outgoing::Text(asked)).await.unwrap();
        }
        server.flush().await.unwrap();
        for _ in 0..at_once {
            assert_eq!(take(&mut client).await.len(), 100);
        }
    }
}

async fn take(socket: &mut Socket) -> Text {
    match socket.next().await {
        Some(Ok(Message::Text(text))) => text,
        other => panic!("{other:?}"),
    }
}
