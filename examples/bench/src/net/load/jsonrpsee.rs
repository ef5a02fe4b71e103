//! jsonrpsee's client: methods, and a subscription that is read to its end.

use std::sync::Arc;

use jsonrpsee::core::client::{ClientT, Subscription, SubscriptionClientT};
use jsonrpsee::rpc_params;
use jsonrpsee::ws_client::{WsClient, WsClientBuilder};

use super::{Pace, spread};
use crate::net::kind::{self, Kind};
use crate::net::values::{Event, SENT, STATUS, Said, Sent, Status, TEXT, TEXTS};

async fn open(address: &str) -> WsClient {
    WsClientBuilder::default()
        .max_concurrent_requests(4_096)
        .build(format!("ws://{address}"))
        .await
        .unwrap()
}

async fn ping(client: &WsClient) {
    let answer: String = client.request("ping", rpc_params![]).await.unwrap();
    assert_eq!(answer, "pong");
}

async fn status(client: &WsClient) {
    let status: Status = client.request("status", rpc_params![]).await.unwrap();
    let found = (&*status.version, status.plugins, status.sessions);
    assert_eq!(found, STATUS);
}

async fn echo(client: &WsClient) {
    let params = rpc_params![Said { text: TEXT }];
    let said: Said<String> = client.request("echo", params).await.unwrap();
    assert_eq!(said.text, TEXT);
}

async fn send(client: &WsClient) {
    let (channel, text, is_final) = SENT;
    let params = rpc_params![channel, text, is_final];
    let sent: Sent = client.request("send_message", params).await.unwrap();
    assert_eq!(sent.channel_uid, channel);
}

/// Dropping the subscription ends it at the server too.
async fn chat(client: &WsClient) {
    let chat = client.subscribe("subscribe", rpc_params![TEXTS], "unsubscribe");
    let mut chat: Subscription<Event<String>> = chat.await.unwrap();
    let mut texts = 0;
    while let Event::Text(_) = chat.next().await.unwrap().unwrap() {
        texts += 1;
    }
    assert_eq!(texts, TEXTS);
}

pub(super) async fn load(kind: Kind<'_>, address: &str, pace: Pace) {
    let client = open(address).await;
    match kind.work {
        kind::STATUS => pace.measure(|_| status(&client)).await,
        kind::ECHO => pace.measure(|_| echo(&client)).await,
        kind::SEND_MESSAGE => pace.measure(|_| send(&client)).await,
        kind::CHAT | kind::ACOLYTE_CHAT => pace.measure(|_| chat(&client)).await,
        _ => pace.measure(|_| ping(&client)).await,
    }
}

pub(super) async fn tasks(address: &str, in_flight: usize, calls: usize) {
    let client = Arc::new(open(address).await);
    spread(in_flight, calls, move || {
        let client = client.clone();
        async move { ping(&client).await }
    })
    .await;
}
