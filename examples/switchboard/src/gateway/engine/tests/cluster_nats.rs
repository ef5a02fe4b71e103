//! Engines on a real NATS server: what it does that a store in memory does not.

use std::sync::Arc;
use std::time::Duration;

use exoclaw_proto::net::AppError;
use rpc_core::cluster::LeaseConfig;
use rpc_core::net::nats::{self, NatsConfig};
use rpc_core::store::{Expect, LogConfig, Store, StoreError as Failure};
use switchboard_testing::nats::NatsServer;

use super::cluster::{Node, UNAVAILABLE, at_gate, gated};
use super::harness::*;
use crate::gateway::engine::NOT_STORED;
use crate::gateway::memory::Turn;
use crate::gateway::store::{Commit, GatewayStore, GatewayStoreConfig, StoreError};

async fn nats(server: &NatsServer) -> Arc<dyn Store> {
    let mut config = NatsConfig::new(&server.url());
    config.timeout = Duration::from_millis(500);
    nats::connect(config).await.unwrap()
}

/// A gateway that may publish to these subjects.
async fn start(publish: &[&str]) -> Result<Arc<GatewayStore>, StoreError> {
    let permissions = format!("permissions: {{ publish: {publish:?}, subscribe: [\"p.>\"] }}");
    let user = format!("{{ user: ann, password: x, {permissions} }}");
    let server = NatsServer::start_with(&format!("authorization {{ users: [ {user} ] }}"), &[]);
    let mut config = NatsConfig::new(&format!("nats://ann:x@{}", server.address()));
    config.prefix = "p".to_owned();
    let nats = nats::connect(config).await.unwrap();
    let config = GatewayStoreConfig::default()
        .with_lease(LeaseConfig::default())
        .with_patience(Duration::from_secs(60));
    let cluster = GatewayStore::open(nats, config, || NOON).await?;
    let mut turn = cluster.enter("s", NOON).await?;
    let commit = Commit::new("s", NOON).with_turn(Turn::new("q", "a", NOON));
    cluster.commit(commit, Some(&mut turn)).await?;
    assert_eq!(cluster.recall("s", None, 9).await?.len(), 1);
    assert_eq!(cluster.session_count(0).await?, 1);
    cluster.usage(1).await?;
    cluster.used(Some("s")).await?;
    cluster.close().await;
    Ok(cluster)
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn a_gateway_needs_the_documented_permissions_and_names_the_one_that_is_missing() {
    start(&["p.>", "$JS.API.>", "$JS.FC.>"]).await.unwrap();
    let error = start(&["p.gateway_sessions.>", "$JS.API.>"])
        .await
        .unwrap_err();
    let StoreError::Store(Failure::Denied { message }) = error else {
        panic!("{error:?}");
    };
    assert!(message.contains("p.nodes."), "{message}");
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn turns_that_are_larger_than_a_message_are_kept_whole() {
    let server = NatsServer::start_with("max_payload: 65536", &[]);
    let long = "y".repeat(200_000);
    let scripts = [answer(&long), answer("short"), answer("more")];
    let one = Node::on(nats(&server).await, scripts).await;
    let two = Node::on(nats(&server).await, []).await;
    for question in ["1", "2", "3"] {
        one.chat(&from("ann", question)).await.unwrap();
    }
    let history = two.history("ann").await;
    assert_eq!(history.len(), 3);
    assert_eq!((&*history[0], &*history[1]), (&*long, "short"));
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn a_full_nats_shows_the_answer_and_says_that_it_is_not_stored() {
    let server = NatsServer::start_with("jetstream { max_file_store: 300KB }", &[]);
    let long = "y".repeat(100_000);
    let scripts = (0..9).map(|_| answer(&long));
    let node = Node::on(nats(&server).await, scripts).await;
    let mut answered = 0;
    let why = loop {
        match node.chat(&from("ann", "hi")).await {
            Ok(()) => answered += 1,
            Err(AppError::Refused(why) | AppError::Failed(why)) => break why,
            Err(other) => panic!("{other:?}"),
        }
        assert!(answered < 9, "there is no end to the room");
    };
    assert!(
        [NOT_STORED, UNAVAILABLE].contains(&why.message()),
        "{why:?}"
    );
    // The question was stored before its answer, and stands without it.
    let history = node.history("ann").await;
    let (whole, others) = history.split_at(answered);
    assert!(whole.iter().all(|answer| *answer == long));
    assert!(others.len() <= 1 && others.iter().all(|answer| *answer != long));
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn a_gateway_continues_when_a_full_nats_has_room_again() {
    let server = NatsServer::start_with("jetstream { max_file_store: 300KB }", &[]);
    let node = Node::on(
        nats(&server).await,
        [answer("one"), answer("lost"), answer("two")],
    )
    .await;
    node.chat(&from("ann", "1")).await.unwrap();
    let nats = nats(&server).await;
    let filler = nats.log("filler", LogConfig::new("filler")).await.unwrap();
    for size in [20_000, 10] {
        let mut is_full = false;
        while !is_full {
            let filling = filler.append("filler", vec![0; size].into(), Expect::default());
            is_full = filling.await.is_err();
        }
    }
    // Even its lease may be lost for lack of room.
    let full = node.chat(&from("ann", "2")).await;
    assert!(
        matches!(full, Err(AppError::Refused(_) | AppError::Failed(_))),
        "{full:?}"
    );
    filler.purge("filler", u64::MAX).await.unwrap();
    let mut outcome = node.chat(&from("ann", "3")).await;
    while outcome.is_err() {
        outcome = node.chat(&from("ann", "3")).await;
    }
    let history = node.history("ann").await;
    assert_eq!(history.len(), 2);
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn names_cannot_reach_beyond_their_place() {
    let server = NatsServer::start();
    let long = "x.".repeat(250);
    let names = ["a.b", "a", "*", ">", "a.*", "a b", "\r\n", "$KV", "", &long];
    let scripts = names
        .iter()
        .enumerate()
        .map(|(at, _)| answer(&at.to_string()));
    let node = Node::on(nats(&server).await, scripts).await;
    for name in names {
        node.chat(&from(name, "hi")).await.unwrap();
    }
    for (at, name) in names.iter().enumerate() {
        assert_eq!(node.history(name).await, [at.to_string()], "{name}");
    }
    let sessions = node.store().sessions(99).await.unwrap();
    assert_eq!(sessions.len(), names.len());
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn without_nats_chats_fail_clearly_and_nothing_is_half_written() {
    let mut server = NatsServer::start();
    let scripts = [answer("one"), gated("two"), answer("three")];
    let mut node = Node::on(nats(&server).await, scripts).await;
    node.chat(&from("ann", "1")).await.unwrap();
    // It comes back while an answer waits to be stored.
    let chat = from("ann", "2");
    let mut heard = Heard::default();
    let mut second = std::pin::pin!(node.engine.chat(&chat, &mut heard));
    at_gate(second.as_mut(), &mut node.heard).await;
    server.kill();
    node.model.open_gate();
    assert!(
        tokio::time::timeout(Duration::from_millis(300), &mut second)
            .await
            .is_err()
    );
    server.restart();
    second.await.unwrap();
    server.kill();
    assert_eq!(node.refused(&from("ann", "3")).await, UNAVAILABLE);
    server.restart();
    node.chat(&from("ann", "4")).await.unwrap();
    let other = Node::on(nats(&server).await, []).await;
    assert_eq!(other.history("ann").await, ["one", "two", "three"]);
    assert_eq!(other.daily().await, 45);
    assert_eq!(other.engine.usage(9).await.unwrap().len(), 3);
    node.engine.close().await;
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn an_emptied_nats_is_filled_again() {
    let mut server = NatsServer::start();
    let node = Node::on(nats(&server).await, [answer("one"), answer("two")]).await;
    node.chat(&from("ann", "1")).await.unwrap();
    server.restart_empty();
    let served = async {
        // Until the node has noticed.
        while node.chat(&from("ann", "2")).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    let served = tokio::time::timeout(Duration::from_secs(30), served);
    served.await.expect("it serves again");
    assert_eq!(node.history("ann").await, ["two"]);
    assert_eq!(node.engine.usage(9).await.unwrap().len(), 1);
    node.engine.close().await;
}
