//! Three nodes and a NATS server: one order, no loss, nothing twice.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::join_all;
use rpc_core::CallError;
use rpc_core::net::nats::{Nats, NatsConfig};
use rpc_core::net::{LinkConfig, LinkEvent};
use rpc_core::reconnect::ReconnectPolicy;
use snek_proto::client::{ClientConfig, ClientEvent};
use snek_proto::frame::{Channel, Final, User};
use snek_proto::net::{
    Client, Events, NatsBackend, NatsOptions, NodeConfig, Server, ServerOptions, connect_with,
    dialer,
};
use switchboard_testing::nats::NatsServer;

/// Nothing here takes longer, on a machine that is busy too.
const DEADLINE: Duration = Duration::from_secs(30);

/// A server of the cluster.
pub(crate) struct Member {
    pub(crate) url: String,
    pub(crate) nats: Nats,
    pub(crate) backend: NatsBackend,
}

async fn nats(server: &NatsServer) -> Nats {
    let config = NatsConfig::new(&server.url()).with_timeout(Duration::from_secs(1));
    Nats::connect(config).await.unwrap()
}

/// The defaults, with passwords that are hashed in no time.
fn options() -> NatsOptions {
    NatsOptions {
        password_rounds: 1_000,
        ..NatsOptions::default()
    }
}

async fn node_with(server: &NatsServer, options: NatsOptions) -> Member {
    node_on(nats(server).await, options).await
}

async fn node_on(nats: Nats, options: NatsOptions) -> Member {
    let opened = NatsBackend::open(nats.clone(), options).await;
    let (backend, runner) = opened.unwrap();
    tokio::spawn(runner.run());
    let bound = Server::bind("127.0.0.1:0", backend.clone(), ServerOptions::default()).await;
    let bound = bound.unwrap();
    let url = bound.url();
    tokio::spawn(bound.run());
    Member { url, nats, backend }
}

pub(crate) async fn node(server: &NatsServer) -> Member {
    node_with(
        server,
        NatsOptions {
            open: true,
            ..options()
        },
    )
    .await
}

/// Three nodes with the channel `general`.
async fn three(server: &NatsServer) -> [Member; 3] {
    let nodes = [node(server).await, node(server).await, node(server).await];
    nodes[0]
        .backend
        .put_channel("general", "General")
        .await
        .unwrap();
    nodes
}

pub(crate) fn client(url: &str, name: &str, password: &str) -> (Client, Events) {
    let link = LinkConfig {
        reconnect: ReconnectPolicy::off(),
        ..LinkConfig::default()
    };
    let config = ClientConfig::new(name, password);
    let dialer = dialer(url, &config).unwrap();
    let (client, events, connection) = connect_with(dialer, config, link);
    tokio::spawn(connection.run());
    (client, events)
}

pub(crate) async fn login(node: &Member, name: &str) -> (Client, Events) {
    let (client, events) = client(&node.url, name, "secret");
    client.ready().await.unwrap();
    (client, events)
}

/// Waits for the client's channels: a public one appears when the node knows it.
pub(crate) async fn sees(client: &Client, uid: &str) {
    until(async || {
        let channels = client.get_channels().await.unwrap();
        channels.iter().any(|channel| channel.uid.as_str() == uid)
    })
    .await;
}

/// Tries again until something holds.
pub(crate) async fn until(mut holds: impl AsyncFnMut() -> bool) {
    let trying = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(DEADLINE, trying)
        .await
        .expect("in time");
}

/// The next event that `find` knows.
async fn next<T>(events: &mut Events, find: impl Fn(ClientEvent) -> Option<T>) -> T {
    let reading = async {
        loop {
            match events.next_link().await.expect("an event") {
                LinkEvent::Event(event) => {
                    if let Some(found) = find(event) {
                        return found;
                    }
                }
                LinkEvent::State(_) => {}
                other => panic!("{other:?}"),
            }
        }
    };
    tokio::time::timeout(DEADLINE, reading)
        .await
        .expect("in time")
}

async fn message(events: &mut Events) -> String {
    next(events, |event| match event {
        ClientEvent::Message(message) => Some(message.message.to_string()),
        _ => None,
    })
    .await
}

pub(crate) async fn messages(events: &mut Events, count: usize) -> Vec<String> {
    let mut all = Vec::new();
    while all.len() < count {
        all.push(message(events).await);
    }
    all
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn all_nodes_deliver_concurrent_messages_in_one_order_and_once() {
    let server = NatsServer::start();
    let nodes = three(&server).await;
    let mut clients = Vec::new();
    for at in 0..6 {
        let (client, events) = login(&nodes[at % 3], &format!("user{at}")).await;
        sees(&client, "general").await;
        clients.push((client, events));
    }
    let senders = clients
        .iter()
        .enumerate()
        .map(|(at, (client, _))| async move {
            let sends = (0..20).map(|number| {
                let text = format!("{at} {number}");
                async move { client.send_message("general", &text, Final::Yes).await }
            });
            for sent in join_all(sends).await {
                sent.unwrap();
            }
        });
    join_all(senders).await;
    let mut orders = Vec::new();
    for (_, events) in &mut clients {
        orders.push(messages(events, 120).await);
    }
    assert_eq!(orders[0].iter().collect::<HashSet<_>>().len(), 120);
    for order in &orders {
        assert_eq!(order, &orders[0]);
    }
    // What one client sends without waiting stays in its order.
    for at in 0..6 {
        let own = orders[0]
            .iter()
            .filter_map(|it| it.strip_prefix(&format!("{at} ")));
        let own: Vec<u32> = own.map(|it| it.parse().unwrap()).collect();
        assert!(own.is_sorted(), "{own:?}");
    }
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn partial_messages_and_typing_reach_other_nodes_before_the_final_message() {
    let server = NatsServer::start();
    let nodes = three(&server).await;
    let (ann, _ann) = login(&nodes[0], "ann").await;
    let (bob, mut events) = login(&nodes[1], "bob").await;
    sees(&ann, "general").await;
    sees(&bob, "general").await;
    ann.set_typing("general", "#FF6B35").await.unwrap();
    for (text, is_final) in [("so", Final::No), ("so far", Final::Yes), ("x", Final::No)] {
        ann.send_message("general", text, is_final).await.unwrap();
    }
    let color = next(&mut events, |event| match event {
        ClientEvent::SetTyping(typing) => typing.color,
        _ => None,
    });
    assert_eq!(color.await, "#FF6B35");
    assert_eq!(messages(&mut events, 3).await, ["so", "so far", "x"]);
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn a_gap_in_the_feed_is_filled_from_the_stream() {
    let server = NatsServer::start();
    let nodes = three(&server).await;
    let (ann, mut events) = login(&nodes[0], "ann").await;
    sees(&ann, "general").await;
    ann.send_message("general", "one", Final::Yes)
        .await
        .unwrap();
    assert_eq!(message(&mut events).await, "one");
    // A record of the feed that says that three others came before it.
    let other = nats(&server).await;
    let context = other.jetstream();
    for text in ["two", "three"] {
        let event = format!(
            r#"{{"event":"message","message":"{text}","username":"bob","user_nick":"","channel_uid":"general","is_final":true}}"#
        );
        let subject = other.subject(&["snek", "m", "general"]);
        context
            .publish(subject, event.into())
            .await
            .unwrap()
            .await
            .unwrap();
    }
    assert_eq!(messages(&mut events, 2).await, ["two", "three"]);
    // Late and repeated copies change nothing.
    for sequence in ["1", "2", "3"] {
        let mut headers = async_nats::HeaderMap::new();
        headers.insert("Nats-Sequence", sequence);
        headers.insert("Nats-Last-Sequence", "0");
        let subject = other.subject(&["snek", "d", "general"]);
        let sent = other
            .client()
            .publish_with_headers(subject, headers, "{}".into());
        sent.await.unwrap();
    }
    // One that is not there yet is waited for, and what is missing before it is read.
    let mut headers = async_nats::HeaderMap::new();
    headers.insert("Nats-Sequence", "9");
    headers.insert("Nats-Last-Sequence", "8");
    let event = r#"{"event":"message","message":"nine","username":"bob","user_nick":"","channel_uid":"general","is_final":true}"#;
    let subject = other.subject(&["snek", "d", "general"]);
    let sent = other
        .client()
        .publish_with_headers(subject, headers, event.into());
    sent.await.unwrap();
    assert_eq!(message(&mut events).await, "nine");
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn names_are_encoded_before_they_become_subjects() {
    let server = NatsServer::start();
    let nodes = three(&server).await;
    let long = "x".repeat(900);
    let names = ["a.b", "*", ">", "a b", "Zoë 🦀", "=2E", "$KV", &long];
    for name in names {
        let (client, mut events) = login(&nodes[0], name).await;
        sees(&client, "general").await;
        assert_eq!(client.get_user(None).await.unwrap().username, name);
        client
            .send_message("general", name, Final::Yes)
            .await
            .unwrap();
        assert_eq!(message(&mut events).await, name);
        let (other, _events) = login(&nodes[1], "other").await;
        assert_eq!(other.get_user(Some(name)).await.unwrap().username, name);
        assert!(nodes[2].backend.is_online(name).await.unwrap());
    }
    // None of them is another one.
    for name in ["a", "b", "aXb", "x.y", "%2E", "."] {
        assert!(!nodes[2].backend.is_online(name).await.unwrap(), "{name}");
    }
    for name in ["\r\nPUB x 0\r\n", &"ë".repeat(900)] {
        let (client, _events) = client(&nodes[0].url, name, "secret");
        client.ready().await.unwrap_err();
    }
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn a_user_has_one_password_on_all_nodes_and_only_its_hash_is_stored() {
    let server = NatsServer::start();
    let nodes = three(&server).await;
    let backend = &nodes[0].backend;
    backend
        .add_user(User::new("ann", "Ann"), "wonderland")
        .await
        .unwrap();
    backend
        .add_user(User::new("ann", "Eve"), "x")
        .await
        .unwrap_err();
    for node in &nodes {
        let (right, _events) = client(&node.url, "ann", "wonderland");
        right.ready().await.unwrap();
        assert_eq!(right.get_user(None).await.unwrap().nick, "Ann");
        let (wrong, _events) = client(&node.url, "ann", "Wonderland");
        wrong.ready().await.unwrap_err();
    }
    backend
        .put_user(User::new("ann", "Ann"), "new")
        .await
        .unwrap();
    let (old, _events) = client(&nodes[1].url, "ann", "wonderland");
    old.ready().await.unwrap_err();
    let files = std::process::Command::new("grep")
        .args(["-r", "wonderland"])
        .arg(server.folder())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&files.stdout), "");
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn without_open_a_stranger_is_refused() {
    let server = NatsServer::start();
    let node = node_with(&server, options()).await;
    let (stranger, _events) = client(&node.url, "ann", "x");
    stranger.ready().await.unwrap_err();
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn direct_channels_and_memberships_show_on_all_nodes() {
    let server = NatsServer::start();
    let nodes = three(&server).await;
    let (ann, mut ann_events) = login(&nodes[0], "ann").await;
    let (_bob, mut bob_events) = login(&nodes[1], "bob").await;
    let uid = nodes[2].backend.direct("bob", "ann").await.unwrap();
    assert_eq!(nodes[0].backend.direct("ann", "bob").await.unwrap(), uid);
    let joined = |event| match event {
        ClientEvent::Joined(joined) if joined.channel_uid.as_str().starts_with("dm-") => Some(()),
        _ => None,
    };
    next(&mut ann_events, joined).await;
    next(&mut bob_events, joined).await;
    let channels = ann.get_channels().await.unwrap();
    let direct = channels.iter().find(|it| it.is_dm()).unwrap();
    assert_eq!((&direct.uid, &*direct.name), (&uid, "bob"));
    ann.send_message(uid.as_str(), "psst", Final::Yes)
        .await
        .unwrap();
    assert_eq!(message(&mut bob_events).await, "psst");

    let backend = &nodes[2].backend;
    let room = Channel::new("room", "Room", None);
    assert!(backend.join("bob", &room).await.unwrap());
    assert!(!backend.join("bob", &room).await.unwrap());
    assert!(backend.leave("bob", "room").await.unwrap());
    backend.join("nobody", &room).await.unwrap_err();
    let left = |event| {
        matches!(event, ClientEvent::Left(it) if it.channel_uid.as_str() == "room").then_some(())
    };
    next(&mut bob_events, left).await;
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn presence_ends_with_the_last_connection() {
    let server = NatsServer::start();
    let nodes = three(&server).await;
    let (ann, events) = login(&nodes[0], "ann").await;
    for node in &nodes {
        assert!(node.backend.is_online("ann").await.unwrap());
    }
    drop((ann, events));
    until(async || !nodes[2].backend.is_online("ann").await.unwrap()).await;
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn a_restarted_nats_loses_and_doubles_nothing() {
    let mut server = NatsServer::start();
    let nodes = three(&server).await;
    let (ann, mut ann_events) = login(&nodes[0], "ann").await;
    let (bob, mut bob_events) = login(&nodes[1], "bob").await;
    sees(&ann, "general").await;
    sees(&bob, "general").await;
    let sending = tokio::spawn(async move {
        for number in 0..60 {
            let text = number.to_string();
            ann.send_message("general", &text, Final::Yes)
                .await
                .unwrap();
        }
        ann
    });
    for round in 0..3 {
        message(&mut bob_events).await;
        if round == 1 {
            server.kill();
        }
        server.restart();
    }
    let _ann = sending.await.unwrap();
    let own = messages(&mut ann_events, 60).await;
    let other = messages(&mut bob_events, 57).await;
    let all: Vec<String> = (0..60).map(|number| number.to_string()).collect();
    assert_eq!(own, all);
    assert_eq!(other, all[3..]);
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn while_nats_hangs_a_call_waits_and_is_stored_once() {
    let server = NatsServer::start();
    let publish = NodeConfig::default().publish;
    let config = NodeConfig {
        publish: publish.with_answer_timeout(Duration::from_millis(100)),
        ..NodeConfig::default()
    };
    let options = NatsOptions {
        open: true,
        node: config,
        ..options()
    };
    let nodes = [node_with(&server, options).await, node(&server).await];
    nodes[0].backend.put_channel("general", "").await.unwrap();
    let (ann, _ann_events) = login(&nodes[0], "ann").await;
    let (bob, mut events) = login(&nodes[1], "bob").await;
    sees(&ann, "general").await;
    sees(&bob, "general").await;
    server.pause();
    let sent = || {
        let statistics = nodes[0].nats.client().statistics();
        statistics.out_bytes.load(Ordering::Relaxed)
    };
    let before = sent();
    let long = "x".repeat(20_000);
    let text = long.clone();
    let sending = tokio::spawn(async move {
        ann.send_message("general", &text, Final::Yes)
            .await
            .unwrap();
        ann
    });
    // Until it is sent a second time: nothing else of the node is as long.
    until(async || sent() - before > 2 * long.len() as u64).await;
    assert!(!sending.is_finished());
    server.resume();
    let ann = sending.await.unwrap();
    ann.send_message("general", "after", Final::Yes)
        .await
        .unwrap();
    assert_eq!(messages(&mut events, 2).await, [&*long, "after"]);
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn a_call_fails_in_time_when_nats_stays_away_and_the_node_sends_its_clients_elsewhere() {
    let mut server = NatsServer::start();
    let publish = NodeConfig::default().publish;
    let config = NodeConfig {
        publish: publish.with_deadline(Duration::from_millis(300)),
        max_outage: Duration::from_millis(1500),
        ..NodeConfig::default()
    };
    let options = NatsOptions {
        open: true,
        node: config,
        ..options()
    };
    let node = node_with(&server, options).await;
    node.backend.put_channel("general", "").await.unwrap();
    let (ann, mut events) = login(&node, "ann").await;
    sees(&ann, "general").await;
    server.kill();
    let sent = ann.send_message("general", "hi", Final::Yes).await;
    let Err(CallError::Remote(error)) = sent else {
        panic!("{sent:?}")
    };
    assert!(
        error.message().contains("may have been delivered"),
        "{error}"
    );
    let closed = async { while events.next_link().await.is_some() {} };
    tokio::time::timeout(DEADLINE, closed)
        .await
        .expect("closed");
    let (late, _events) = client(&node.url, "bob", "secret");
    late.ready().await.unwrap_err();
    // It comes back by itself.
    server.restart();
    until(async || {
        let (client, _events) = client(&node.url, "ann", "secret");
        let ready = client.ready().await;
        ready.is_ok()
            && client
                .send_message("general", "back", Final::Yes)
                .await
                .is_ok()
    })
    .await;
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn a_full_nats_refuses_with_a_clear_answer() {
    let config = "jetstream { max_file_store: 300KB }";
    let server = NatsServer::start_with(config, &[]);
    let node = node(&server).await;
    node.backend.put_channel("general", "").await.unwrap();
    let (ann, _events) = login(&node, "ann").await;
    sees(&ann, "general").await;
    for size in [50_000, 500] {
        let text = "x".repeat(size);
        let mut refused = None;
        for _ in 0..300 {
            if let Err(error) = ann.send_message("general", text.as_str(), Final::Yes).await {
                refused = Some(error);
                break;
            }
        }
        let error = refused.expect("an answer that refuses").to_string();
        assert!(error.contains("no room"), "{error}");
    }
    // What needs no room goes on.
    ann.get_channels().await.unwrap();
    // A user or two may still find room.
    let mut number = 0;
    let error = loop {
        number += 1;
        let (client, _events) = client(&node.url, &format!("user{number}"), "secret");
        if let Err(error) = client.ready().await {
            break error.to_string();
        }
    };
    assert!(error.contains("no room for a new user"), "{error}");
    let (_ann, _events) = login(&node, "ann").await;
}

#[tokio::test]
#[ignore = "needs nats-server"]
async fn the_documented_permissions_are_enough() {
    let publish = [
        "switchboard.>",
        "$JS.API.>",
        "$JS.FC.>",
        "$KV.switchboard_snek.>",
    ];
    let user = format!(
        "user: ann, password: x, permissions: {{ publish: {publish:?}, subscribe: \"switchboard.>\" }}"
    );
    let server =
        NatsServer::start_with(&format!("authorization {{ users: [ {{ {user} }} ] }}"), &[]);
    let config = NatsConfig::new(&format!("nats://ann:x@{}", server.address()));
    let node = node_on(
        Nats::connect(config).await.unwrap(),
        NatsOptions {
            open: true,
            ..options()
        },
    );
    let node = node.await;
    node.backend.put_channel("general", "").await.unwrap();
    let (ann, _events) = login(&node, "ann").await;
    let (bob, mut events) = login(&node, "bob").await;
    sees(&ann, "general").await;
    sees(&bob, "general").await;
    ann.send_message("general", "hi", Final::Yes).await.unwrap();
    assert_eq!(message(&mut events).await, "hi");
    assert!(node.backend.is_online("ann").await.unwrap());
    let channel = node.backend.direct("ann", "bob").await.unwrap();
    sees(&ann, channel.as_str()).await;
}
