//! Our client: `ping`.

use exoclaw_proto::client::ClientConfig;
use exoclaw_proto::net::{Client, connect};
use rpc_core::Limits;

use super::{measure, spread};

async fn open(address: &str, limits: Limits) -> Client {
    let url = format!("ws://{address}/ws");
    let config = ClientConfig::default().with_limits(limits);
    let (client, _events, connection) = connect(&url, config).unwrap();
    tokio::spawn(connection.run());
    client.ready().await.unwrap();
    client
}

pub(super) async fn load(address: &str, limits: Limits, in_flight: usize, calls: usize) {
    let client = open(address, limits).await;
    measure(in_flight, calls, || async {
        client.ping().await.unwrap();
    })
    .await;
}

pub(super) async fn tasks(address: &str, in_flight: usize, calls: usize) {
    let client = open(address, Limits::default()).await;
    spread(in_flight, calls, move || {
        let client = client.clone();
        async move {
            client.ping().await.unwrap();
        }
    })
    .await;
}
