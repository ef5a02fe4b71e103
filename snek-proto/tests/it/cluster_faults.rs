//! Nodes whose store fails: cut off, silent, gone, full, emptied, rolled back.

use std::sync::Arc;
use std::time::Duration;

use rpc_core::net::{LinkEvent, LinkState};
use rpc_core::store::MemoryStore;
use rpc_core::{CallError, CloseReason};
use snek_proto::frame::Final;
use snek_proto::net::{Client, ClusterBackend, Events};
use tokio::time::Instant;

use crate::cluster::{
    DEADLINE, Member, client, login, message, messages, node, node_on, options, sees, until,
};

/// Two nodes and their clients, with a channel, after a message that both have heard.
async fn two_that_talk(store: &MemoryStore) -> ([Member; 2], [(Client, Events); 2]) {
    let nodes = [node(store).await, node(store).await];
    let general = nodes[0].backend.put_channel("general", "General");
    general.await.unwrap();
    let mut talking = [login(&nodes[0], "ann").await, login(&nodes[1], "bob").await];
    for (client, _) in &talking {
        sees(client, "general").await;
    }
    talk(&mut talking, "first").await;
    (nodes, talking)
}

/// Both say something, and both hear it once.
async fn talk(talking: &mut [(Client, Events); 2], text: &str) {
    let said = [format!("{text} by ann"), format!("{text} by bob")];
    for (text, (client, _)) in said.iter().zip(&*talking) {
        let sent = client.send_message("general", text, Final::Yes);
        sent.await.unwrap();
    }
    for (_, events) in talking {
        assert_eq!(messages(events, 2).await, said);
    }
}

#[tokio::test(start_paused = true)]
async fn a_restarted_store_loses_and_doubles_nothing() {
    let store = MemoryStore::new();
    let (nodes, [(ann, mut ann_events), (_bob, mut bob_events)]) = two_that_talk(&store).await;
    let sending = tokio::spawn(async move {
        for number in 0..60 {
            let text = number.to_string();
            let sent = ann.send_message("general", &text, Final::Yes);
            sent.await.unwrap();
        }
        ann
    });
    for round in 0..3 {
        message(&mut bob_events).await;
        nodes[round % 2].store.set_cut(true);
        nodes[0].store.lose_answers(1);
        store.restart();
        tokio::time::sleep(Duration::from_millis(20)).await;
        nodes[round % 2].store.set_cut(false);
    }
    let _ann = sending.await.unwrap();
    let own = messages(&mut ann_events, 60).await;
    let other = messages(&mut bob_events, 57).await;
    let all: Vec<String> = (0..60).map(|number| number.to_string()).collect();
    assert_eq!(own, all);
    assert_eq!(other, all[3..]);
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_for_a_hanging_store_and_is_stored_once() {
    let store = MemoryStore::new();
    let nodes = [node(&store).await, node(&store).await];
    nodes[0].backend.put_channel("general", "").await.unwrap();
    let (ann, _ann_events) = login(&nodes[0], "ann").await;
    let (bob, mut events) = login(&nodes[1], "bob").await;
    sees(&ann, "general").await;
    sees(&bob, "general").await;
    nodes[0].store.set_paused(true);
    let sending = tokio::spawn(async move {
        let sent = ann.send_message("general", "hi", Final::Yes);
        sent.await.unwrap();
        ann
    });
    // It is sent several times.
    tokio::time::sleep(Duration::from_millis(1_000)).await;
    assert!(!sending.is_finished());
    nodes[0].store.set_paused(false);
    let ann = sending.await.unwrap();
    let after = ann.send_message("general", "after", Final::Yes);
    after.await.unwrap();
    assert_eq!(messages(&mut events, 2).await, ["hi", "after"]);
}

#[tokio::test(start_paused = true)]
async fn an_unreachable_store_fails_calls_and_redirects_clients() {
    let mut hasty = options();
    hasty.send_timeout = Duration::from_millis(300);
    hasty.max_outage = Duration::from_millis(1_500);
    let node = node_on(MemoryStore::new(), hasty).await;
    node.backend.put_channel("general", "").await.unwrap();
    let (ann, mut events) = login(&node, "ann").await;
    sees(&ann, "general").await;
    assert_eq!(node.backend.ready(), Ok(()));
    node.store.set_paused(true);
    let sent = ann.send_message("general", "hi", Final::Yes).await;
    let Err(CallError::Remote(error)) = sent else {
        panic!("{sent:?}")
    };
    assert!(
        error.message().contains("may have been delivered"),
        "{error}"
    );
    until(async || node.backend.ready() == Err("the store does not answer")).await;
    node.store.set_cut(true);
    assert_eq!(
        node.backend.ready(),
        Err("the node has no connection to the store")
    );
    let closed = async { while events.next_link().await.is_some() {} };
    tokio::time::timeout(DEADLINE, closed)
        .await
        .expect("closed");
    assert_eq!(node.backend.ready(), Err("the node has lost its cluster"));
    let (late, _events) = client(&node.dialer, "bob", "secret");
    late.ready().await.unwrap_err();
    // It comes back by itself.
    node.store.set_paused(false);
    node.store.set_cut(false);
    until(async || node.backend.ready().is_ok()).await;
    let (ann, _events) = login(&node, "ann").await;
    let sent = ann.send_message("general", "back", Final::Yes);
    sent.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_full_store_refuses_with_a_clear_error() {
    let node = node_on(MemoryStore::new(), options()).await;
    node.backend.put_channel("general", "").await.unwrap();
    let (ann, _events) = login(&node, "ann").await;
    sees(&ann, "general").await;
    node.store.set_full(true);
    let refused = ann.send_message("general", "hi", Final::Yes).await;
    let error = refused.expect_err("an answer that refuses").to_string();
    assert!(error.contains("no room"), "{error}");
    // What needs no room goes on.
    ann.get_channels().await.unwrap();
    let (new, _events) = client(&node.dialer, "bob", "secret");
    let error = new.ready().await.unwrap_err().to_string();
    assert!(error.contains("no room for a new user"), "{error}");
    login(&node, "ann").await;
    node.store.set_full(false);
    let sent = ann.send_message("general", "hi", Final::Yes);
    sent.await.unwrap();
    login(&node, "bob").await;
}

/// Lets those who are connected hear what follows a loss, then closes them with 1012 within five seconds. The
/// nodes serve new ones meanwhile.
async fn recovers(nodes: &[Member; 2], mut talking: [(Client, Events); 2]) {
    talk(&mut talking, "after").await;
    let new = login(&nodes[1], "cid").await;
    sees(&new.0, "general").await;
    let lost_at = Instant::now();
    for (_, events) in &mut talking {
        let code = loop {
            match events.next_link().await.expect("a close") {
                LinkEvent::State(LinkState::Closed { reason }) => break reason,
                LinkEvent::State(_) => {}
                other => panic!("{other:?}"),
            }
        };
        let is_restart = matches!(&code, CloseReason::Peer(close) if close.code == 1012);
        assert!(is_restart, "{code:?}");
        assert!(lost_at.elapsed() <= Duration::from_secs(5));
    }
    until(async || nodes.iter().all(|node| node.backend.ready().is_ok())).await;
    let mut talking = [login(&nodes[0], "ann").await, login(&nodes[1], "bob").await];
    for text in ["then", "at last"] {
        talk(&mut talking, text).await;
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_loss_clients_hear_what_follows_and_are_closed_with_1012() {
    for loss in ["emptied", "deleted", "rolled back"] {
        let store = MemoryStore::new();
        let (nodes, mut talking) = two_that_talk(&store).await;
        let copy = store.snapshot();
        talk(&mut talking, "forgotten").await;
        match loss {
            "emptied" => store.restart_empty(),
            "deleted" => store.delete_log("snek"),
            _ => store.restore(&copy),
        }
        recovers(&nodes, talking).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_copy_older_than_a_login_shows_no_old_message() {
    let store = MemoryStore::new();
    let (nodes, mut talking) = two_that_talk(&store).await;
    let copy = store.snapshot();
    for number in 0..3 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        talk(&mut talking, &format!("forgotten {number}")).await;
    }
    drop(talking);
    until(async || !nodes[0].backend.is_online("ann").await.unwrap()).await;
    let talking = [login(&nodes[0], "ann").await, login(&nodes[1], "bob").await];
    store.restore(&copy);
    // What is stored before the nodes have looked is from before, for all that they know.
    tokio::time::sleep(Duration::from_millis(10)).await;
    until(async || nodes.iter().all(|node| node.backend.ready().is_ok())).await;
    recovers(&nodes, talking).await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_cannot_compare_its_messages_is_not_ready() {
    let store = MemoryStore::new();
    let (nodes, _talking) = two_that_talk(&store).await;
    until(async || nodes[0].backend.ready().is_ok()).await;
    nodes[0].store.set_paused(true);
    until(async || nodes[0].backend.ready().is_err()).await;
    assert_eq!(nodes[1].backend.ready(), Ok(()));
    nodes[0].store.set_paused(false);
    until(async || nodes[0].backend.ready().is_ok()).await;
}

#[tokio::test(start_paused = true)]
async fn a_node_denied_by_the_store_ends_with_the_reason() {
    let store = MemoryStore::new();
    let opened = ClusterBackend::open(Arc::new(store.clone()), options()).await;
    let (backend, runner) = opened.unwrap();
    let running = tokio::spawn(runner.run());
    until(async || backend.ready().is_ok()).await;
    store.set_denied(true);
    store.restart();
    let error = running.await.unwrap();
    assert!(error.is_permanent(), "{error}");
    assert_eq!(backend.ready(), Err("the node has lost its cluster"));
}
