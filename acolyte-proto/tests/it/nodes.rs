//! Clients with several addresses: on which node they go on when their own is gone.

use std::time::Duration;

use acolyte_proto::auth::{ApiKey, Auth};
use acolyte_proto::client::{ClientConfig, Outcome};
use acolyte_proto::frame::ChatRequest;
use acolyte_proto::net::{ServerOptions, SseClient};
use rpc_core::Delivery;

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
    assert!(left.recv.try_recv().is_err());
    client.status().await.unwrap();
    assert_eq!(client.node().unwrap().address(), left.address);
}
