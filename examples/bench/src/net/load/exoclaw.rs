//! Our Exoclaw client.

use exoclaw_proto::client::ClientConfig;
use exoclaw_proto::frame::StreamEvent;
use exoclaw_proto::net::{Client, connect_lazy};
use rpc_core::Limits;

use super::{Pace, spread, wide_limits};
use crate::net::kind::{self, Kind};
use crate::net::values::{STATUS, TEXTS};

async fn open(kind: Kind<'_>, address: &str) -> Client {
    let limits = if kind.wide {
        wide_limits()
    } else {
        Limits::default()
    };
    let url = format!("ws://{address}/ws");
    let config = ClientConfig {
        limits,
        ..ClientConfig::default()
    };
    let (client, _events, connection) = connect_lazy(&url, config).unwrap();
    tokio::spawn(connection.run());
    client.ready().await.unwrap();
    client
}

async fn ping(client: &Client) {
    client.ping().await.unwrap();
}

async fn status(client: &Client) {
    let status = client.status().await.unwrap();
    let found = (&*status.version, status.plugins, status.sessions);
    assert_eq!(found, STATUS);
}

async fn chat(client: &Client, content: &'static str) {
    let mut chat = client.chat(content).await;
    let mut texts = 0;
    while let Some(event) = chat.next().await {
        texts += usize::from(matches!(event.unwrap(), StreamEvent::Text(_)));
    }
    assert_eq!(texts, TEXTS);
}

pub(super) async fn load(kind: Kind<'_>, address: &str, pace: Pace) {
    let client = open(kind, address).await;
    match kind.work {
        kind::STATUS => pace.measure(|_| status(&client)).await,
        kind::CHAT => pace.measure(|_| chat(&client, "10")).await,
        _ => pace.measure(|_| ping(&client)).await,
    }
}

pub(super) async fn tasks(kind: Kind<'_>, address: &str, in_flight: usize, calls: usize) {
    let client = open(kind, address).await;
    spread(in_flight, calls, move || {
        let client = client.clone();
        async move { ping(&client).await }
    })
    .await;
}
