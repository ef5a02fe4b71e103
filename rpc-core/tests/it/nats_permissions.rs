//! The permissions that a node needs on NATS, and what it hears without them.

use std::time::Duration;

use bytes::Bytes;
use rpc_core::cluster::{ClaimConfig, LeaseConfig};
use rpc_core::net::nats::{BucketConfig, Expect, Nats, NatsConfig, NatsError};
use switchboard_testing::nats::NatsServer;

/// What [`NatsConfig`] says of a node with these two buckets.
const PUBLISH: [&str; 6] = [
    "p.>",
    "$JS.API.>",
    "$JS.FC.>",
    "$KV.p_nodes.>",
    "$KV.p_names.>",
    "$KV.p_test.>",
];

fn server(publish: &[&str], subscribe: &[&str]) -> NatsServer {
    let user = format!(
        "user: ann, password: x, permissions: {{ publish: {publish:?}, subscribe: {subscribe:?} }}"
    );
    NatsServer::start_with(&format!("authorization {{ users: [ {{ {user} }} ] }}"), &[])
}

async fn connect(server: &NatsServer) -> Nats {
    let config = NatsConfig::new(&server.url())
        .with_user("ann", "x")
        .with_prefix("p")
        .with_timeout(Duration::from_secs(3));
    Nats::connect(config).await.unwrap()
}

/// Does all that a node does.
async fn live(nats: &Nats) -> Result<(), NatsError> {
    nats.check().await?;
    let (lease, renewal) = nats.lease(LeaseConfig::default()).await?;
    let renewing = tokio::spawn(renewal.run());
    tokio::select! {
        acquired = lease.acquired() => acquired.unwrap(),
        error = lease.denied() => return Err(error),
    }
    let claims = nats.claims("names", &lease, ClaimConfig::default()).await?;
    let owned = claims.claim("name").await.unwrap();
    drop(owned);
    let bucket = nats.bucket("test", BucketConfig::default()).await?;
    let first = bucket.create("first", Bytes::from_static(b"1")).await?;
    let second = bucket
        .update("first", Bytes::from_static(b"2"), first)
        .await?;
    assert_eq!(bucket.get("first").await?.unwrap().revision, second);
    bucket.remove("first", second).await?;
    bucket.put("gone", Bytes::new()).await?;
    bucket.delete("gone", None).await?;
    assert_eq!(bucket.keys("*").await?.len(), 1);
    // Enough for the server to ask whether they are read.
    let value = Bytes::from(vec![b'x'; 100_000]);
    for number in 0..100 {
        bucket.put(&format!("k{number}"), value.clone()).await?;
    }
    assert_eq!(bucket.entries(">").await?.len(), 100);
    let config = async_nats::jetstream::stream::Config {
        subjects: vec![nats.subject(&["log", ">"])],
        ..Default::default()
    };
    nats.stream("log", config).await?;
    let subject = nats.subject(&["log", "a"]);
    nats.publish(subject, Bytes::new(), Expect::default())
        .await?;
    lease.release();
    renewing.await.unwrap();
    Ok(())
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn the_documented_permissions_are_enough() {
    let server = server(&PUBLISH, &["p.>"]);
    live(&connect(&server).await).await.unwrap();
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn what_is_denied_is_said_at_once_with_the_words_of_the_server() {
    for without in ["$JS.API.>", "$KV.p_nodes.>", "$KV.p_test.>", "p.>"] {
        let left: Vec<_> = PUBLISH.into_iter().filter(|it| *it != without).collect();
        let server = server(&left, &["p.>"]);
        let error = live(&connect(&server).await).await.unwrap_err();
        let NatsError::Denied { message } = &error else {
            panic!("{without}: {error:?}");
        };
        let subject = format!("Publish to \"{}", without.trim_end_matches('>'));
        assert!(message.contains(&subject), "{message}");
        assert!(!error.is_retryable());
    }
    let server = server(&PUBLISH, &["other.>"]);
    let error = live(&connect(&server).await).await.unwrap_err();
    assert!(matches!(error, NatsError::Denied { .. }), "{error:?}");
    assert!(error.to_string().contains("Subscription to"), "{error}");
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn a_wildcard_inside_a_token_permits_nothing() {
    let wrong = ["p.>", "$JS.API.>", "$JS.FC.>", "$KV.p_*.>"];
    let server = server(&wrong, &["p.>"]);
    let error = live(&connect(&server).await).await.unwrap_err();
    assert!(matches!(error, NatsError::Denied { .. }), "{error:?}");
}
