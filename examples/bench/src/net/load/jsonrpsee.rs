//! jsonrpsee's client: a method without parameters.

use std::sync::Arc;

use jsonrpsee::core::client::ClientT;
use jsonrpsee::rpc_params;
use jsonrpsee::ws_client::{WsClient, WsClientBuilder};

use super::{measure, spread};

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

pub(super) async fn load(address: &str, in_flight: usize, calls: usize) {
    let client = open(address).await;
    measure(in_flight, calls, || ping(&client)).await;
}

pub(super) async fn tasks(address: &str, in_flight: usize, calls: usize) {
    let client = Arc::new(open(address).await);
    spread(in_flight, calls, move || {
        let client = client.clone();
        async move { ping(&client).await }
    })
    .await;
}
