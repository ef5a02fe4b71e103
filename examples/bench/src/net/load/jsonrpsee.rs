//! jsonrpsee's client: methods, and a subscription that is read to its end.

use jsonrpsee::core::client::{ClientT, Subscription, SubscriptionClientT};
use jsonrpsee::rpc_params;
use jsonrpsee::ws_client::{WsClient, WsClientBuilder};

use super::Pace;
use crate::net::kind::{self, Kind};
use crate::net::values::{Event, Said, TEXT, TEXTS};

async fn ping(client: &WsClient) {
    let answer: String = client.request("ping", rpc_params![]).await.unwrap();
    assert_eq!(answer, "pong");
}

async fn echo(client: &WsClient) {
    let params = rpc_params![Said { text: TEXT }];
    let said: Said<String> = client.request("echo", params).await.unwrap();
    assert_eq!(said.text, TEXT);
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
    let client = WsClientBuilder::default()
        .max_concurrent_requests(4_096)
        .build(format!("ws://{address}"))
        .await
        .unwrap();
    match kind.work {
        kind::ECHO => pace.measure(|_| echo(&client)).await,
        kind::CHAT => pace.measure(|_| chat(&client)).await,
        _ => pace.measure(|_| ping(&client)).await,
    }
}
