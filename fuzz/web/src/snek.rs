//! A Snek client: it talks, loses its line, reconnects, sleeps, gives up waiting, and leaves.

use futures_util::FutureExt as _;
use futures_util::future::join;
use snek_proto::client::{ClientConfig, ClientEvent};
use snek_proto::frame::Final;
use snek_proto::net::{self, Client, ConnectError};
use snek_proto::rpc_core::net::time::timeout;
use snek_proto::{CloseReason, LinkState};
use wasm_bindgen_futures::spawn_local;

use super::{Line, MOMENT, Outcome, connects, expect, failed, is_late, leaves, soon};

pub(super) async fn life(url: &str, line: &Line) -> Outcome {
    let config = ClientConfig {
        call_timeout: MOMENT,
        ..ClientConfig::new("alice", "wonderland")
    };
    let connected = net::connect(url, config).await;
    let (client, mut events, connection) = connected.map_err(failed)?;
    spawn_local(connection.run().map(drop));

    let text = "h\u{e9}llo \u{1f980}";
    let sent = client.send_message("general", text, Final::Yes).await;
    sent.map_err(failed)?;
    loop {
        match timeout(MOMENT, events.next()).await.map_err(failed)? {
            Some(ClientEvent::Message(it)) if it.message == text => break,
            Some(_) => {}
            None => return Err(failed("the events have ended")),
        }
    }
    has_channels(&client).await?;

    let asked = client.get_channels().now_or_never();
    expect(asked.is_none(), "an answer came at once")?;
    has_channels(&client).await?;

    line.control("hold").await?;
    is_late(client.get_channels().await)?;
    line.control("release").await?;
    has_channels(&client).await?;

    let mut states = client.states();
    line.control("drop").await?;
    states.changed().await.map_err(failed)?;
    connects(&client, 2).await?;
    has_channels(&client).await?;

    // The answer comes while the page sleeps.
    line.control("hold").await?;
    let (asked, slept) = join(client.get_channels(), line.control("sleep")).await;
    slept?;
    asked.map_err(failed)?;

    // Without pings, a line is dead once nothing answers two calls in a row.
    line.control("hold").await?;
    for _ in 0..2 {
        is_late(client.get_channels().await)?;
    }
    let is_lost = |state: &LinkState| !state.is_ready();
    soon(states.wait_for(is_lost)).await?.map_err(failed)?;
    line.control("release").await?;
    connects(&client, 3).await?;
    has_channels(&client).await?;

    leaves(&client).await?;
    is_refused(url).await
}

async fn has_channels(client: &Client) -> Outcome {
    let channels = client.get_channels().await.map_err(failed)?;
    let has_general = channels.iter().any(|it| it.uid == *"general");
    expect(has_general, format!("{channels:?}"))
}

/// Neither a wrong password nor a port where nothing listens is waited for.
async fn is_refused(url: &str) -> Outcome {
    let refused = net::connect(url, ClientConfig::new("alice", "wrong")).await;
    let is_refused = matches!(
        refused,
        Err(ConnectError::Failed(CloseReason::Authentication { .. }))
    );
    expect(is_refused, "a wrong password was not refused")?;
    let nowhere = net::connect("ws://127.0.0.1:9/", ClientConfig::new("alice", "")).await;
    let is_refused = matches!(
        nowhere,
        Err(ConnectError::Failed(CloseReason::Connect { .. }))
    );
    expect(is_refused, "nobody listens there")
}
