//! Sessions of dead hosts, while no client is there.

use connectonion_proto::session::HubConfig;
use connectonion_proto::storage::RecordStatus;
use rpc_core::net::ws::WsStream;
use serde_json::{Value, json};
use switchboard_testing::nats::NatsServer;

use super::hosts::{Host, Stored, messages, short};
use crate::staff::{Client, input};

fn reruns() -> HubConfig {
    HubConfig {
        max_reruns: 2,
        ..HubConfig::default()
    }
}

/// Begins a run in a session, and leaves.
async fn begin(host: &Host, session_id: &str, prompt: &str) {
    let session = json!({"session_id": session_id});
    let (mut client, _) = Client::dial_in(&host.url, session).await;
    client.send(&input(prompt)).await;
    client.recv_type("user_input").await;
}

/// Comes back to a session whose answer is stored.
async fn come_back(host: &Host, session_id: &str) -> (Client<WsStream>, Value) {
    let session = json!({"session_id": session_id});
    let (mut client, connected) = Client::dial_in(&host.url, session.clone()).await;
    if connected["status"] != "running" {
        return (client, connected);
    }
    // Its host has not noticed yet that it is stored.
    client.output().await;
    Client::dial_in(&host.url, session).await
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn another_host_finishes_the_run_of_a_dead_one() {
    let nats = NatsServer::start();
    let a = Host::start(&nats.url(), short(), reruns()).await;
    let b = Host::start(&nats.url(), short(), reruns()).await;
    begin(&a, "s", "stall alone").await;
    a.kill().await;
    let stored = Stored::open(&nats.url()).await;
    let record = stored.ended("s").await;
    assert_eq!(record.status, RecordStatus::Done);
    assert_eq!(record.result.as_deref(), Some("run 2 of alone"));
    let (mut client, connected) = come_back(&b, "s").await;
    assert_eq!(messages(&connected), ["stall alone", "run 2 of alone"]);
    assert_eq!(client.ask("count").await, "3 messages");
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn a_client_gets_what_it_missed_of_an_interrupted_run_once() {
    let nats = NatsServer::start();
    let a = Host::start(&nats.url(), short(), reruns()).await;
    let b = Host::start(&nats.url(), short(), reruns()).await;
    let (mut client, _) = Client::dial_in(&a.url, json!({"session_id": "s"})).await;
    client.send(&input("babble 20")).await;
    let mut ids = Vec::new();
    while ids.len() < 21 {
        ids.push(client.recv().await["id"].as_str().unwrap().to_owned());
    }
    let stored = Stored::open(&nats.url()).await;
    stored.has("s", &ids[20]).await;
    a.kill().await;

    let resume = json!({"session_id": "s", "last_msg_id": ids[5]});
    let (mut client, connected) = Client::dial_in(&b.url, resume).await;
    assert_eq!(connected["status"], "running");
    let mut received = Vec::new();
    while received.len() < 15 {
        received.push(client.recv().await["id"].as_str().unwrap().to_owned());
    }
    assert_eq!(received, ids[6..]);
    // The new run says it again, but the prompt.
    for number in 0..20 {
        let frame = client.recv_type("thinking").await;
        assert_eq!(frame["content"], number.to_string());
        assert!(!ids.contains(&frame["id"].as_str().unwrap().to_owned()));
    }
    client.send(&json!({"type": "INTERRUPT"})).await;
    client.output().await;
    stored.ended("s").await;
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn two_hosts_that_find_a_dead_owner_run_its_prompt_once() {
    let nats = NatsServer::start();
    let a = Host::start(&nats.url(), short(), reruns()).await;
    let b = Host::start(&nats.url(), short(), reruns()).await;
    let _c = Host::start(&nats.url(), short(), reruns()).await;
    let sessions: Vec<_> = (0..10).map(|number| format!("s{number}")).collect();
    for id in &sessions {
        begin(&a, id, &format!("stall twice-{id}")).await;
    }
    a.kill().await;
    let stored = Stored::open(&nats.url()).await;
    for id in &sessions {
        let record = stored.ended(id).await;
        assert_eq!(record.result, Some(format!("run 2 of twice-{id}").into()));
        let (_, connected) = come_back(&b, id).await;
        assert_eq!(messages(&connected).len(), 2);
    }
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn ownership_keys_of_a_dead_host_are_removed() {
    let nats = NatsServer::start();
    let [a, b] = Host::two(&nats.url(), short()).await;
    for id in ["one", "two"] {
        let (mut client, _) = Client::dial_in(&a.url, json!({"session_id": id})).await;
        client.ask("hello").await;
    }
    begin(&a, "cut", "wait for ever").await;
    let (_client, _) = Client::dial_in(&b.url, json!({"session_id": "mine"})).await;
    let stored = Stored::open(&nats.url()).await;
    assert_eq!(stored.owned().await, ["cut", "mine", "one", "two"]);
    a.kill().await;
    while stored.owned().await != ["mine"] {
        tokio::task::yield_now().await;
    }
    let (_, connected) = Client::dial_in(&b.url, json!({"session_id": "cut"})).await;
    assert_eq!(messages(&connected), ["wait for ever"]);
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn a_starting_host_finishes_runs_of_dead_hosts() {
    let nats = NatsServer::start();
    let a = Host::start(&nats.url(), short(), reruns()).await;
    begin(&a, "s", "stall late").await;
    a.kill().await;
    let _b = Host::start(&nats.url(), short(), reruns()).await;
    let stored = Stored::open(&nats.url()).await;
    assert_eq!(
        stored.ended("s").await.result.as_deref(),
        Some("run 2 of late")
    );
}
