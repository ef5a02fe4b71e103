//! A client with several addresses: its session goes on at the node that is left.

use std::sync::Arc;
use std::time::Duration;

use connectonion_proto::client::ClientConfig;
use connectonion_proto::client::reconnect_policy;
use connectonion_proto::net::{Client, Server, ServerOptions, connect_with, dialer};
use connectonion_proto::trust::TrustLevel;
use rpc_core::CallError;
use rpc_core::backoff::BackoffPolicy;
use rpc_core::net::LinkState;
use rpc_core::store::MemoryStore;
use tokio::task::JoinHandle;

use crate::staff::{Scripted, client_key, host_key};

/// A node of the host, which shares its key and its store with others.
async fn node(store: &MemoryStore) -> (String, JoinHandle<()>) {
    let mut options = ServerOptions::new(&host_key(), TrustLevel::Open);
    options.runtime.store = Some(Arc::new(store.clone()));
    let server = Server::bind("127.0.0.1:0", Scripted, options);
    let server = server.await.unwrap();
    let url = server.url();
    let task = tokio::spawn(async move {
        server.run().await;
    });
    (url, task)
}

async fn open(urls: &str) -> Client {
    let mut policy = reconnect_policy();
    policy.backoff = BackoffPolicy::new(Duration::from_millis(5), 1.0);
    let mut options = ClientConfig {
        host: Some(*host_key().address()),
        ..ClientConfig::default()
    };
    options.link.reconnect = policy;
    let dialer = dialer(urls, &options).unwrap();
    let dialer = dialer.in_listed_order();
    let (agent, _, connection) = connect_with(dialer, client_key(), options);
    tokio::spawn(connection.run());
    agent.ready().await.unwrap();
    agent
}

#[tokio::test]
async fn a_session_continues_at_the_next_node() {
    let store = MemoryStore::new();
    let ((a, first), (b, _second)) = (node(&store).await, node(&store).await);
    let agent = open(&format!("{a},{b}")).await;
    assert_eq!(agent.node().unwrap().url(), a);
    let output = agent.chat("think twice").await.finish().await.unwrap();
    assert_eq!(output.result, "thought twice");
    let session = agent.session().session_id;
    assert!(session.is_some());

    let mut states = agent.states();
    first.abort();
    let again = LinkState::Ready { generation: 2 };
    states.wait_for(|state| *state == again).await.unwrap();
    assert_eq!(agent.node().unwrap().url(), b);
    let output = agent.chat("think again").await.finish().await.unwrap();
    assert_eq!(output.result, "thought again");
    assert_eq!(agent.session().session_id, session);
    // The conversation of the first node is known, with each prompt once.
    let kept = agent.session().session.unwrap();
    for prompt in ["think twice", "think again"] {
        let said = format!(r#"{{"role":"user","content":"{prompt}"}}"#);
        assert_eq!(kept.get().matches(&said).count(), 1, "{}", kept.get());
    }
}

#[tokio::test]
async fn a_prompt_lost_with_its_node_is_not_resent_to_the_next() {
    let (here, there) = (MemoryStore::new(), MemoryStore::new());
    let ((a, first), (b, _second)) = (node(&here).await, node(&there).await);
    let agent = open(&format!("{a},{b}")).await;
    let mut run = agent.chat("babble 1").await;
    assert!(run.next().await.is_some());
    first.abort();
    let lost = run.finish().await;
    assert!(matches!(lost, Err(CallError::Closed { .. })), "{lost:?}");
    assert_eq!(agent.node().unwrap().url(), b);
    let output = agent.chat("think new").await.finish().await.unwrap();
    assert_eq!(output.result, "thought new");
}
