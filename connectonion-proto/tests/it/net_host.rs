//! The remote agent and the host of this crate together, over real sockets and lines that are lost.

use std::time::Duration;

use connectonion_proto::client::ClientConfig;
use connectonion_proto::client::reconnect_policy;
use connectonion_proto::frame::{Approval, ApprovalNeeded, AskUser, PlanReview, Scope};
use connectonion_proto::net::{self, Client, Human, Run, RunEvent, Server, ServerOptions};
use connectonion_proto::trust::TrustLevel;
use rpc_core::Str;
use rpc_core::backoff::BackoffPolicy;
use tokio::time::timeout;

use crate::staff::{Scripted, client_key, host_key};

const MOMENT: Duration = Duration::from_millis(300);

/// A host with a scripted agent; its place.
async fn host() -> String {
    let options = ServerOptions::new(&host_key(), TrustLevel::Open);
    let host = Server::bind("127.0.0.1:0", Scripted, options)
        .await
        .unwrap();
    let url = host.url();
    tokio::spawn(host.run());
    url
}

fn options() -> ClientConfig {
    let mut policy = reconnect_policy();
    policy.backoff = BackoffPolicy::new(Duration::from_millis(10), 1.0);
    let mut options = ClientConfig {
        host: Some(*host_key().address()),
        ..ClientConfig::default()
    };
    options.link.reconnect = policy;
    options
}

async fn open(url: &str, options: ClientConfig) -> Client {
    let (agent, _, connection) = net::connect_lazy(url, client_key(), options).unwrap();
    tokio::spawn(connection.run());
    agent.ready().await.unwrap();
    agent
}

/// Drops the line, and waits until there is another.
async fn lose(agent: &Client) {
    let before = agent.ready().await.unwrap();
    agent.cut();
    while agent.ready().await.unwrap() == before {
        tokio::task::yield_now().await;
    }
}

async fn answer(run: &mut Run) -> String {
    let output = timeout(10 * MOMENT, run.complete(&Yes)).await;
    output.expect("an end").unwrap().result.to_string()
}

/// Says yes to everything.
struct Yes;

impl Human for Yes {
    async fn ask_user(&self, _: &AskUser) -> Str {
        "yes".into()
    }

    async fn approve(&self, _: &ApprovalNeeded) -> Approval {
        Approval::granted(Scope::Once)
    }

    async fn review_plan(&self, _: &PlanReview) -> Str {
        "good".into()
    }
}

#[tokio::test]
async fn a_question_survives_its_connection_and_program() {
    let url = host().await;
    let agent = open(&url, options()).await;
    let mut run = agent.chat("ask Which?").await;
    let ask = loop {
        if let Some(Ok(RunEvent::AskUser(ask))) = run.next().await {
            break ask;
        }
    };
    lose(&agent).await;
    ask.answer("a").await.unwrap();
    assert_eq!(answer(&mut run).await, "answer \"a\"");

    let mut run = agent.chat("ask Which?").await;
    while !matches!(run.next().await, Some(Ok(RunEvent::AskUser(_)))) {}
    let kept = agent.session();
    drop((agent, run));
    let (agent, _, connection) = net::connect_lazy(
        &url,
        client_key(),
        ClientConfig {
            resume: kept,
            ..options()
        },
    )
    .unwrap();
    let mut run = agent.attach();
    tokio::spawn(connection.run());
    assert_eq!(answer(&mut run).await, "answer \"yes\"");
}

#[tokio::test]
async fn two_devices_can_follow_one_run() {
    let url = host().await;
    let first = open(&url, options()).await;
    answer(&mut first.chat("hi").await).await;
    let second = open(
        &url,
        ClientConfig {
            resume: first.session(),
            ..options()
        },
    )
    .await;
    assert_eq!(second.session().session_id, first.session().session_id);
    let mut hears = second.attach();
    let mut run = first.chat("listen").await;
    assert!(matches!(run.next().await, Some(Ok(RunEvent::Step(_)))));
    second.interject("from the second").await.unwrap();
    assert_eq!(answer(&mut run).await, "heard from the second");
    assert_eq!(answer(&mut hears).await, "heard from the second");
}

#[tokio::test]
async fn a_host_is_found_by_its_address() {
    let url = host().await;
    let found = net::find(&url, Some(host_key().address())).await.unwrap();
    assert_eq!(found.url, url);
    let agent = open(
        &found.url,
        ClientConfig {
            host: Some(found.address),
            ..options()
        },
    )
    .await;
    assert_eq!(answer(&mut agent.chat("hi").await).await, "echo: hi");
    let stranger = client_key();
    let other = net::find(&url, Some(stranger.address())).await;
    assert!(matches!(other, Err(net::FindError::Another { .. })));
}
