//! Clients at any host of a cluster.

use connectonion_proto::auth::Draft;
use connectonion_proto::limits::MAX_USED_SIGNATURES;
use connectonion_proto::net::{RuntimeOptions, ServerOptions};
use connectonion_proto::session::HubConfig;
use connectonion_proto::trust::{AccessControl, TrustLevel};
use serde_json::json;
use switchboard_testing::nats::NatsServer;

use super::hosts::{Host, long, messages};
use crate::staff::{Client, client_key, connect, host_key, input, now, signed, types};

#[tokio::test]
#[ignore = "needs nats-server"]
async fn a_session_is_served_through_any_host() {
    let nats = NatsServer::start();
    let [a, b] = Host::two(&nats.url(), long()).await;
    // A name that would reach beyond its place in a subject.
    let session = json!({"session_id": "x.*.> y"});
    let (mut at_owner, connected) = Client::dial_in(&a.url, session.clone()).await;
    assert_eq!(connected["status"], "new");
    assert_eq!(at_owner.ask("hello").await, "echo: hello");
    let (mut elsewhere, connected) = Client::dial_in(&b.url, session.clone()).await;
    assert_eq!(connected["status"], "connected");
    assert_eq!(messages(&connected), ["hello", "echo: hello"]);
    assert_eq!((a.runtime.sessions(), b.runtime.sessions()), (1, 0));

    elsewhere.send(&input("think hard")).await;
    for client in [&mut at_owner, &mut elsewhere] {
        let frames = client.recv_until("OUTPUT").await;
        assert_eq!(types(&frames), ["user_input", "thinking", "OUTPUT"]);
    }
    // A conversation that is larger than a message of the store.
    let long = format!("echo {}", "x".repeat(350_000));
    assert!(elsewhere.ask(&long).await.len() > 350_000);
    let output = at_owner.output().await;
    let (mut again, connected) = Client::dial_in(&b.url, session).await;
    assert_eq!(connected["session"], output["session"]);
    assert_eq!(again.ask("count").await, "7 messages");
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn the_status_of_a_session_is_known_at_every_host() {
    let nats = NatsServer::start();
    let [a, b] = Host::two(&nats.url(), long()).await;
    let mut client = Client::dial(&a.url).await;
    client
        .send(&json!({"type": "CONNECT", "session_id": "open"}))
        .await;
    client.recv_type("CONNECTED").await;
    client.send(&input("wait for ever")).await;
    client.recv_type("user_input").await;
    for host in [&a, &b] {
        assert_eq!(host.get("/sessions/open").await["status"], "running");
        assert_eq!(host.get("/sessions/none").await["status"], "not_found");
        let mut asking = Client::dial(&host.url).await;
        for (session, status) in [("open", "running"), ("none", "not_found")] {
            let query = json!({"type": "SESSION_STATUS", "session": {"session_id": session}});
            asking.send(&query).await;
            assert_eq!(asking.recv_type("SESSION_STATUS").await["status"], status);
        }
    }
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn a_session_is_deleted_by_the_host_that_serves_it_for_all_hosts() {
    let nats = NatsServer::start();
    let [a, b] = Host::two(&nats.url(), long()).await;
    let connect = json!({"type": "CONNECT", "session_id": "open"});
    let mut client = Client::dial(&a.url).await;
    client.send(&connect).await;
    client.recv_type("CONNECTED").await;
    assert_eq!(client.ask("hello").await, "echo: hello");
    let (_signed, _) = Client::dial_in(&a.url, json!({"session_id": "signed"})).await;
    assert_eq!(b.delete("signed").await, 404, "as if there were none");
    assert_eq!(b.delete("open").await, 409);
    assert_eq!(a.delete("open").await, 204);
    assert_eq!(client.close_frame().await.code, 1000);
    let mut client = Client::dial(&b.url).await;
    client.send(&connect).await;
    let connected = client.recv_type("CONNECTED").await;
    assert_eq!(
        (&connected["status"], &connected["session"]),
        (&json!("new"), &json!(null))
    );
    assert_eq!(client.ask("count").await, "1 messages");
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn a_signature_that_was_used_at_one_host_is_refused_at_another() {
    let nats = NatsServer::start();
    let start = async || {
        let access = AccessControl::new(*host_key().address(), TrustLevel::Open);
        let access = access.with_used_signatures(MAX_USED_SIGNATURES);
        let runtime = RuntimeOptions::with_access(access);
        let server = ServerOptions::with_runtime(runtime);
        Host::start_with(&nats.url(), long(), HubConfig::default(), server).await
    };
    let (a, b) = (start().await, start().await);
    let connect = connect(&client_key(), json!({}));
    let mut client = Client::dial(&a.url).await;
    client.send(&connect).await;
    client.recv_type("CONNECTED").await;
    let mut thief = Client::dial(&b.url).await;
    thief.send(&connect).await;
    let error = thief.recv_type("ERROR").await;
    assert_eq!(
        error["message"],
        "unauthorized: this CONNECT was already used"
    );
    // A command of the host's own key, too.
    let draft = Draft::new(now()).with_nonce(1);
    let draft = draft.with("client_id", client_key().address().to_string());
    let command = signed("ADMIN_GET_LEVEL", &host_key(), &draft, json!({}));
    for (host, answer) in [(&a, "ADMIN_RESULT"), (&b, "ERROR")] {
        let mut client = Client::dial(&host.url).await;
        let draft = Draft::new(now());
        client
            .send(&signed("CONNECT", &host_key(), &draft, json!({})))
            .await;
        client.recv_type("CONNECTED").await;
        client.send(&command).await;
        client.recv_type(answer).await;
    }
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn a_host_that_shuts_down_gives_its_sessions_to_others_at_once() {
    let nats = NatsServer::start();
    let [a, b] = Host::two(&nats.url(), long()).await;
    let session = json!({"session_id": "s"});
    let (mut client, _) = Client::dial_in(&a.url, session.clone()).await;
    client.ask("hello").await;
    let (mut through, _) = Client::dial_in(&b.url, session.clone()).await;
    a.handle.drain(crate::staff::SECOND).await;
    a.run.await.unwrap();
    assert_eq!(through.close_frame().await.code, 1012);
    let (mut client, connected) = Client::dial_in(&b.url, session).await;
    assert_eq!(messages(&connected), ["hello", "echo: hello"]);
    assert_eq!(client.ask("count").await, "3 messages");
    assert_eq!(b.runtime.sessions(), 1);
}
