//! The permissions that a node needs on NATS, and what it hears without them.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use rpc_core::cluster::{Claims, LeaseConfig, NodeLease};
use rpc_core::net::nats::{self, NatsConfig};
use rpc_core::store::{Bucket, BucketConfig, Expect, LogConfig, Store, StoreError};
use switchboard_testing::nats::NatsServer;

/// What [`NatsConfig`] says.
const PUBLISH: [&str; 3] = ["p.>", "$JS.API.>", "$JS.FC.>"];

fn server(publish: &[&str], subscribe: &[&str]) -> NatsServer {
    let user = format!(
        "user: ann, password: x, permissions: {{ publish: {publish:?}, subscribe: {subscribe:?} }}"
    );
    NatsServer::start_with(&format!("authorization {{ users: [ {{ {user} }} ] }}"), &[])
}

async fn connect(server: &NatsServer) -> Result<Arc<dyn Store>, StoreError> {
    let mut config = NatsConfig::new(&server.url()).with_user("ann", "x");
    config.prefix = "p".to_owned();
    config.timeout = Duration::from_secs(3);
    nats::connect(config).await
}

/// Does all that a node does.
async fn live(server: &NatsServer) -> Result<(), StoreError> {
    let store = &connect(server).await?;
    let (lease, renewal) = NodeLease::open(store, LeaseConfig::default()).await?;
    let (denials, mut denied) = tokio::sync::mpsc::unbounded_channel();
    let renewing = tokio::spawn(renewal.run(move |error| denials.send(error).unwrap()));
    tokio::select! {
        acquired = lease.acquired() => acquired.unwrap(),
        Some(error) = denied.recv() => return Err(error),
    }
    let claims = Claims::open(store, "names", &lease).await?;
    let owned = claims.claim("name").await.unwrap();
    drop(owned);
    let bucket = Bucket::open(store, "test", BucketConfig::default()).await?;
    let first = bucket.create("first", Bytes::from_static(b"1")).await?;
    let second = bucket
        .update("first", Bytes::from_static(b"2"), first)
        .await?;
    assert_eq!(bucket.get("first").await?.unwrap().revision, second);
    bucket.remove("first", second).await?;
    bucket.put("gone", Bytes::from_static(b"1")).await?;
    bucket.delete("gone", None).await?;
    assert_eq!(bucket.keys("*").await?.len(), 1);
    // Enough for the server to ask whether they are read.
    let value = Bytes::from(vec![b'x'; 100_000]);
    for number in 0..100 {
        bucket.put(&format!("k{number}"), value.clone()).await?;
    }
    assert_eq!(bucket.entries(">").await?.len(), 100);
    let config = LogConfig {
        feed: Some("feed.*".to_owned()),
        ..LogConfig::new("log.*")
    };
    let log = store.log("log", config).await?;
    let mut feed = store.subscribe("feed.*").await?;
    log.append("log.a", Bytes::new(), Expect::default()).await?;
    assert_eq!(log.read("log.*", 0, 9).await?.len(), 1);
    feed.next().await.unwrap();
    lease.release();
    renewing.await.unwrap();
    Ok(())
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn the_documented_permissions_are_enough() {
    let server = server(&PUBLISH, &["p.>"]);
    live(&server).await.unwrap();
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn a_denied_operation_fails_with_the_servers_message() {
    for without in ["$JS.API.>", "p.>"] {
        let left: Vec<_> = PUBLISH.into_iter().filter(|it| *it != without).collect();
        let server = server(&left, &["p.>"]);
        let error = live(&server).await.unwrap_err();
        let StoreError::Denied { message } = &error else {
            panic!("{without}: {error:?}");
        };
        let subject = format!("Publish to \"{}", without.trim_end_matches('>'));
        assert!(message.contains(&subject), "{message}");
        assert!(!error.is_retryable());
    }
    let server = server(&PUBLISH, &["other.>"]);
    let error = live(&server).await.unwrap_err();
    assert!(matches!(error, StoreError::Denied { .. }), "{error:?}");
    assert!(error.to_string().contains("Subscription to"), "{error}");
}
