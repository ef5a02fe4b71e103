//! Our client: `ping`.

use exoclaw_proto::client::ClientConfig;
use exoclaw_proto::net::connect;

use super::measure;

pub(super) async fn load(address: &str, in_flight: usize, calls: usize) {
    let url = format!("ws://{address}/ws");
    let (client, _events, connection) = connect(&url, ClientConfig::default()).unwrap();
    tokio::spawn(connection.run());
    client.ready().await.unwrap();
    measure(in_flight, calls, || async {
        client.ping().await.unwrap();
    })
    .await;
}
