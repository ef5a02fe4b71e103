//! A client with several addresses: on which node it goes on when its own is gone.

use std::time::Duration;

use exoclaw_proto::auth::Auth;
use exoclaw_proto::client::{ClientConfig, reconnect_policy};
use exoclaw_proto::net::{Client, ServerOptions, connect_with, dialer};
use rpc_core::backoff::BackoffPolicy;
use rpc_core::net::LinkState;
use rpc_core::{CallError, Delivery};

use crate::harness::{Running, start};

async fn node() -> (Running, String) {
    let auth = Auth::token("s3cret").unwrap();
    let node = start(ServerOptions::new(auth)).await;
    let url = format!("ws://{}/ws", node.address);
    (node, url)
}

async fn client(urls: &str) -> Client {
    let mut reconnect = reconnect_policy();
    reconnect.backoff = BackoffPolicy::new(Duration::from_millis(5), 1.0);
    let mut config = ClientConfig::new("s3cret");
    let dialer = dialer(urls, &config).unwrap().in_listed_order();
    config.link.reconnect = reconnect;
    let (client, _, connection) = connect_with(dialer, config);
    tokio::spawn(connection.run());
    client.ready().await.unwrap();
    client
}

#[tokio::test]
async fn a_client_authenticates_at_the_next_node_and_repeats_no_chat() {
    let ((first, a), (mut second, b)) = (node().await, node().await);
    let client = client(&format!("{a},{b}")).await;
    assert_eq!(client.node().unwrap().url(), a);
    let mut states = client.states();
    let mut lost = client.chat("hang").await;
    first.handle.drain(Duration::ZERO).await;
    let again = LinkState::Ready { generation: 2 };
    states.wait_for(|state| *state == again).await.unwrap();
    assert_eq!(client.node().unwrap().url(), b);
    let error = loop {
        match lost.next().await {
            Some(Err(error)) => break error,
            Some(Ok(_)) => {}
            None => panic!("a lost chat ends with an error"),
        }
    };
    assert!(matches!(error, CallError::Closed { .. }), "{error:?}");
    assert_eq!(error.delivery(), Delivery::Unknown);
    // The second node has heard nothing of it.
    assert!(second.hear.try_recv().is_err());
    assert!(client.ping().await.is_ok());
}
