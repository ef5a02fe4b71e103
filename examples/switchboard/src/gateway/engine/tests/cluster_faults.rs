//! Engines on a store that fails: what is acknowledged is stored once, and each engine comes back by itself.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use exoclaw_proto::auth::Auth;
use exoclaw_proto::net::AppError;
use http::{Method, Request, StatusCode};
use rpc_core::store::{MemoryStore, StoreError};
use switchboard_testing::sim::Rng;
use tokio::time::{sleep, timeout};

use super::cluster::{Node, UNAVAILABLE, at_gate, gated};
use super::harness::*;
use crate::gateway::engine::NOT_STORED;
use crate::gateway::site::Site;
use crate::gateway::tool::Tools;

#[tokio::test(start_paused = true)]
async fn a_gateway_presumed_dead_is_not_ready_until_it_is_back() {
    let store = MemoryStore::new();
    let Node { engine, .. } = Node::on(Arc::new(store.clone()), []).await;
    let engine = Arc::new(engine);
    let site = Site::new(Arc::clone(&engine), Auth::open(), Tools::new(), None);
    let status = async |method, path| {
        let request = Request::builder().method(method).uri(path);
        let request = request.body(Bytes::new()).unwrap();
        site.respond(request).await.status()
    };
    assert_eq!(status(Method::GET, "/ready").await, StatusCode::OK);
    store.set_paused(true);
    engine.store.lost().await;
    for method in [Method::GET, Method::HEAD] {
        let ready = status(method, "/ready").await;
        assert_eq!(ready, StatusCode::SERVICE_UNAVAILABLE);
    }
    // It comes back by itself: no one has to start it again.
    assert_eq!(status(Method::GET, "/health").await, StatusCode::OK);
    assert_eq!(status(Method::GET, "/").await, StatusCode::OK);
    store.set_paused(false);
    while !engine.store.is_ready() {
        sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(status(Method::GET, "/ready").await, StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn a_question_is_stored_before_it_is_answered_and_outlives_its_node() {
    let store = MemoryStore::new();
    let mut one = Node::start(&store, [gated("never")]).await;
    let two = Node::start(&store, [answer("next")]).await;
    let chat = from("ann", "hello?");
    {
        let mut heard = Heard::default();
        let mut asked = Box::pin(one.engine.answer(&chat, named("1"), &mut heard));
        at_gate(asked.as_mut(), &mut one.heard).await;
        one.store().kill();
        // No destructor runs.
        std::mem::forget(asked);
    }
    let ended = "failed: the gateway ended before the answer was complete";
    assert_eq!(turns(&two.engine, "ann").await, [["hello?", "", ended]]);
    // The same question again takes its place.
    let mut heard = Heard::default();
    let again = two.engine.answer(&chat, named("1"), &mut heard);
    again.await.unwrap();
    assert_eq!(turns(&two.engine, "ann").await, [["hello?", "next", ""]]);
    let sessions = two.store().sessions(9).await.unwrap();
    assert_eq!((sessions[0].count, sessions[0].kept), (1, 1));
    std::mem::forget(one.engine);
}

#[tokio::test(start_paused = true)]
async fn a_gateway_denied_by_its_store_ends_with_the_reason() {
    let store = MemoryStore::new();
    let node = Node::on(Arc::new(store.clone()), []).await;
    let failed = node.store().failed();
    let mut failed = std::pin::pin!(failed);
    assert!(timeout(Duration::from_secs(60), &mut failed).await.is_err());
    store.set_denied(true);
    assert!(matches!(failed.await, StoreError::Denied { .. }));
    store.set_denied(false);
    while !node.store().is_ready() {
        sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn while_the_store_is_away_or_full_chats_fail_clearly_and_are_not_stored() {
    let store = MemoryStore::new();
    let scripts = [answer("one"), gated("two"), answer("lost"), answer("three")];
    let mut node = Node::on(Arc::new(store.clone()), scripts).await;
    node.chat(&from("ann", "1")).await.unwrap();
    // It comes back while an answer waits to be stored.
    let chat = from("ann", "2");
    let mut heard = Heard::default();
    {
        let mut second = std::pin::pin!(node.engine.chat(&chat, &mut heard));
        at_gate(second.as_mut(), &mut node.heard).await;
        store.set_cut(true);
        node.model.open_gate();
        let early = timeout(Duration::from_millis(300), &mut second).await;
        assert!(early.is_err());
        store.set_cut(false);
        second.await.unwrap();
    }
    store.set_cut(true);
    assert_eq!(node.refused(&from("ann", "3")).await, UNAVAILABLE);
    store.set_cut(false);
    store.set_full(true);
    let full = node.chat(&from("ann", "4")).await;
    let Err(AppError::Refused(why) | AppError::Failed(why)) = full else {
        panic!("{full:?}");
    };
    assert!(
        [NOT_STORED, UNAVAILABLE].contains(&why.message()),
        "{why:?}"
    );
    store.set_full(false);
    while node.chat(&from("ann", "5")).await.is_err() {
        sleep(Duration::from_millis(100)).await;
    }
    let history = node.history("ann").await;
    assert_eq!(
        (&history[..2], history.len()),
        (&["one".to_owned(), "two".to_owned()][..], 3)
    );
    let other = Node::start(&store, []).await;
    assert_eq!(other.history("ann").await, history);
}

#[tokio::test(start_paused = true)]
async fn an_emptied_store_is_filled_again() {
    let store = MemoryStore::new();
    let node = Node::start(&store, (0..99).map(|at| answer(&at.to_string()))).await;
    node.chat(&from("ann", "1")).await.unwrap();
    store.restart_empty();
    while node.chat(&from("ann", "2")).await.is_err() {
        sleep(Duration::from_millis(100)).await;
    }
    let history = node.history("ann").await;
    assert_eq!(history.len(), 1);
    let other = Node::start(&store, []).await;
    assert_eq!(other.history("ann").await, history);
    node.engine.close().await;
}

/// Breaks something of a node's connection or of the store behind it, for some seconds of virtual time.
async fn fail(rng: &mut Rng, line: &MemoryStore) {
    let time = Duration::from_millis(100 + 2 * rng.below(3_000));
    match rng.below(7) {
        0 => {
            line.set_cut(true);
            sleep(time).await;
            line.set_cut(false);
        }
        1 => {
            line.set_paused(true);
            sleep(time).await;
            line.set_paused(false);
        }
        2 => {
            line.set_delay(time / 10);
            sleep(time).await;
            line.set_delay(Duration::ZERO);
        }
        3 => {
            line.set_full(true);
            sleep(time).await;
            line.set_full(false);
        }
        4 => line.lose_answers(1 + rng.below(3)),
        5 => line.restart(),
        _ => sleep(time).await,
    }
}

/// Three engines whose store fails: what a chat was told holds.
async fn live(seed: u64) {
    let rng = &mut Rng::new(seed);
    let first = MemoryStore::new();
    let lines = [first.connect(), first.connect(), first.connect()];
    let mut nodes = Vec::new();
    for line in &lines {
        let scripts = (0..200).map(|_| answer("ok"));
        nodes.push(Node::on(Arc::new(line.clone()), scripts).await);
    }
    let mut told = Vec::new();
    for round in 0..20 {
        let chats = (0..6).map(|number| {
            let node = &nodes[usize::try_from(rng.below(3)).unwrap()];
            let text = format!("{round}-{number}");
            let session = ["ann", "bob"][number % 2];
            async move {
                let outcome = node.chat(&from(session, &text)).await;
                (session, text, outcome)
            }
        });
        let chats = futures_util::future::join_all(chats.collect::<Vec<_>>());
        let line = &lines[usize::try_from(rng.below(3)).unwrap()];
        let (outcomes, ()) = tokio::join!(chats, fail(rng, line));
        told.extend(outcomes);
    }
    // All is well again, and all are there.
    sleep(Duration::from_secs(30)).await;
    for node in &nodes {
        node.chat(&from("ann", "at the end")).await.unwrap();
    }
    for session in ["ann", "bob"] {
        let stored = turns(&nodes[0].engine, session).await;
        for node in &nodes {
            assert_eq!(turns(&node.engine, session).await, stored, "seed {seed}");
        }
        for (_, text, outcome) in told.iter().filter(|it| it.0 == session) {
            let count = stored.iter().filter(|turn| turn[0] == *text).count();
            let is_right = match outcome {
                Ok(()) => count == 1,
                Err(AppError::Refused(_)) => count == 0,
                Err(_) => count <= 1,
            };
            assert!(
                is_right,
                "seed {seed}: {text} is there {count} times after {outcome:?}"
            );
        }
        // A later round comes later.
        let rounds = stored
            .iter()
            .filter_map(|turn| turn[0].split_once('-')?.0.parse::<u64>().ok());
        assert!(rounds.is_sorted(), "seed {seed}: {stored:?}");
    }
    assert!(told.iter().any(|it| it.2.is_ok()), "seed {seed}");
}

#[tokio::test(start_paused = true)]
async fn acknowledged_turns_are_stored_once_and_in_order_whatever_fails() {
    for seed in 1..=10 {
        live(seed).await;
    }
}
