//! An Exoclaw client: it chats, stops a chat, loses its line within one, reconnects, and leaves.

use exoclaw_proto::client::ClientConfig;
use exoclaw_proto::net;
use exoclaw_proto::{CallError, CloseReason};
use futures_util::FutureExt as _;
use wasm_bindgen_futures::spawn_local;

use super::{Line, MOMENT, Outcome, expect, failed, fails};

pub(super) async fn life(url: &str, line: &Line) -> Outcome {
    let config = ClientConfig {
        call_timeout: MOMENT,
        peer: Some("page".into()),
        ..ClientConfig::new("correct-horse")
    };
    let connected = net::connect(url, config).await;
    let (client, _events, connection) = connected.map_err(failed)?;
    spawn_local(connection.run().map(drop));

    let status = client.status().await.map_err(failed)?;
    expect(status.version == *"0.1.0", &status.version)?;
    let text = client.chat("hi").await.text().await.map_err(failed)?;
    expect(!text.is_empty(), "an empty answer")?;

    drop(client.chat("hi").await);
    client.ping().await.map_err(failed)?;

    line.tell("hold").await?;
    fails(client.status().await, |it| {
        matches!(it, Err(CallError::TimedOut { .. }))
    })?;
    line.tell("release").await?;
    client.ping().await.map_err(failed)?;

    line.tell("hold").await?;
    let mut chat = client.chat("hi").await;
    line.tell("drop").await?;
    line.tell("release").await?;
    fails(chat.text().await, Result::is_err)?;
    let generation = client.ready().await.map_err(failed)?;
    expect(generation == 2, format!("connection {generation}"))?;
    client.ping().await.map_err(failed)?;

    client.close();
    let end = client.closed().await;
    expect(end == CloseReason::Local, end)
}
