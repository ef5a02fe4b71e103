//! An Acolyte client, over WebSocket and over `fetch`: it chats, stops a chat, waits too long, loses its line within a
//! chat, reconnects, and leaves.

use acolyte_proto::auth::ApiKey;
use acolyte_proto::client::{ChatUpdate, ClientConfig, Outcome as Ended};
use acolyte_proto::frame::ChatRequest;
use acolyte_proto::net::{self, Chat, SseClient};
use futures_util::FutureExt as _;
use wasm_bindgen_futures::spawn_local;

use super::{Line, MOMENT, Outcome, connects, expect, failed, fails, is_late, leaves, soon};

fn config() -> Result<ClientConfig, wasm_bindgen::JsValue> {
    Ok(ClientConfig {
        call_timeout: MOMENT,
        ..ClientConfig::new(ApiKey::new("correct-horse-battery-staple").map_err(failed)?)
    })
}

fn request(text: &str) -> ChatRequest {
    ChatRequest::new(text, "scripted")
}

/// Reads a chat until it says something.
async fn speaks(chat: &mut Chat) -> Outcome {
    while let Some(update) = chat.next().await {
        match update {
            ChatUpdate::Event(_) => return Ok(()),
            ChatUpdate::Ended(ended) => return Err(failed(ended)),
            _ => {}
        }
    }
    Err(failed("the chat is over"))
}

async fn answers(mut chat: Chat) -> Outcome {
    let ended = chat.finish().await;
    fails(ended, |it| {
        it.reply().is_some_and(|reply| !reply.output.is_empty())
    })
}

pub(super) async fn life(url: &str, line: &Line) -> Outcome {
    let connected = net::connect(url, config()?).await;
    let (client, _events, connection) = connected.map_err(failed)?;
    spawn_local(connection.run().map(drop));
    answers(client.chat(request("count to 3")).await).await?;

    let mut chat = client.chat(request("/slow 100 50")).await;
    speaks(&mut chat).await?;
    expect(chat.abort().await.map_err(failed)?, "nothing was aborted")?;
    fails(chat.finish().await, |it| {
        matches!(it, Ended::Aborted { .. })
    })?;
    let mut chat = client.chat(request("/slow 100 50")).await;
    speaks(&mut chat).await?;
    drop(chat);
    // One chat at a time runs for a client: the next one would wait for five seconds.
    soon(answers(client.chat(request("count to 3")).await)).await??;

    line.control("hold").await?;
    is_late(client.status().await)?;
    line.control("release").await?;
    client.status().await.map_err(failed)?;

    let mut chat = client.chat(request("/slow 100 50")).await;
    speaks(&mut chat).await?;
    line.control("drop").await?;
    fails(chat.finish().await, |it| matches!(it, Ended::Closed { .. }))?;
    connects(&client, 2).await?;
    answers(client.chat(request("count to 3")).await).await?;

    leaves(&client).await
}

pub(super) async fn sse(url: &str, line: &Line) -> Outcome {
    let client = SseClient::new(url, config()?).map_err(failed)?;
    client.status().await.map_err(failed)?;
    answers(client.chat(request("count to 3")).await).await?;

    // To drop a chat, or to abort it, ends its request long before its answer is over.
    for dropped in [true, false] {
        let mut chat = client.chat(request("/slow 10000 100")).await;
        speaks(&mut chat).await?;
        line.control("hangs-up").await?;
        match dropped {
            true => drop(chat),
            false => expect(chat.abort().await.map_err(failed)?, "nothing was aborted")?,
        }
        line.control("hung-up").await?;
    }

    let mut chat = client
        .chat_within(Some(MOMENT), request("/slow 100 50"))
        .await;
    speaks(&mut chat).await?;
    line.control("hold").await?;
    fails(chat.finish().await, |it| {
        matches!(it, Ended::TimedOut { .. })
    })?;
    is_late(client.status().await)?;
    line.control("release").await?;

    let mut chat = client.chat(request("/slow 100 50")).await;
    speaks(&mut chat).await?;
    line.control("drop").await?;
    fails(chat.finish().await, |it| matches!(it, Ended::Closed { .. }))?;
    answers(client.chat(request("count to 3")).await).await?;

    let stranger = SseClient::new(url, ClientConfig::default()).map_err(failed)?;
    let refused = stranger.chat(request("hi")).await.finish().await;
    fails(refused, |it| matches!(it, Ended::Refused { .. }))
}
