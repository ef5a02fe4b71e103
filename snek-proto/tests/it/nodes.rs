//! A client with several addresses: on which node it goes on when its own is gone.

use std::time::Duration;

use rpc_core::backoff::BackoffPolicy;
use rpc_core::net::{LinkEvent, LinkState};
use snek_proto::client::{ClientConfig, ClientEvent, reconnect_policy};
use snek_proto::frame::Final;
use snek_proto::net::{Client, Events, MemoryBackend, Server, ServerOptions, connect_with, dialer};
use tokio::task::JoinHandle;

/// A node with its own users; its URL, and its task, whose end is that of all its connections.
async fn node() -> (String, JoinHandle<()>) {
    let backend = MemoryBackend::new()
        .with_channel("general", "General")
        .with_user("ann", "a", "Ann")
        .with_user("bob", "b", "Bob");
    let server = Server::bind("127.0.0.1:0", backend, ServerOptions::default());
    let server = server.await.unwrap();
    let url = server.url();
    let task = tokio::spawn(async move {
        server.run().await;
    });
    (url, task)
}

async fn login(urls: &str, name: &str, password: &str) -> (Client, Events) {
    let mut reconnect = reconnect_policy();
    reconnect.backoff = BackoffPolicy::new(Duration::from_millis(5), 1.0);
    let mut config = ClientConfig::new(name, password);
    let dialer = dialer(urls, &config).unwrap().in_listed_order();
    config.link.reconnect = reconnect;
    let (client, events, connection) = connect_with(dialer, config);
    tokio::spawn(connection.run());
    client.ready().await.unwrap();
    (client, events)
}

async fn message(events: &mut Events) -> String {
    loop {
        if let LinkEvent::Event(ClientEvent::Message(message)) = events.next_link().await.unwrap() {
            return message.message.to_string();
        }
    }
}

#[tokio::test]
async fn a_client_logs_in_at_the_next_node_and_repeats_nothing() {
    let ((a, first), (b, _second)) = (node().await, node().await);
    let (bob, mut seen_at_b) = login(&b, "bob", "b").await;
    let (ann, mut events) = login(&format!("{a},{b}"), "ann", "a").await;
    assert_eq!(ann.node().unwrap().url(), a);
    ann.send_message("general", "one", Final::Yes)
        .await
        .unwrap();
    assert_eq!(message(&mut events).await, "one");

    let mut states = ann.states();
    first.abort();
    let again = LinkState::Ready { generation: 2 };
    states.wait_for(|state| *state == again).await.unwrap();
    let node = ann.node().unwrap();
    assert_eq!((node.index(), node.url()), (1, &*b));
    // The login was repeated, and no message.
    ann.send_message("general", "two", Final::Yes)
        .await
        .unwrap();
    assert_eq!(message(&mut seen_at_b).await, "two");
    assert_eq!(bob.node().unwrap().url(), b);
}
