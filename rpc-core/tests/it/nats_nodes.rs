//! [`NodeLease`] and [`Claims`] against a server of the test's own.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rpc_core::cluster::{
    ClaimError, Claimed, Claims, LeaseConfig, LeaseLost, NodeLease, Ownership, Renewal,
};
use rpc_core::net::nats::{self, NatsConfig};
use rpc_core::store::{Bucket, BucketConfig, Expect, LogConfig, Store, StoreError};
use switchboard_testing::nats::NatsServer;

/// Short enough to wait for its end, long enough for a busy machine.
const LEASE: Duration = Duration::from_secs(2);

struct Node {
    store: Arc<dyn Store>,
    lease: NodeLease,
    claims: Claims,
}

async fn connect(server: &NatsServer) -> Arc<dyn Store> {
    nats::connect(NatsConfig::new(&server.url())).await.unwrap()
}

fn brief() -> LeaseConfig {
    LeaseConfig {
        lease: LEASE,
        margin: LEASE / 10,
        ..LeaseConfig::default()
    }
}

/// A node whose lease is acquired as soon as someone polls the renewal.
async fn node(server: &NatsServer) -> (Node, Renewal) {
    node_on(connect(server).await, brief()).await
}

async fn node_on(store: Arc<dyn Store>, config: LeaseConfig) -> (Node, Renewal) {
    let (lease, renewal) = NodeLease::open(&store, config).await.unwrap();
    let claims = Claims::open(&store, "names", &lease).await;
    let node = Node {
        claims: claims.unwrap(),
        lease,
        store,
    };
    (node, renewal)
}

/// A node that lives on in a task.
async fn living(server: &NatsServer) -> Node {
    let (node, renewal) = node(server).await;
    tokio::spawn(renewal.run(drop));
    node.lease.acquired().await.unwrap();
    node
}

async fn owned(node: &Node, name: &str) -> Ownership {
    match node.claims.claim(name).await.unwrap() {
        Claimed::Owned(ownership) => ownership,
        Claimed::Held { node } => panic!("{name} is held by {node}"),
    }
}

/// Claims a name until it is this node's.
async fn taken_over(node: &Node, name: &str) -> Ownership {
    loop {
        if let Claimed::Owned(ownership) = node.claims.claim(name).await.unwrap() {
            return ownership;
        }
    }
}

/// Waits for the next renewal of a node's lease.
async fn renewed(node: &Node) {
    // A server that restarts does not answer at once.
    let nodes = loop {
        let age = BucketConfig {
            max_age: Some(LEASE),
            ..BucketConfig::default()
        };
        if let Ok(nodes) = Bucket::open(&node.store, "nodes", age).await {
            break nodes;
        }
    };
    let revision = async || {
        nodes
            .get(node.lease.node())
            .await
            .ok()
            .flatten()
            .map(|it| it.revision)
    };
    let before = revision().await;
    while revision().await.is_none_or(|now| Some(now) == before) {
        assert!(node.lease.is_valid());
        tokio::task::yield_now().await;
    }
}

/// Writes to the log of a name behind its last record.
async fn write(node: &Node, text: &'static str, last: u64) -> Result<u64, StoreError> {
    let log = node.store.log("log", LogConfig::new("log.>")).await?;
    let expect = Expect {
        id: None,
        last: Some(last),
    };
    let stored = log.append("log.name", Bytes::from(text), expect).await?;
    Ok(stored.sequence)
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn a_claimed_name_belongs_to_its_node_while_it_lives() {
    let server = NatsServer::start();
    let (one, other) = (living(&server).await, living(&server).await);
    let ownership = owned(&one, "a.b *>").await;
    assert_eq!(ownership.taken_from(), None);
    for _ in 0..4 {
        renewed(&one).await;
        match other.claims.claim("a.b *>").await.unwrap() {
            Claimed::Held { node } => assert_eq!(&node, one.lease.node()),
            owned @ Claimed::Owned(_) => panic!("{owned:?}"),
        }
    }
    assert!(ownership.is_valid());
    let holder = other.claims.holder("a.b *>").await.unwrap();
    assert_eq!(holder.as_ref(), Some(one.lease.node()));
    assert_eq!(other.lease.nodes().await.unwrap().len(), 2);

    ownership.release().await;
    assert_eq!(other.claims.holder("a.b *>").await.unwrap(), None);
    owned(&other, "a.b *>").await;
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn a_paused_owner_is_replaced_and_its_writes_are_refused() {
    let server = NatsServer::start();
    let (one, renewal) = node(&server).await;
    // The renewal runs until the name is claimed; then the process stands still.
    let mut renewal = Box::pin(renewal.run(drop));
    let first = tokio::select! {
        _ = &mut renewal => panic!("lost"),
        first = async {
            one.lease.acquired().await.unwrap();
            owned(&one, "name").await
        } => first,
    };
    let last = write(&one, "one", 0).await.unwrap();

    let other = living(&server).await;
    let second = taken_over(&other, "name").await;
    assert_eq!(second.taken_from(), Some(one.lease.node()));
    assert!(second.fence() > first.fence());
    let last_of_second = write(&other, "takeover", last).await.unwrap();

    // It wakes up: it is told when it looks, and what it writes without looking is refused.
    assert!(!first.is_valid());
    assert_eq!(one.lease.lost().await, LeaseLost::Expired);
    assert_eq!(renewal.await, LeaseLost::Expired);
    assert_eq!(write(&one, "late", last).await, Err(StoreError::Conflict));
    let refused = one.claims.claim("name").await.unwrap_err();
    assert_eq!(refused, ClaimError::NotAlive);
    write(&other, "more", last_of_second).await.unwrap();
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn exactly_one_node_takes_over() {
    let server = NatsServer::start();
    let (dead, renewal) = node(&server).await;
    let renewal = tokio::spawn(renewal.run(drop));
    dead.lease.acquired().await.unwrap();
    owned(&dead, "name").await;
    renewal.abort();
    let nodes = [
        living(&server).await,
        living(&server).await,
        living(&server).await,
    ];
    let claims = nodes.iter().map(async |node| {
        loop {
            match node.claims.claim("name").await.unwrap() {
                Claimed::Owned(ownership) => return (true, ownership.fence()),
                Claimed::Held { node } if node != *dead.lease.node() => return (false, 0),
                Claimed::Held { .. } => {}
            }
        }
    });
    let outcomes = futures_util::future::join_all(claims).await;
    assert_eq!(
        outcomes.iter().filter(|(owned, _)| *owned).count(),
        1,
        "{outcomes:?}"
    );
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn a_released_lease_frees_its_names() {
    let server = NatsServer::start();
    let store = connect(&server).await;
    // No one waits for this to expire.
    let (first, renewal) = node_on(Arc::clone(&store), LeaseConfig::default()).await;
    let renewal = tokio::spawn(renewal.run(drop));
    first.lease.acquired().await.unwrap();
    owned(&first, "name").await;
    first.lease.release();
    assert!(!first.lease.is_valid());
    assert_eq!(renewal.await.unwrap(), LeaseLost::Released);

    let (second, renewal) = node_on(store, LeaseConfig::default()).await;
    assert_ne!(first.lease.node(), second.lease.node());
    tokio::spawn(renewal.run(drop));
    second.lease.acquired().await.unwrap();
    let owned = owned(&second, "name").await;
    assert_eq!(owned.taken_from(), Some(first.lease.node()));
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn names_of_dead_nodes_are_found_until_claimed() {
    let server = NatsServer::start();
    let one = living(&server).await;
    let (gone, renewal) = node(&server).await;
    let renewal = tokio::spawn(renewal.run(drop));
    gone.lease.acquired().await.unwrap();
    owned(&one, "mine").await;
    for name in ["a", "b.*"] {
        owned(&gone, name).await;
    }
    assert_eq!(one.claims.orphans().await.unwrap(), [""; 0]);
    gone.lease.release();
    renewal.await.unwrap();
    let mut orphans = one.claims.orphans().await.unwrap();
    orphans.sort();
    assert_eq!(orphans, ["a", "b.*"]);
    owned(&one, "a").await.release().await;
    owned(&one, "b.*").await;
    assert_eq!(one.claims.orphans().await.unwrap(), [""; 0]);
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn a_node_without_nats_loses_its_lease_in_time() {
    let mut server = NatsServer::start();
    let node = living(&server).await;
    server.kill();
    assert_eq!(node.lease.lost().await, LeaseLost::Expired);
    assert!(!node.lease.is_valid());
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn a_lease_survives_a_shorter_restart_of_nats() {
    let mut server = NatsServer::start();
    let node = living(&server).await;
    server.restart();
    renewed(&node).await;
    assert!(node.lease.is_valid());
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn an_overlong_name_is_refused() {
    let server = NatsServer::start();
    let node = living(&server).await;
    let name = ".".repeat(400);
    let refused = node.claims.claim(&name).await.unwrap_err();
    assert!(matches!(refused, ClaimError::Name(_)));
    assert_eq!(node.claims.holder(&name).await, Ok(None));
}
