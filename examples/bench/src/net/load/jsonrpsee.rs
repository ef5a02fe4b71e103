//! jsonrpsee's client: a method without parameters.

use jsonrpsee::core::client::ClientT;
use jsonrpsee::rpc_params;
use jsonrpsee::ws_client::WsClientBuilder;

use super::measure;

pub(super) async fn load(address: &str, in_flight: usize, calls: usize) {
    let client = WsClientBuilder::default()
        .max_concurrent_requests(4_096)
        .build(format!("ws://{address}"))
        .await
        .unwrap();
    measure(in_flight, calls, || async {
        let answer: String = client.request("ping", rpc_params![]).await.unwrap();
        assert_eq!(answer, "pong");
    })
    .await;
}
