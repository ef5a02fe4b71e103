//! The remote agent before a gate that wants an invite code: one connection over a line in memory.

use std::time::Duration;

use connectonion_proto::client::ClientConfig;
use connectonion_proto::client::ClientEvent;
use rpc_core::{CallError, Refused};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::net_client::{next, open, options};
use crate::scripted::{Host, connected, error, output, signed_by, user_input};

fn gate() -> Value {
    json!({"type": "ONBOARD_REQUIRED", "identity": "0x1", "methods": ["invite_code"]})
}

fn success() -> Value {
    json!({"type": "ONBOARD_SUCCESS", "identity": "0x1", "level": "contact", "message": "ok"})
}

#[tokio::test(start_paused = true)]
async fn a_stranger_may_retry_invite_codes() {
    let (agent, mut events, mut listener) = open(options());
    let (mut host, _) = Host::answered(&mut listener, &gate()).await;
    assert!(matches!(
        next(&mut events).await,
        ClientEvent::OnboardRequired(_)
    ));
    for (code, answer) in [
        ("wrong", error("Invalid invite code")),
        ("right", success()),
    ] {
        let offer = agent.onboard(code);
        let recv = async {
            let submit = host.recv_type("ONBOARD_SUBMIT").await;
            assert_eq!(submit["payload"]["invite_code"], code);
            assert_eq!(signed_by(&submit), agent.address().to_string());
            host.send(&answer).await;
        };
        let (offered, ()) = tokio::join!(offer, recv);
        assert_eq!(offered.is_ok(), code == "right", "{offered:?}");
    }
    // The host has the CONNECT: it gets no other.
    let more = timeout(Duration::from_secs(2), host.recv()).await;
    assert!(more.is_err(), "{more:?}");
    host.send(&connected("new")).await;
    assert_eq!(agent.ready().await, Ok(1));
}

#[tokio::test(start_paused = true)]
async fn a_configured_invite_code_is_offered_once() {
    let (agent, mut events, mut listener) = open(ClientConfig {
        invite_code: Some("secret".into()),
        ..options()
    });
    let (mut host, _) = Host::answered(&mut listener, &gate()).await;
    let submit = host.recv_type("ONBOARD_SUBMIT").await;
    assert_eq!(submit["payload"]["invite_code"], "secret");
    host.send(&error("Invalid invite code")).await;
    assert!(matches!(
        next(&mut events).await,
        ClientEvent::OnboardRequired(_)
    ));
    assert!(matches!(next(&mut events).await, ClientEvent::Complaint(_)));
    let offer = agent.onboard_by_payment(10.5);
    let recv = async {
        let submit = host.recv_type("ONBOARD_SUBMIT").await;
        assert_eq!(submit["payload"]["payment"], 10.5);
        host.send_all(&[success(), connected("new")]).await;
    };
    let (paid, ()) = tokio::join!(offer, recv);
    assert!(paid.is_ok());
    agent.ready().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_old_host_gets_a_freshly_signed_connect_after_onboarding() {
    let (agent, _events, mut listener) = open(ClientConfig {
        invite_code: Some("secret".into()),
        ..options()
    });
    let (mut host, first) = Host::answered(&mut listener, &gate()).await;
    host.recv_type("ONBOARD_SUBMIT").await;
    host.send(&success()).await;
    let second = host.recv_type("CONNECT").await;
    assert_eq!(signed_by(&second), agent.address().to_string());
    assert_ne!(first["signature"], second["signature"]);
    host.send(&connected("new")).await;
    agent.ready().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_strangers_prompt_is_sent_once_after_onboarding() {
    let (agent, _events, mut listener) = open(options());
    let (mut host, _) = Host::answered(&mut listener, &gate()).await;
    let early = agent.chat("hello").await.finish().await;
    assert!(
        matches!(early, Err(CallError::Refused(Refused::NotReady))),
        "{early:?}"
    );
    let ask = async {
        agent.onboard("right").await.unwrap();
        agent.ready().await.unwrap();
        agent.chat("hello").await.finish().await
    };
    let let_in = async {
        host.recv_type("ONBOARD_SUBMIT").await;
        host.send_all(&[success(), connected("new")]).await;
        let input = host.recv_type("INPUT").await;
        assert_eq!(input["prompt"], "hello");
        host.send_all(&[user_input("hello", "u"), output("hi")])
            .await;
    };
    let (answer, ()) = tokio::join!(ask, let_in);
    assert_eq!(answer.unwrap().result, "hi");
    let more = timeout(Duration::from_secs(59), host.recv()).await;
    assert!(more.is_err(), "{more:?}");
}
