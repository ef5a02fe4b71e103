//! Three nodes on one store: one order, no loss, nothing twice.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use rpc_core::net::mem::{self, MemDialer};
use rpc_core::net::{LinkConfig, LinkEvent};
use rpc_core::reconnect::ReconnectPolicy;
use rpc_core::store::{LogConfig, MemoryStore, Store};
use snek_proto::client::{ClientConfig, ClientEvent};
use snek_proto::frame::{Channel, Final, User};
use snek_proto::net::{
    Client, ClusterBackend, ClusterOptions, Events, Server, ServerOptions, connect_with,
};

/// Nothing here takes longer, on a machine that is busy too.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

/// A server of the cluster, and its connection to the store.
pub(crate) struct Member<S = MemoryStore> {
    pub(crate) dialer: MemDialer,
    pub(crate) store: S,
    pub(crate) backend: ClusterBackend,
}

/// Everyone may log in, with passwords that are hashed in no time.
pub(crate) fn options() -> ClusterOptions {
    ClusterOptions {
        open: true,
        password_rounds: 1_000,
        ..ClusterOptions::default()
    }
}

/// A server with this connection to a store.
pub(crate) async fn node_on(store: MemoryStore, options: ClusterOptions) -> Member {
    node_at(Arc::new(store.clone()), store, options).await
}

pub(crate) async fn node_at<S>(
    line: Arc<dyn Store>,
    store: S,
    options: ClusterOptions,
) -> Member<S> {
    let opened = ClusterBackend::open(line, options).await;
    let (backend, runner) = opened.unwrap();
    tokio::spawn(runner.run());
    let (server, _) = Server::mount(backend.clone(), ServerOptions::default());
    let (handle, (dialer, mut listener)) = (server.handle(), mem::listen(64));
    tokio::spawn(server.run());
    tokio::spawn(async move {
        while let Some(line) = listener.accept().await {
            handle.serve(line, None);
        }
    });
    Member {
        dialer,
        store,
        backend,
    }
}

pub(crate) async fn node(store: &MemoryStore) -> Member {
    node_on(store.connect(), options()).await
}

/// Three nodes with the channel `general`.
async fn three(store: &MemoryStore) -> [Member; 3] {
    let nodes = [node(store).await, node(store).await, node(store).await];
    nodes[0]
        .backend
        .put_channel("general", "General")
        .await
        .unwrap();
    nodes
}

pub(crate) fn client(dialer: &MemDialer, name: &str, password: &str) -> (Client, Events) {
    let link = LinkConfig {
        reconnect: ReconnectPolicy::off(),
        ..LinkConfig::default()
    };
    let config = ClientConfig::new(name, password);
    let (client, events, connection) =
        connect_with(dialer.clone(), ClientConfig { link, ..config });
    tokio::spawn(connection.run());
    (client, events)
}

pub(crate) async fn login<S>(node: &Member<S>, name: &str) -> (Client, Events) {
    let (client, events) = client(&node.dialer, name, "secret");
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
pub(crate) async fn next<T>(events: &mut Events, find: impl Fn(ClientEvent) -> Option<T>) -> T {
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

pub(crate) async fn message(events: &mut Events) -> String {
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

/// Waits until a channel is left.
async fn left(events: &mut Events, uid: &str) {
    let is_it = |event| matches!(event, ClientEvent::Left(it) if it.channel_uid.as_str() == uid);
    next(events, |event| is_it(event).then_some(())).await;
}

#[tokio::test(start_paused = true)]
async fn all_nodes_deliver_concurrent_messages_in_one_order_and_once() {
    let store = MemoryStore::new();
    let nodes = three(&store).await;
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

#[tokio::test(start_paused = true)]
async fn partial_messages_and_typing_reach_other_nodes_before_the_final_message() {
    let store = MemoryStore::new();
    let nodes = three(&store).await;
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

#[tokio::test(start_paused = true)]
async fn a_gap_in_the_feed_is_filled_from_the_stream() {
    let store = MemoryStore::new();
    let nodes = three(&store).await;
    let (ann, mut events) = login(&nodes[0], "ann").await;
    let (bob, _events) = login(&nodes[1], "bob").await;
    sees(&ann, "general").await;
    sees(&bob, "general").await;
    nodes[0].store.set_cut(true);
    let texts: Vec<String> = (0..100).map(|number| number.to_string()).collect();
    for text in &texts {
        bob.send_message("general", text, Final::Yes).await.unwrap();
    }
    nodes[0].store.set_cut(false);
    assert_eq!(messages(&mut events, 100).await, texts);
}

#[tokio::test(start_paused = true)]
async fn a_lagging_node_keeps_the_order_of_partial_and_final_messages() {
    // With room for all that it is behind, and without.
    for queue in [4_096, 16] {
        let store = MemoryStore::new();
        let behind = store.connect();
        behind.set_queue(queue);
        let nodes = [node(&store).await, node_on(behind, options()).await];
        nodes[0].backend.put_channel("general", "").await.unwrap();
        let (ann, _events) = login(&nodes[0], "ann").await;
        let (bob, mut events) = login(&nodes[1], "bob").await;
        sees(&ann, "general").await;
        sees(&bob, "general").await;
        nodes[1].store.set_paused(true);
        for number in 0..200 {
            for is_final in [Final::No, Final::Yes] {
                let text = number.to_string();
                ann.send_message("general", &text, is_final).await.unwrap();
            }
        }
        nodes[1].store.set_paused(false);
        let (mut received, mut partials) = (0, 0);
        while received < 200 {
            let (text, is_final) = next(&mut events, |event| match event {
                ClientEvent::Message(it) => Some((it.message.to_string(), it.is_final)),
                _ => None,
            })
            .await;
            assert_eq!(text, received.to_string(), "{is_final:?}");
            match is_final {
                Final::Yes => received += 1,
                Final::No => partials += 1,
            }
        }
        assert!(queue == 16 || partials == 200, "{partials}");
    }
}

#[tokio::test(start_paused = true)]
async fn names_are_encoded_before_they_become_subjects() {
    let store = MemoryStore::new();
    let nodes = three(&store).await;
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
    let others = ["a", "b", "aXb", "x.y", "%2E", "."];
    let online = others.map(|name| nodes[2].backend.is_online(name));
    for (name, online) in others.iter().zip(join_all(online).await) {
        assert!(!online.unwrap(), "{name}");
    }
    for name in ["\r\nPUB x 0\r\n", &"ë".repeat(900)] {
        let (client, _events) = client(&nodes[0].dialer, name, "secret");
        client.ready().await.unwrap_err();
    }
}

#[tokio::test(start_paused = true)]
async fn a_user_has_one_password_on_all_nodes_and_only_its_hash_is_stored() {
    let store = MemoryStore::new();
    let nodes = three(&store).await;
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
        let (right, _events) = client(&node.dialer, "ann", "wonderland");
        right.ready().await.unwrap();
        assert_eq!(right.get_user(None).await.unwrap().nick, "Ann");
        let (wrong, _events) = client(&node.dialer, "ann", "Wonderland");
        wrong.ready().await.unwrap_err();
    }
    backend
        .put_user(User::new("ann", "Ann"), "new")
        .await
        .unwrap();
    let (old, _events) = client(&nodes[1].dialer, "ann", "wonderland");
    old.ready().await.unwrap_err();
    let keys = LogConfig::new("snek.k.>");
    let keys = store.log("snek_keys", keys).await.unwrap();
    let stored = keys.read("snek.k.u.ann", 0, 10).await.unwrap();
    let stored = String::from_utf8_lossy(&stored[0].payload).into_owned();
    assert!(stored.contains("pbkdf2-sha256$1000$"), "{stored}");
    assert!(!stored.contains("wonderland"), "{stored}");
}

#[tokio::test(start_paused = true)]
async fn without_open_a_stranger_is_refused() {
    let closed = ClusterOptions {
        open: false,
        ..options()
    };
    let node = node_on(MemoryStore::new(), closed).await;
    let (stranger, _events) = client(&node.dialer, "ann", "x");
    stranger.ready().await.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn direct_channels_and_memberships_appear_on_all_nodes() {
    let store = MemoryStore::new();
    let nodes = three(&store).await;
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
    left(&mut bob_events, "room").await;
}

#[tokio::test(start_paused = true)]
async fn a_removed_channel_loses_its_members_on_all_nodes() {
    let store = MemoryStore::new();
    let nodes = three(&store).await;
    let (ann, mut ann_events) = login(&nodes[0], "ann").await;
    let (bob, mut bob_events) = login(&nodes[1], "bob").await;
    sees(&ann, "general").await;
    sees(&bob, "general").await;
    let room = Channel::new("room", "Room", None);
    nodes[0].backend.join("bob", &room).await.unwrap();
    sees(&bob, "room").await;
    let backend = &nodes[2].backend;
    for uid in ["general", "room"] {
        assert!(backend.remove_channel(uid).await.unwrap());
        assert!(!backend.remove_channel(uid).await.unwrap());
        left(&mut bob_events, uid).await;
        let sent = bob.send_message(uid, "hi", Final::Yes);
        sent.await.unwrap_err();
    }
    left(&mut ann_events, "general").await;
    // Those who had put it there do not put it there again, unless someone asks them.
    store.restart();
    let (cid, _events) = login(&nodes[0], "cid").await;
    assert_eq!(cid.get_channels().await.unwrap(), []);
    backend.put_channel("general", "General").await.unwrap();
    for client in [&ann, &bob, &cid] {
        sees(client, "general").await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_removed_user_is_disconnected_on_all_nodes() {
    let store = MemoryStore::new();
    let closed = ClusterOptions {
        open: false,
        ..options()
    };
    let nodes = [
        node_on(store.connect(), closed).await,
        node_on(store.connect(), closed).await,
    ];
    let ann = || User::new("ann", "Ann");
    let (first, other) = (&nodes[0].backend, &nodes[1].backend);
    first.put_user(ann(), "secret").await.unwrap();
    let mut there = [login(&nodes[0], "ann").await, login(&nodes[1], "ann").await];
    assert!(other.remove_user("ann").await.unwrap());
    assert!(!other.remove_user("ann").await.unwrap());
    for (_, events) in &mut there {
        let closed = async { while events.next_link().await.is_some() {} };
        tokio::time::timeout(DEADLINE, closed).await.unwrap();
    }
    store.restart();
    for node in &nodes {
        let (gone, _events) = client(&node.dialer, "ann", "secret");
        gone.ready().await.unwrap_err();
        assert!(!node.backend.is_online("ann").await.unwrap());
    }
    other.add_user(ann(), "secret").await.unwrap();
    login(&nodes[0], "ann").await;
}

#[tokio::test(start_paused = true)]
async fn presence_ends_with_the_last_connection() {
    let store = MemoryStore::new();
    let nodes = three(&store).await;
    let (ann, events) = login(&nodes[0], "ann").await;
    for node in &nodes {
        assert!(node.backend.is_online("ann").await.unwrap());
    }
    drop((ann, events));
    until(async || !nodes[2].backend.is_online("ann").await.unwrap()).await;
}
