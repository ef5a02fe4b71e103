//! An Exoclaw client: it chats, stops a chat, loses its line within one, reconnects, and leaves.

use exoclaw_proto::client::ClientConfig;
use exoclaw_proto::net;
use futures_util::FutureExt as _;
use wasm_bindgen_futures::spawn_local;

use super::{Line, MOMENT, Outcome, connects, expect, failed, fails, is_late, leaves};

pub(super) async fn life(url: &str, line: &Line) -> Outcome {
    let config = ClientConfig {
        call_timeout: MOMENT,
        peer: Some("page".into()),
        ..ClientConfig::new("correct-horse-battery-staple")
    };
    let connected = net::connect(url, config).await;
    let (client, _events, connection) = connected.map_err(failed)?;
    spawn_local(connection.run().map(drop));

    let status = client.status().await.map_err(failed)?;
    expect(status.version == *"0.1.0", &status.version)?;
    let text = client.chat("hi").await.finish().await.map_err(failed)?;
    expect(!text.is_empty(), "an empty answer")?;

    drop(client.chat("hi").await);
    client.ping().await.map_err(failed)?;

    line.control("hold").await?;
    is_late(client.status().await)?;
    line.control("release").await?;
    client.ping().await.map_err(failed)?;

    line.control("hold").await?;
    let mut chat = client.chat("hi").await;
    line.control("drop").await?;
    line.control("release").await?;
    fails(chat.finish().await, Result::is_err)?;
    connects(&client, 2).await?;
    client.ping().await.map_err(failed)?;

    leaves(&client).await
}
