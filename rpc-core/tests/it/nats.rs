//! [`Nats`] and [`Bucket`] against a server of the test's own.

use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use rpc_core::net::nats::{Bucket, BucketConfig, Change, Expect, Nats, NatsConfig, NatsError};
use rpc_core::net::tls::TlsConfig;
use switchboard_testing::nats::NatsServer;

async fn connect(server: &NatsServer) -> Nats {
    let config = NatsConfig::new(&server.url()).with_timeout(Duration::from_secs(2));
    Nats::connect(config).await.unwrap()
}

async fn bucket(nats: &Nats) -> Bucket {
    nats.bucket("test", BucketConfig::default()).await.unwrap()
}

const fn bytes(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

fn stream_of(nats: &Nats) -> async_nats::jetstream::stream::Config {
    async_nats::jetstream::stream::Config {
        subjects: vec![nats.subject(&["log", ">"])],
        ..Default::default()
    }
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn of_two_writers_with_one_revision_the_second_is_refused() {
    let server = NatsServer::start();
    let (one, other) = (connect(&server).await, connect(&server).await);
    assert_ne!(one.node(), other.node());
    let (one, other) = (bucket(&one).await, bucket(&other).await);
    let first = one.create("key", bytes("one")).await.unwrap();
    assert_eq!(
        other.create("key", bytes("other")).await,
        Err(NatsError::Conflict)
    );
    let second = other.update("key", bytes("other"), first).await.unwrap();
    assert!(second > first);
    assert_eq!(
        one.update("key", bytes("late"), first).await,
        Err(NatsError::Conflict)
    );
    let entry = one.get("key").await.unwrap().unwrap();
    assert_eq!((entry.value, entry.revision), (bytes("other"), second));
    assert_eq!(
        one.delete("key", Some(first)).await,
        Err(NatsError::Conflict)
    );
    one.delete("key", Some(second)).await.unwrap();
    assert_eq!(other.get("key").await.unwrap(), None);
    // A deleted key can be created again.
    other.create("key", bytes("new")).await.unwrap();
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn what_was_opened_is_made_again_when_the_server_has_lost_it() {
    let mut server = NatsServer::start();
    let nats = connect(&server).await;
    let bucket = bucket(&nats).await;
    let stream = nats.stream("log", stream_of(&nats)).await.unwrap();
    bucket.put("key", bytes("one")).await.unwrap();
    server.restart_empty();
    // A write finds that nobody takes it, and is repeated; a read fails once.
    let stored = loop {
        let subject = nats.subject(&["log", "a"]);
        match nats.publish(subject, bytes("x"), Expect::default()).await {
            Err(NatsError::Unavailable { .. }) => {}
            stored => break stored.unwrap(),
        }
    };
    assert_eq!(stored.sequence, 1);
    assert_eq!(stream.get_info().await.unwrap().state.messages, 1);
    assert_eq!(bucket.get("key").await, Ok(None));

    let name = format!("KV_{}_test", nats.prefix());
    nats.jetstream().delete_stream(name).await.unwrap();
    let gone = bucket.get("key").await.unwrap_err();
    assert!(gone.is_retryable(), "{gone}");
    bucket.put("key", bytes("two")).await.unwrap();
    let entry = bucket.get("key").await.unwrap().unwrap();
    assert_eq!(entry.value, bytes("two"));
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn a_watch_tells_what_is_there_and_what_changes() {
    let server = NatsServer::start();
    let nats = connect(&server).await;
    let bucket = bucket(&nats).await;
    bucket.put("m.ann.c1", bytes("1")).await.unwrap();
    bucket.put("m.bob.c1", bytes("2")).await.unwrap();
    bucket.put("m.bob.c2", bytes("3")).await.unwrap();
    let found = bucket.entries("m.*.c1").await.unwrap();
    let keys: Vec<_> = found.iter().map(|it| it.key.as_str()).collect();
    assert_eq!(keys, ["m.ann.c1", "m.bob.c1"]);
    assert_eq!(bucket.entries("m.nobody.*").await.unwrap(), []);

    let mut watch = bucket.watch("m.bob.>").await.unwrap();
    let mut next = async || watch.next().await.unwrap().unwrap();
    assert!(matches!(next().await, Change::Put(entry) if entry.key == "m.bob.c1"));
    assert!(matches!(next().await, Change::Put(entry) if entry.key == "m.bob.c2"));
    assert_eq!(next().await, Change::Current);
    bucket.delete("m.bob.c1", None).await.unwrap();
    assert!(matches!(next().await, Change::Deleted { key, .. } if key == "m.bob.c1"));
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn a_removed_key_leaves_nothing_and_a_deleted_one_its_name() {
    let server = NatsServer::start();
    let nats = connect(&server).await;
    let bucket = bucket(&nats).await;
    let first = bucket.create("m.ann", bytes("1")).await.unwrap();
    let second = bucket.update("m.ann", bytes("2"), first).await.unwrap();
    let other = bucket.create("m.bob", bytes("3")).await.unwrap();
    assert_eq!(
        bucket.remove("m.ann", first).await,
        Err(NatsError::Conflict)
    );
    assert_eq!(bucket.get("m.ann").await.unwrap().unwrap().revision, second);
    bucket.remove("m.ann", second).await.unwrap();
    assert_eq!(
        bucket.remove("m.ann", second).await,
        Err(NatsError::Conflict)
    );
    assert_eq!(bucket.get("m.ann").await.unwrap(), None);
    bucket.delete("m.bob", Some(other)).await.unwrap();
    assert_eq!(bucket.keys("*.*").await.unwrap(), ["m.bob"]);
    assert_eq!(bucket.keys("x.*").await.unwrap(), [""; 0]);
    let third = bucket.create("m.ann", bytes("4")).await.unwrap();
    assert!(third > second);
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn a_message_with_a_known_id_is_not_stored_again() {
    let server = NatsServer::start();
    let nats = connect(&server).await;
    nats.stream("log", stream_of(&nats)).await.unwrap();
    let publish = |id: &'static str, last| {
        let subject = nats.subject(&["log", "a"]);
        let expect = Expect {
            id: Some(id),
            last_subject_sequence: last,
        };
        let nats = nats.clone();
        async move { nats.publish(subject, bytes("x"), expect).await }
    };
    let first = publish("one", Some(0)).await.unwrap();
    assert!(!first.is_duplicate);
    let again = publish("one", None).await.unwrap();
    assert_eq!((again.sequence, again.is_duplicate), (first.sequence, true));
    assert_eq!(publish("two", Some(0)).await, Err(NatsError::Conflict));
    publish("two", Some(first.sequence)).await.unwrap();
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn a_restarted_server_is_found_again_with_what_it_stored() {
    let mut server = NatsServer::start();
    let nats = connect(&server).await;
    let bucket = bucket(&nats).await;
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
    let config = NatsConfig::new(&server.url()).with_timeout(Duration::from_millis(200));
    let nats = Nats::connect(config).await.unwrap();
    let bucket = bucket(&nats).await;
    server.pause();
    let error = bucket.put("key", bytes("x")).await.unwrap_err();
    assert!(matches!(error, NatsError::Unavailable { .. }), "{error:?}");
    server.resume();
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn a_full_bucket_and_a_large_value_are_told_apart() {
    let server = NatsServer::start_with("max_payload: 65536", &[]);
    let nats = connect(&server).await;
    let small = BucketConfig::default().with_max_bytes(100_000_u64);
    let bucket = nats.bucket("small", small).await.unwrap();
    let large = Bytes::from(vec![b'x'; 70_000]);
    assert_eq!(bucket.put("key", large).await, Err(NatsError::TooLarge));
    let piece = Bytes::from(vec![b'x'; 30_000]);
    let mut outcomes = Vec::new();
    for number in 0..5 {
        outcomes.push(bucket.put(&format!("k{number}"), piece.clone()).await);
    }
    assert!(outcomes[0].is_ok(), "{outcomes:?}");
    assert!(
        matches!(outcomes[4], Err(NatsError::Full { .. })),
        "{outcomes:?}"
    );
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn a_server_that_accepts_too_short_messages_is_refused_with_its_limit() {
    let server = NatsServer::start_with("max_payload: 65535", &[]);
    let config = NatsConfig::new(&server.url()).with_timeout(Duration::from_secs(2));
    let error = Nats::connect(config).await.unwrap_err();
    assert!(matches!(error, NatsError::Config { .. }), "{error:?}");
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
    let config = NatsConfig::new(&server.url()).with_replicas(3);
    let nats = Nats::connect(config).await.unwrap();
    for error in [
        nats.bucket("test", BucketConfig::default())
            .await
            .unwrap_err(),
        nats.stream("log", stream_of(&nats)).await.unwrap_err(),
    ] {
        assert!(matches!(error, NatsError::Config { .. }), "{error:?}");
        assert!(
            error.to_string().contains("replicas > 1 not supported"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn no_server_no_jetstream_and_a_bad_configuration_say_so() {
    let nobody = NatsConfig::new("nats://127.0.0.1:1").with_timeout(Duration::from_millis(200));
    let error = Nats::connect(nobody).await.unwrap_err();
    assert!(error.is_retryable(), "{error:?}");
    for config in [
        NatsConfig::new(""),
        NatsConfig::new("nats://a:b:c:d"),
        NatsConfig::new("nats://127.0.0.1:1").with_prefix("a.b"),
        NatsConfig::new("nats://127.0.0.1:1").with_nkey("SUsecret"),
        NatsConfig::new("http://SUsecret@127.0.0.1:1"),
    ] {
        let error = Nats::connect(config).await.unwrap_err();
        assert!(matches!(error, NatsError::Config { .. }), "{error:?}");
        assert!(!format!("{error:?} {error}").contains("SUsecret"));
    }
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn a_bucket_that_was_made_with_a_shorter_age_is_not_opened() {
    let server = NatsServer::start();
    let nats = connect(&server).await;
    let aged = |seconds| BucketConfig::default().with_max_age(Duration::from_secs(seconds));
    for same_or_shorter in [3, 3, 1] {
        nats.bucket("aged", aged(same_or_shorter)).await.unwrap();
    }
    let error = nats.bucket("aged", aged(10)).await.unwrap_err();
    assert!(matches!(error, NatsError::Config { .. }), "{error:?}");
    assert!(error.to_string().contains("for 3s only"), "{error}");
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn wrong_credentials_are_denied_and_right_ones_are_not() {
    let server = NatsServer::start_with(
        "authorization { user: ann, password: wonder }\njetstream: {}",
        &[],
    );
    let config = NatsConfig::new(&server.url()).with_timeout(Duration::from_secs(2));
    for wrong in [
        config.clone(),
        config.clone().with_user("ann", "land"),
        config.clone().with_token("wonder"),
    ] {
        let error = Nats::connect(wrong).await.unwrap_err();
        assert!(matches!(error, NatsError::Denied { .. }), "{error:?}");
    }
    let config = config.with_user("ann", "wonder");
    assert!(!format!("{config:?}").contains("wonder"));
    let nats = Nats::connect(config).await.unwrap();
    bucket(&nats).await;
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
            // Nobody is at the first address.
            let urls = format!("nats://127.0.0.1:1,nats://{login}{}", server.address());
            NatsConfig::new(&urls).with_timeout(Duration::from_secs(2))
        };
        let error = Nats::connect(config(wrong)).await.unwrap_err();
        assert!(matches!(error, NatsError::Denied { .. }), "{error:?}");
        let nats = Nats::connect(config(right)).await.unwrap();
        bucket(&nats).await;
        let shown = format!("{:?} {nats:?} {error:?} {error}", config(right));
        assert!(
            !shown.contains("wonder") && !shown.contains("sesame"),
            "{shown}"
        );
        let other = config(right).with_user("bob", "builder");
        let error = Nats::connect(other).await.unwrap_err();
        assert!(matches!(error, NatsError::Denied { .. }), "{error:?}");
    }
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn a_token_and_an_nkey_open_the_door() {
    // A pair that was made for this test and opens nothing else, from the bytes 7 to 38.
    let seed = "SUAAOCAJBIFQYDIOB4IBCEQTCQKRMFYYDENBWHA5DYPSAIJCEMSCKJR2OM";
    let public = "UAANAWQ5D2RFCOLNKV5PXVCYRM6G3GO35OLS73IQUMSWF2RG3TOPUNZ4";
    let server = NatsServer::start_with("authorization { token: sesame }", &[]);
    let config = NatsConfig::new(&server.url()).with_timeout(Duration::from_secs(2));
    Nats::connect(config.with_token("sesame")).await.unwrap();

    let users = format!("authorization {{ users: [ {{ nkey: {public} }} ] }}");
    let server = NatsServer::start_with(&users, &[]);
    let config = NatsConfig::new(&server.url()).with_timeout(Duration::from_secs(2));
    Nats::connect(config.with_nkey(seed)).await.unwrap();
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn an_unknown_issuer_is_refused_and_a_trusted_one_is_not() {
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
    let config = NatsConfig::new(&server.url()).with_timeout(Duration::from_secs(2));
    let trusted = TlsConfig::with_root_certificates(made.cert.pem().as_bytes()).unwrap();
    let nats = Nats::connect(config.clone().with_tls(trusted))
        .await
        .unwrap();
    bucket(&nats).await;
    let another = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let another = TlsConfig::with_root_certificates(another.cert.pem().as_bytes()).unwrap();
    Nats::connect(config.with_tls(another)).await.unwrap_err();
    std::fs::remove_dir_all(&folder).unwrap();
}
