//! What operators see of a gateway in a cluster: its health, and why it does not start.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use exoclaw_proto::auth::Auth;
use http::{Method, Request, StatusCode};
use rpc_core::cluster::StoreError as Failure;
use rpc_core::net::nats::{Nats, NatsConfig};
use switchboard_testing::nats::NatsServer;

use super::cluster::Node;
use super::harness::*;
use crate::gateway::cluster::{Cluster, ClusterConfig};
use crate::gateway::engine::Records;
use crate::gateway::site::Site;
use crate::gateway::store::StoreError;

#[tokio::test]
#[ignore = "needs nats-server"]
async fn a_gateway_that_counts_as_gone_is_not_ready_until_it_is_back() {
    let server = NatsServer::start();
    let Node { engine, .. } = Node::start(&server, []).await;
    let engine = Arc::new(engine);
    let site = Site::new(Arc::clone(&engine), Auth::open());
    let status = async |method, path| {
        let request = Request::builder().method(method).uri(path);
        let request = request.body(Bytes::new()).unwrap();
        site.respond(request).await.status()
    };
    assert_eq!(status(Method::GET, "/ready").await, StatusCode::OK);
    server.pause();
    let Records::Shared(cluster) = &*engine.store else {
        panic!("it is alone");
    };
    cluster.lost().await;
    for method in [Method::GET, Method::HEAD] {
        let ready = status(method, "/ready").await;
        assert_eq!(ready, StatusCode::SERVICE_UNAVAILABLE);
    }
    // It comes back by itself: nobody has to start it again.
    assert_eq!(status(Method::GET, "/health").await, StatusCode::OK);
    assert_eq!(status(Method::GET, "/").await, StatusCode::OK);
    server.resume();
    while !cluster.is_joined() {
        tokio::task::yield_now().await;
    }
    assert_eq!(status(Method::GET, "/ready").await, StatusCode::OK);
}

/// A gateway that may publish to these subjects.
async fn start(publish: &[&str]) -> Result<Arc<Cluster>, StoreError> {
    let permissions = format!("permissions: {{ publish: {publish:?}, subscribe: [\"p.>\"] }}");
    let user = format!("{{ user: ann, password: x, {permissions} }}");
    let server = NatsServer::start_with(&format!("authorization {{ users: [ {user} ] }}"), &[]);
    let mut config = NatsConfig::new(&format!("nats://ann:x@{}", server.address()));
    config.prefix = "p".to_owned();
    let nats = Arc::new(Nats::connect(config).await.unwrap());
    let config = ClusterConfig::default().with_patience(Duration::from_secs(60));
    let cluster = Cluster::start(nats, config, || NOON).await?;
    let mut turn = cluster.enter("s", NOON).await?;
    let commit = crate::gateway::store::Commit::new("s", NOON)
        .with_turn(crate::gateway::memory::Turn::new("q", "a", NOON));
    cluster.commit(commit, Some(&mut turn), None).await?;
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
    let StoreError::Cluster(Failure::Denied { message }) = error else {
        panic!("{error:?}");
    };
    assert!(message.contains("p.nodes."), "{message}");
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn a_nats_that_comes_back_empty_is_filled_anew() {
    let mut server = NatsServer::start();
    let node = Node::start(&server, [answer("one"), answer("two")]).await;
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
