//! Clients with several addresses: on which node they go on when their own is gone.

use std::time::Duration;

use acolyte_proto::auth::{ApiKey, Auth};
use acolyte_proto::client::{ClientConfig, Outcome, reconnect_policy};
use acolyte_proto::frame::ChatRequest;
use acolyte_proto::net::{ServerOptions, SseClient, connect_with, dialer};
use rpc_core::Delivery;
use rpc_core::backoff::BackoffPolicy;
use rpc_core::net::LinkState;

use crate::daemon::{Running, serve};

async fn node() -> (Running, String) {
    let auth = Auth::key(ApiKey::new("s3cret").unwrap());
    let node = serve(ServerOptions::new(auth)).await;
    let url = format!("http://{}", node.address);
    (node, url)
}

fn config() -> ClientConfig {
    ClientConfig::new(ApiKey::new("s3cret").unwrap())
}

#[tokio::test]
async fn a_client_authenticates_at_the_next_node_and_repeats_no_chat() {
    let ((first, a), (mut second, b)) = (node().await, node().await);
    let mut reconnect = reconnect_policy();
    reconnect.backoff = BackoffPolicy::new(Duration::from_millis(5), 1.0);
    let dialer = dialer(&format!("{a},{b}"), &config()).unwrap();
    let dialer = dialer.in_listed_order();
    let mut config = config();
    config.link.reconnect = reconnect;
    let (client, _, connection) = connect_with(dialer, config);
    tokio::spawn(connection.run());
    client.ready().await.unwrap();
    assert_eq!(client.node().unwrap().address(), first.address);
    let mut states = client.states();
    let mut lost = client.chat(ChatRequest::new("hang", "m")).await;
    first.handle.drain(Duration::ZERO).await;
    let again = LinkState::Ready { generation: 2 };
    states.wait_for(|state| *state == again).await.unwrap();
    assert_eq!(client.node().unwrap().address(), second.address);
    let outcome = lost.finish().await;
    assert!(!matches!(outcome, Outcome::Done(_)), "{outcome:?}");
    // The second node has heard nothing of it.
    assert!(second.hear.try_recv().is_err());
    client.status().await.unwrap();
}

#[tokio::test]
async fn http_stays_with_one_node_and_moves_to_the_next_once_it_is_gone() {
    let ((first, a), (second, b)) = (node().await, node().await);
    let client = SseClient::new(&format!("{a},{b}"), config()).unwrap();
    assert!(client.node().is_none());
    for _ in 0..3 {
        client.status().await.unwrap();
    }
    let node = client.node().unwrap();
    let (gone, left) = match node.address() == first.address {
        true => (first, second),
        false => (second, first),
    };
    assert_eq!(node.address(), gone.address);
    gone.handle.drain(Duration::ZERO).await;
    let mut chat = client.chat(ChatRequest::new("hello", "m")).await;
    let outcome = chat.finish().await;
    assert!(matches!(outcome, Outcome::Done(_)), "{outcome:?}");
    assert_eq!(client.node().unwrap().address(), left.address);
}

#[tokio::test]
async fn a_lost_http_chat_is_not_resent_to_another_node() {
    let ((first, a), (second, b)) = (node().await, node().await);
    let client = SseClient::new(&format!("{a},{b}"), config()).unwrap();
    let mut chat = client.chat(ChatRequest::new("hang", "m")).await;
    let (gone, mut left) = match client.node().unwrap().address() == first.address {
        true => (first, second),
        false => (second, first),
    };
    let (outcome, _) = tokio::join!(chat.finish(), gone.handle.drain(Duration::ZERO));
    match outcome {
        Outcome::Closed { delivery, .. } => assert_ne!(delivery, Delivery::NotSent),
        other => assert!(!matches!(other, Outcome::Done(_)), "{other:?}"),
    }
    assert!(left.hear.try_recv().is_err());
    client.status().await.unwrap();
    assert_eq!(client.node().unwrap().address(), left.address);
}
