//! NATS and [`Bucket`] against a server of the test's own.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use rpc_core::net::nats::{self, NatsConfig};
use rpc_core::net::tls::TlsConfig;
use rpc_core::store::{Bucket, BucketConfig, Expect, Log, LogConfig, Store, StoreError};
use switchboard_testing::nats::NatsServer;

fn config_of(server: &NatsServer) -> NatsConfig {
    let mut config = NatsConfig::new(&server.url());
    config.timeout = Duration::from_secs(2);
    config
}

async fn connect(server: &NatsServer) -> Arc<dyn Store> {
    nats::connect(config_of(server)).await.unwrap()
}

async fn bucket(store: &Arc<dyn Store>) -> Bucket {
    let opened = Bucket::open(store, "test", BucketConfig::default()).await;
    opened.unwrap()
}

async fn log(store: &Arc<dyn Store>) -> Arc<dyn Log> {
    store.log("log", LogConfig::new("log.>")).await.unwrap()
}

const fn bytes(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn lost_streams_are_created_again() {
    let mut server = NatsServer::start();
    let store = connect(&server).await;
    let (bucket, log) = (bucket(&store).await, log(&store).await);
    bucket.put("key", bytes("one")).await.unwrap();
    let created = log.state().await.unwrap().created;
    server.restart_empty();
    // A write finds that no one takes it, and is repeated; a read fails once.
    let stored = loop {
        match log.append("log.a", bytes("x"), Expect::default()).await {
            Err(StoreError::Unavailable { .. }) => {}
            stored => break stored.unwrap(),
        }
    };
    let state = log.state().await.unwrap();
    assert_eq!((state.records, state.created == created), (1, false));
    // Nothing is left of what has proved it.
    assert_eq!((state.first, state.subjects), (stored.sequence, 1));
    assert_eq!(bucket.get("key").await, Ok(None));

    delete_stream(&server, "switchboard_test_keys").await;
    let gone = bucket.get("key").await.unwrap_err();
    assert!(gone.is_retryable(), "{gone}");
    bucket.put("key", bytes("two")).await.unwrap();
    let entry = bucket.get("key").await.unwrap().unwrap();
    assert_eq!(entry.value, bytes("two"));
}

async fn delete_stream(server: &NatsServer, name: &str) {
    let client = async_nats::connect(server.url()).await.unwrap();
    let jetstream = async_nats::jetstream::new(client);
    jetstream.delete_stream(name).await.unwrap();
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn a_lagging_watch_survives_a_purge_of_another_subject() {
    let server = NatsServer::start();
    let log = log(&connect(&server).await).await;
    // More than the server sends before someone reads.
    let payload = Bytes::from(vec![b'x'; 50_000]);
    for number in 0..500 {
        let subject = format!("log.{number}");
        let appending = log.append(&subject, payload.clone(), Expect::default());
        appending.await.unwrap();
    }
    let watch = log.watch("log.>").await.unwrap();
    assert_eq!(log.purge("log.400", u64::MAX).await, Ok(1));
    let there = watch.take_while(|it| std::future::ready(it.as_ref().unwrap().is_some()));
    assert_eq!(there.count().await, 499);
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn a_reconnect_is_a_gap_and_ends_a_watch() {
    let mut server = NatsServer::start();
    let store = connect(&server).await;
    let mut gaps = store.gaps();
    let log = log(&store).await;
    let mut watch = log.watch("log.>").await.unwrap();
    assert_eq!(watch.next().await, Some(Ok(None)));
    assert!(!gaps.has_changed().unwrap());
    server.kill();
    while store.is_connected() {
        tokio::task::yield_now().await;
    }
    assert!(!store.try_publish("d.a", bytes("x")));
    server.restart();
    gaps.changed().await.unwrap();
    let ended = watch.next().await.unwrap();
    assert!(
        matches!(ended, Err(StoreError::Unavailable { .. })),
        "{ended:?}"
    );
    assert_eq!(watch.next().await, None);
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn a_restarted_server_is_reconnected_with_its_data() {
    let mut server = NatsServer::start();
    let bucket = bucket(&connect(&server).await).await;
    let revision = bucket.create("key", bytes("one")).await.unwrap();
    server.kill();
    let lost = bucket.get("key").await.unwrap_err();
    assert!(lost.is_retryable(), "{lost:?}");
    server.restart();
    // How long the client takes to see it is not ours.
    let entry = loop {
        match bucket.get("key").await {
            Ok(entry) => break entry.unwrap(),
            Err(error) => assert!(error.is_retryable(), "{error:?}"),
        }
    };
    assert_eq!(entry.revision, revision);
    let _ = bucket.update("key", bytes("two"), revision).await;
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn a_server_that_hangs_is_unavailable() {
    let server = NatsServer::start();
    let mut config = config_of(&server);
    config.timeout = Duration::from_millis(200);
    let store: Arc<dyn Store> = nats::connect(config).await.unwrap();
    let bucket = bucket(&store).await;
    server.pause();
    let error = bucket.put("key", bytes("x")).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
    server.resume();
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn a_server_that_accepts_too_short_messages_is_refused_with_its_limit() {
    let server = NatsServer::start_with("max_payload: 65535", &[]);
    let error = nats::connect(config_of(&server)).await.unwrap_err();
    assert!(matches!(error, StoreError::Config { .. }), "{error:?}");
    let text = error.to_string();
    assert!(
        text.contains("65535 bytes") && text.contains("max_payload"),
        "{text}"
    );
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn more_replicas_than_the_server_has_are_a_bad_configuration() {
    let server = NatsServer::start();
    let mut config = config_of(&server);
    config.replicas = 3;
    let nats = nats::connect(config).await.unwrap();
    let error = nats.log("log", LogConfig::new("log.>")).await.unwrap_err();
    assert!(matches!(error, StoreError::Config { .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("replicas > 1 not supported"), "{text}");
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn an_account_without_jetstream_is_reported() {
    let accounts = "accounts { A { jetstream: disabled, users: [ { user: ann, password: x } ] } }";
    let server = NatsServer::start_with(accounts, &[]);
    let error = nats::connect(config_of(&server).with_user("ann", "x"));
    let error = error.await.unwrap_err().to_string();
    assert!(error.contains("JetStream"), "{error}");
}

#[tokio::test]
async fn a_missing_server_and_a_bad_configuration_are_reported() {
    let mut nobody = NatsConfig::new("nats://127.0.0.1:1");
    nobody.timeout = Duration::from_millis(200);
    let error = nats::connect(nobody).await.unwrap_err();
    assert!(error.is_retryable(), "{error:?}");
    let mut dotted = NatsConfig::new("nats://127.0.0.1:1");
    dotted.prefix = "a.b".to_owned();
    for config in [
        dotted,
        NatsConfig::new(""),
        NatsConfig::new("nats://a:b:c:d"),
        NatsConfig::new("nats://127.0.0.1:1").with_nkey("SUsecret"),
        NatsConfig::new("http://SUsecret@127.0.0.1:1"),
    ] {
        let error = nats::connect(config).await.unwrap_err();
        assert!(matches!(error, StoreError::Config { .. }), "{error:?}");
        assert!(!format!("{error:?} {error}").contains("SUsecret"));
    }
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn a_bucket_created_with_a_shorter_age_is_not_opened() {
    let server = NatsServer::start();
    let store = connect(&server).await;
    let open = async |seconds: Option<u64>| {
        let aged = BucketConfig {
            max_age: seconds.map(Duration::from_secs),
            ..BucketConfig::default()
        };
        Bucket::open(&store, "aged", aged).await
    };
    for same_or_shorter in [3, 3, 1] {
        open(Some(same_or_shorter)).await.unwrap();
    }
    for longer in [Some(10), None] {
        let error = open(longer).await.unwrap_err();
        assert!(matches!(error, StoreError::Config { .. }), "{error:?}");
        assert!(error.to_string().contains("for 3s only"), "{error}");
    }
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn wrong_credentials_are_denied() {
    let server = NatsServer::start_with(
        "authorization { user: ann, password: wonder }\njetstream: {}",
        &[],
    );
    let config = config_of(&server);
    for wrong in [
        config.clone(),
        config.clone().with_user("ann", "land"),
        config.clone().with_token("wonder"),
    ] {
        let error = nats::connect(wrong).await.unwrap_err();
        assert!(matches!(error, StoreError::Denied { .. }), "{error:?}");
    }
    let config = config.with_user("ann", "wonder");
    assert!(!format!("{config:?}").contains("wonder"));
    let store: Arc<dyn Store> = nats::connect(config).await.unwrap();
    bucket(&store).await;
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn credentials_in_the_url_log_in_and_are_never_shown() {
    let user = "authorization { user: ann, password: \"wonder,land\" }";
    let token = "authorization { token: sesame }";
    for (asked, right, wrong) in [
        (user, "ann:wonder%2Cland@", "ann:wonderland@"),
        (token, "sesame@", "ann:sesame@"),
    ] {
        let server = NatsServer::start_with(asked, &[]);
        let config = |login| {
            // No one is at the first address.
            let urls = format!("nats://127.0.0.1:1,nats://{login}{}", server.address());
            let mut config = NatsConfig::new(&urls);
            config.timeout = Duration::from_secs(2);
            config
        };
        let error = nats::connect(config(wrong)).await.unwrap_err();
        assert!(matches!(error, StoreError::Denied { .. }), "{error:?}");
        let nats = nats::connect(config(right)).await.unwrap();
        nats.ensure().await.unwrap();
        let shown = format!("{:?} {nats:?} {error:?} {error}", config(right));
        assert!(
            !shown.contains("wonder") && !shown.contains("sesame"),
            "{shown}"
        );
        let other = config(right).with_user("bob", "builder");
        let error = nats::connect(other).await.unwrap_err();
        assert!(matches!(error, StoreError::Denied { .. }), "{error:?}");
    }
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn tokens_and_nkeys_authenticate() {
    // A pair that was made for this test and opens nothing else, from the bytes 7 to 38.
    let seed = "SUAAOCAJBIFQYDIOB4IBCEQTCQKRMFYYDENBWHA5DYPSAIJCEMSCKJR2OM";
    let public = "UAANAWQ5D2RFCOLNKV5PXVCYRM6G3GO35OLS73IQUMSWF2RG3TOPUNZ4";
    let server = NatsServer::start_with("authorization { token: sesame }", &[]);
    let config = config_of(&server);
    nats::connect(config.with_token("sesame")).await.unwrap();

    let users = format!("authorization {{ users: [ {{ nkey: {public} }} ] }}");
    let server = NatsServer::start_with(&users, &[]);
    let config = config_of(&server);
    nats::connect(config.with_nkey(seed)).await.unwrap();
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn an_unknown_certificate_authority_is_refused() {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let folder = std::env::temp_dir().join(format!("switchboard-nats-tls-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (cert, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let tls = format!(
        "tls {{ cert_file: {:?}, key_file: {:?} }}",
        cert.display().to_string(),
        key.display().to_string()
    );
    let server = NatsServer::start_with(&tls, &[]);
    let trusting = async |issuer: &str| {
        let tls = TlsConfig::with_root_certificates(issuer.as_bytes()).unwrap();
        let mut config = config_of(&server);
        config.tls = Some(tls);
        nats::connect(config).await
    };
    let nats = trusting(&made.cert.pem()).await.unwrap();
    nats.log("log", LogConfig::new("log")).await.unwrap();
    let another = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let error = trusting(&another.cert.pem()).await.unwrap_err();
    assert!(matches!(error, StoreError::Config { .. }), "{error:?}");
    assert!(error.to_string().contains("is not trusted"), "{error}");
    std::fs::remove_dir_all(&folder).unwrap();
}
