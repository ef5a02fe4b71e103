//! A NATS server that restarts, hangs, is full or is not there.

use std::time::Duration;

use connectonion_proto::auth::Signer;
use connectonion_proto::net::cluster::{Cluster, ClusterOptions};
use connectonion_proto::session::HubConfig;
use rpc_core::net::nats::{self, NatsConfig};
use rpc_core::store::{Expect, StoreError};
use serde_json::json;
use switchboard_testing::nats::NatsServer;

use super::hosts::{Host, Stored, long, messages, short, store};
use crate::staff::{Client, SECOND, client_key, connect, host_key, input};

#[tokio::test]
#[ignore = "needs nats-server"]
async fn a_restart_of_nats_loses_nothing() {
    let mut nats = NatsServer::start();
    let [a, b] = Host::two(&nats.url(), long()).await;
    let session = json!({"session_id": "s"});
    let (mut client, _) = Client::dial_in(&a.url, session.clone()).await;
    client.ask("one").await;
    nats.restart();
    assert_eq!(client.ask("two").await, "echo: two");
    let (mut through, connected) = Client::dial_in(&b.url, session).await;
    assert_eq!(
        messages(&connected),
        ["one", "echo: one", "two", "echo: two"]
    );
    assert_eq!(through.ask("count").await, "5 messages");
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn an_emptied_nats_serves_new_sessions() {
    let mut nats = NatsServer::start();
    let [a, b] = Host::two(&nats.url(), short()).await;
    let old = json!({"session_id": "old"});
    let (mut client, _) = Client::dial_in(&a.url, old).await;
    client.ask("one").await;
    nats.restart_empty();
    for (host, id) in [(&a, "new at a"), (&b, "new at b")] {
        let asked = tokio::time::timeout(SECOND * 30, ask_until_answered(host, id));
        assert_eq!(asked.await.expect("it serves"), "echo: two");
    }
}

/// Asks in a session as clients do: one whose host has just lost its lease connects again.
async fn ask_until_answered(host: &Host, id: &str) -> String {
    loop {
        let mut client = Client::dial(&host.url).await;
        let session = json!({"session_id": id});
        client.send(&connect(&client_key(), session)).await;
        client.send(&input("two")).await;
        while let Some(frame) = client.try_recv(SECOND * 20).await {
            if frame["type"] == "OUTPUT" {
                return frame["result"].as_str().unwrap().to_owned();
            }
            if frame["type"] == "ERROR" {
                assert_eq!(frame["retryable"], true, "{frame}");
                break;
            }
        }
    }
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn a_host_without_nats_releases_its_sessions_and_recovers() {
    let nats = NatsServer::start();
    let a = Host::start(&nats.url(), short(), HubConfig::default()).await;
    let session = json!({"session_id": "s"});
    let (mut client, _) = Client::dial_in(&a.url, session.clone()).await;
    client.ask("one").await;
    assert_eq!(a.get_with_status("/ready").await.0, 200);
    nats.pause();
    client.send(&input("two")).await;
    // It is not acknowledged, and its client learns to connect again.
    let close = client.close_frame().await;
    assert_eq!(close.code, 1012);
    assert!(!a.cluster.is_joined());
    assert_eq!(a.runtime.sessions(), 0);
    let (status, ready) = a.get_with_status("/ready").await;
    assert_eq!(
        (status, &ready["status"]),
        (503, &json!("not in the cluster"))
    );
    // It comes back by itself: no one has to start it again.
    assert_eq!(a.get_with_status("/health").await.0, 200);
    nats.resume();
    a.cluster.joined().await;
    assert_eq!(a.get_with_status("/ready").await.0, 200);
    let (mut client, connected) = Client::dial_in(&a.url, session).await;
    let messages = messages(&connected);
    // What it says next was sent before NATS hung, and may be stored or not.
    assert_eq!(messages[..2], ["one", "echo: one"]);
    client.ask("three").await;
}

/// A host that has lost its lease, as NATS hangs.
async fn left_alone(nats: &NatsServer, options: ClusterOptions) -> Host {
    let host = Host::start(&nats.url(), options, HubConfig::default()).await;
    let (mut client, _) = Client::dial_in(&host.url, json!({})).await;
    nats.pause();
    assert_eq!(client.close_frame().await.code, 1012);
    assert!(!host.cluster.is_joined());
    host
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn a_new_session_waits_for_its_host_to_join() {
    let nats = NatsServer::start();
    let host = left_alone(&nats, short()).await;
    nats.resume();
    let (mut client, _) = Client::dial_in(&host.url, json!({})).await;
    assert_eq!(client.ask("one").await, "echo: one");
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn a_new_session_without_nats_is_closed_with_1013() {
    let nats = NatsServer::start();
    let options = ClusterOptions {
        patience: Duration::from_millis(100),
        ..short()
    };
    let host = left_alone(&nats, options).await;
    let mut client = Client::dial(&host.url).await;
    client.send(&connect(&client_key(), json!({}))).await;
    assert_eq!(client.close_frame().await.code, 1013);
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn a_full_stream_refuses_prompts_and_keeps_what_it_has() {
    let nats = NatsServer::start();
    let options = ClusterOptions {
        max_bytes: Some(100_000),
        ..long()
    };
    let a = Host::start(&nats.url(), options, HubConfig::default()).await;
    let session = json!({"session_id": "s"});
    let (mut client, _) = Client::dial_in(&a.url, session.clone()).await;
    client.ask("one").await;
    client.send(&input(&"x".repeat(200_000))).await;
    let error = client.recv_type("ERROR").await;
    assert_eq!(error["retryable"], true, "{error}");
    assert!(error["code"].is_string());
    assert_eq!(client.ask("count").await, "3 messages");
}

/// A host with an answer that NATS has no room for until other things are purged. Its client has it.
async fn unstored(nats: &NatsServer, hub: HubConfig) -> Host {
    let options = ClusterOptions {
        max_bytes: Some(1_000_000),
        ..long()
    };
    let host = Host::start(&nats.url(), options, hub).await;
    let (mut client, _) = Client::dial_in(&host.url, json!({"session_id": "s"})).await;
    client.send(&input("ask who?")).await;
    let question = client.recv_until("ask_user").await.pop().unwrap();
    let stored = Stored::open(&nats.url()).await;
    let filling = vec![0; 800_000].into();
    let filling = stored
        .sessions
        .append("onion_log.other", filling, Expect::default());
    filling.await.unwrap();
    let long = "x".repeat(100_000);
    let answer = json!({"type": "ASK_USER_RESPONSE", "request_id": question["id"], "answer": long});
    client.send(&answer).await;
    let output = client.output().await;
    assert!(output["result"].as_str().unwrap().len() > 100_000);
    host
}

/// A host ends, and the next one that serves the session has the answer, and asks no one again.
async fn next_host_has_the_answer(nats: &NatsServer, ending: Host) {
    let next = Host::start(
        &nats.url(),
        long(),
        HubConfig {
            max_reruns: 1,
            ..HubConfig::default()
        },
    )
    .await;
    ending.handle.drain(SECOND).await;
    ending.run.await.unwrap();
    let (_, connected) = Client::dial_in(&next.url, json!({"session_id": "s"})).await;
    assert_ne!(connected["status"], "running");
    let messages = messages(&connected);
    assert_eq!((messages.len(), &*messages[0]), (2, "ask who?"));
    assert!(messages[1].len() > 100_000);
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn an_answer_refused_by_a_full_nats_is_stored_once_there_is_room() {
    let nats = NatsServer::start();
    let hub = crate::hub_play::config(|it| it.store_again = Duration::from_millis(20));
    let a = unstored(&nats, hub).await;
    let stored = Stored::open(&nats.url()).await;
    stored.forget("other").await;
    stored.ended("s").await;
    next_host_has_the_answer(&nats, a).await;
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn an_answer_refused_by_a_full_nats_is_stored_before_shutdown() {
    let nats = NatsServer::start();
    let hub = crate::hub_play::config(|it| it.store_again = Duration::MAX);
    let a = unstored(&nats, hub).await;
    assert_eq!(a.runtime.unstored(), 1);
    let stored = Stored::open(&nats.url()).await;
    stored.forget("other").await;
    next_host_has_the_answer(&nats, a).await;
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn a_host_of_another_agent_is_refused_with_both_addresses() {
    let nats = NatsServer::start();
    let _a = Host::start(&nats.url(), long(), HubConfig::default()).await;
    let other = Signer::from_seed(&[9; 32]);
    let link = store(&nats.url()).await;
    let refused = Cluster::open(link, *other.address(), long()).await;
    let Err(StoreError::Config { message }) = refused else {
        panic!("{refused:?}");
    };
    for address in [host_key().address(), other.address()] {
        assert!(message.contains(&address.to_string()), "{message}");
    }
    // Under a prefix of its own it is the first.
    let mut config = NatsConfig::new(&nats.url());
    config.prefix = "other".to_owned();
    let link = nats::connect(config).await.unwrap();
    Cluster::open(link, *other.address(), long()).await.unwrap();
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn a_host_that_can_never_join_fails_to_start() {
    let nats = NatsServer::start();
    let _a = Host::start(&nats.url(), short(), HubConfig::default()).await;
    let link = store(&nats.url()).await;
    let refused = Cluster::open(link, *host_key().address(), long()).await;
    assert!(
        matches!(refused, Err(StoreError::Config { .. })),
        "{refused:?}"
    );
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn an_unreachable_server_is_reported() {
    let mut nats = NatsServer::start();
    nats.kill();
    let mut config = NatsConfig::new(&nats.url());
    config.timeout = Duration::from_millis(300);
    let error = nats::connect(config).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
}
