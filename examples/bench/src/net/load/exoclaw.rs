//! Our Exoclaw client.

use exoclaw_proto::client::ClientConfig;
use exoclaw_proto::frame::StreamEvent;
use exoclaw_proto::net::{Client, connect_lazy};

use super::Pace;
use crate::net::kind::{self, Kind};
use crate::net::values::{STATUS, TEXTS};

async fn ping(client: &Client) {
    client.ping().await.unwrap();
}

async fn status(client: &Client) {
    let status = client.status().await.unwrap();
    let found = (&*status.version, status.plugins, status.sessions);
    assert_eq!(found, STATUS);
}

async fn chat(client: &Client) {
    let mut chat = client.chat("10").await;
    let mut texts = 0;
    while let Some(event) = chat.next().await {
        texts += usize::from(matches!(event.unwrap(), StreamEvent::Text(_)));
    }
    assert_eq!(texts, TEXTS);
}

pub(super) async fn load(kind: Kind<'_>, address: &str, pace: Pace) {
    let url = format!("ws://{address}/ws");
    let (client, _events, connection) = connect_lazy(&url, ClientConfig::default()).unwrap();
    tokio::spawn(connection.run());
    client.ready().await.unwrap();
    match kind.work {
        kind::STATUS => pace.measure(|_| status(&client)).await,
        kind::CHAT => pace.measure(|_| chat(&client)).await,
        _ => pace.measure(|_| ping(&client)).await,
    }
}
