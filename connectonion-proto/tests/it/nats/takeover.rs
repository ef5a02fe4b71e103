//! Owners of sessions that die, or seem to.

use connectonion_proto::session::HubConfig;
use rpc_core::store::{Bucket, BucketConfig, Expect};
use serde_json::json;
use switchboard_testing::nats::NatsServer;

use super::hosts::{Host, Stored, long, messages, short, store};
use crate::staff::{Client, input, types};

#[tokio::test]
#[ignore = "needs nats-server"]
async fn acknowledged_prompts_survive_their_owner() {
    let nats = NatsServer::start();
    let [a, b] = Host::two(&nats.url(), short()).await;
    let session = json!({"session_id": "busy"});
    let (mut client, _) = Client::dial_in(&a.url, session.clone()).await;
    client.ask("earlier").await;
    client.send(&input("wait for ever")).await;
    client.recv_type("user_input").await;
    for prompt in ["first", "second"] {
        client.send(&input(prompt)).await;
        client.recv_type("RUNTIME_INPUT_ACK").await;
    }
    let (mut through, _) = Client::dial_in(&b.url, session.clone()).await;
    a.kill().await;
    // The client waits for the end of the lease.
    let (mut client, connected) = Client::dial_in(&b.url, session).await;
    assert_eq!(connected["status"], "new");
    assert_eq!(
        messages(&connected),
        [
            "earlier",
            "echo: earlier",
            "wait for ever",
            "first",
            "second"
        ]
    );
    assert_eq!(client.ask("count").await, "6 messages");
    assert_eq!(b.runtime.sessions(), 1);
    assert_eq!(through.close_frame().await.code, 1012);
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn an_interrupted_run_restarts_at_another_host() {
    let nats = NatsServer::start();
    let hub = HubConfig {
        max_reruns: 1,
        ..HubConfig::default()
    };
    let a = Host::start(&nats.url(), short(), hub.clone()).await;
    let b = Host::start(&nats.url(), short(), hub.clone()).await;
    let session = json!({"session_id": "s"});
    let (mut client, _) = Client::dial_in(&a.url, session.clone()).await;
    client.ask("earlier").await;
    client.send(&input("ask who?")).await;
    client.recv_until("ask_user").await;
    client.send(&input("and this")).await;
    client.recv_type("RUNTIME_INPUT_ACK").await;
    a.kill().await;

    let (mut client, connected) = Client::dial_in(&b.url, session.clone()).await;
    assert_eq!(connected["status"], "running");
    assert_eq!(
        messages(&connected),
        ["earlier", "echo: earlier", "ask who?"]
    );
    let frames = client.recv_until("ask_user").await;
    assert_eq!(types(&frames), ["user_input", "ask_user"]);
    let c = Host::start(&nats.url(), short(), hub).await;
    b.kill().await;

    // A prompt is not run for ever.
    let (mut client, connected) = Client::dial_in(&c.url, session).await;
    assert_eq!(connected["status"], "new");
    let all = ["earlier", "echo: earlier", "ask who?", "and this"];
    assert_eq!(messages(&connected), all);
    assert_eq!(client.ask("count").await, "5 messages");
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn a_restarted_run_answers_every_prompt_once() {
    let nats = NatsServer::start();
    let hub = HubConfig {
        max_reruns: 3,
        ..HubConfig::default()
    };
    let a = Host::start(&nats.url(), short(), hub.clone()).await;
    let b = Host::start(&nats.url(), short(), hub).await;
    let session = json!({"session_id": "s"});
    let (mut client, _) = Client::dial_in(&a.url, session.clone()).await;
    client.send(&input("listen")).await;
    client.recv_type("user_input").await;
    a.kill().await;
    let (mut client, _) = Client::dial_in(&b.url, session).await;
    client.recv_type("user_input").await;
    client.send(&input("hello")).await;
    let output = client.output().await;
    assert_eq!(output["result"], "heard hello");
    assert_eq!(messages(&output), ["listen", "hello", "heard hello"]);
    assert_eq!(output["session"]["turn"], 1);
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn an_owner_that_wakes_after_its_lease_is_fenced() {
    let nats = NatsServer::start();
    let [a, b] = Host::two(&nats.url(), long()).await;
    let session = json!({"session_id": "s"});
    let (mut at_a, _) = Client::dial_in(&a.url, session.clone()).await;
    at_a.send(&input("wait for ever")).await;
    at_a.recv_type("user_input").await;
    // To all others, the owner is dead. It does not know.
    let link = store(&nats.url()).await;
    let age = BucketConfig {
        max_age: Some(long().lease.lease),
        ..BucketConfig::default()
    };
    let nodes = Bucket::open(&link, "nodes", age).await.unwrap();
    let owners = Bucket::open(&link, "onion_owners", BucketConfig::default());
    let owner = owners.await.unwrap().get("s").await.unwrap().unwrap();
    let owner: serde_json::Value = serde_json::from_slice(&owner.value).unwrap();
    let node = owner["node"].as_str().unwrap();
    nodes.delete(node, None).await.unwrap();

    let (mut at_b, connected) = Client::dial_in(&b.url, session.clone()).await;
    assert_eq!(messages(&connected), ["wait for ever"]);
    assert_eq!(at_b.ask("count").await, "2 messages");
    assert!(a.cluster.is_joined());
    assert_eq!(a.runtime.running(), 1);
    at_a.send(&input("too late")).await;
    assert_eq!(at_a.close_frame().await.code, 1012);
    assert_eq!(a.runtime.running(), 0);
    assert_eq!(a.runtime.sessions(), 0);
    assert_eq!(at_b.ask("count").await, "4 messages");
    let (_, connected) = Client::dial_in(&a.url, session).await;
    assert!(!messages(&connected).contains(&"too late".to_owned()));
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn a_session_without_an_ownership_record_is_served() {
    let nats = NatsServer::start();
    let host = Host::start(&nats.url(), long(), HubConfig::default()).await;
    // The record of an owner whose claim is later than any that this host can have.
    let fence = u64::MAX / 2;
    let later = format!("{{\"v\":1,\"n\":1,\"whole\":true,\"fence\":{fence},\"bytes\":1}}\n");
    let stored = Stored::open(&nats.url()).await;
    let writing = stored
        .sessions
        .append("onion_log.s", later.into(), Expect::default());
    writing.await.unwrap();
    let session = json!({"session_id": "s"});
    let (mut client, _) = Client::dial_in(&host.url, session.clone()).await;
    client.ask("one").await;
    host.handle.drain(crate::staff::SECOND).await;
    host.run.await.unwrap();
    let next = Host::start(&nats.url(), long(), HubConfig::default()).await;
    let (mut client, _) = Client::dial_in(&next.url, session).await;
    assert_eq!(client.ask("count").await, "3 messages");
}
