//! The methods beside the chat.

use std::sync::atomic::{AtomicU64, Ordering};

use exoclaw_proto::binding::{Binding, Bindings};
use exoclaw_proto::budget::Budgets;
use exoclaw_proto::frame::{Call, Request};
use futures_util::poll;
use rpc_core::Limits;
use rpc_core::store::MemoryStore;
use serde_json::{Value, json};

use super::harness::*;
use crate::gateway::memory::Turn;
use crate::gateway::store::Commit;

async fn store(harness: &Harness, commits: impl IntoIterator<Item = Commit>) {
    for commit in commits {
        harness.engine.store.commit(commit, None).await.unwrap();
    }
}

/// The answer to an extension, or the error in words.
async fn ask(harness: &Harness, method: &str, params: Value) -> Result<Value, String> {
    let text = json!({"id": "1", "method": method, "params": params}).to_string();
    let limits = Limits::default();
    let request = Request::decode(&text, &limits).unwrap();
    let engine = &harness.engine;
    let answer = match request.call {
        Call::ChatHistory(it) => engine
            .history(&it.session, it.limit)
            .await
            .map(|it| json!(it)),
        Call::SessionList => engine.sessions().await.map(|it| json!(it)),
        Call::SessionClear(it) => engine.clear(&it).await.map(|it| json!(it)),
        Call::BudgetStatus(it) => engine
            .budgets(it.session.as_ref())
            .await
            .map(|it| json!(it)),
        Call::MemorySearch(it) => engine.search(&it).await.map(|it| json!(it)),
        other => panic!("{other:?} is not an extension"),
    };
    answer.map_err(|error| error.message().to_owned())
}

fn ann() -> Value {
    json!({"channel": "ws", "account": "ann"})
}

#[tokio::test]
async fn a_history_is_the_last_turns_oldest_first() {
    let harness = Harness::new(["a", "b"].map(answer)).await;
    for text in ["1", "2"] {
        harness.chat(&from("ann", text)).await.1.unwrap();
    }
    let turn = |user, assistant| json!({"user": user, "assistant": assistant, "at": NOON});
    let history = ask(&harness, "chat.history", ann()).await.unwrap();
    assert_eq!(history, json!([turn("1", "a"), turn("2", "b")]));
    let mut last = ann();
    last["limit"] = json!(1);
    let history = ask(&harness, "chat.history", last).await.unwrap();
    assert_eq!(history, json!([turn("2", "b")]));
    let unknown = json!({"channel": "ws", "account": "bob"});
    let history = ask(&harness, "chat.history", unknown).await.unwrap();
    assert_eq!(history, json!([]));
}

#[tokio::test]
async fn a_cleared_session_has_no_turns_but_its_used_tokens() {
    let harness = Harness::new(["a", "b"].map(answer)).await;
    harness
        .chat(&from("ann", "My name is Ann."))
        .await
        .1
        .unwrap();
    let cleared = ask(&harness, "session.clear", ann()).await.unwrap();
    assert_eq!(cleared, json!({"turns": 1}));
    let again = ask(&harness, "session.clear", ann()).await.unwrap();
    assert_eq!(again, json!({"turns": 0}));
    harness.chat(&from("ann", "hi")).await.1.unwrap();
    assert_eq!(harness.model.asked()[1].messages, ["user: hi"]);
    assert_eq!(harness.used().await, 30);
}

#[tokio::test]
async fn a_session_is_cleared_behind_the_turn_that_runs() {
    let gated = Script::Answer(vec![Step::Gate, say("x"), stop()]);
    let mut harness = Harness::new([gated]).await;
    let chat = from("ann", "hi");
    let mut heard = Heard::default();
    let mut first = std::pin::pin!(harness.engine.chat(&chat, &mut heard));
    tokio::select! {
        _ = &mut first => panic!("it waits"),
        point = harness.heard.recv() => assert_eq!(point, Some("gate")),
    }
    let mut cleared = std::pin::pin!(ask(&harness, "session.clear", ann()));
    assert!(poll!(&mut cleared).is_pending());
    assert_eq!(harness.engine.turns.waiting(), 1);
    harness.model.open_gate();
    assert_eq!(first.await, Ok(()));
    assert_eq!(cleared.await, Ok(json!({"turns": 1})));
}

#[tokio::test]
async fn the_status_names_this_version_its_plugins_and_the_sessions_of_the_last_day() {
    let harness = Harness::new([answer("a")]).await;
    let seen = |session: &str, ago| Commit::new(session, NOON - ago);
    let day = 24 * 60 * 60;
    let sessions = [
        seen("old", day + 1),
        seen("older", 9 * day),
        seen("new", day),
    ];
    store(&harness, sessions).await;
    harness.chat(&from("ann", "hi")).await.1.unwrap();
    let status = harness.engine.status().await;
    assert_eq!(status.version, exoclaw_proto::limits::HELLO_VERSION);
    assert_eq!((status.plugins, status.sessions), (5, 2));
}

#[tokio::test]
async fn sessions_are_listed() {
    let harness = Harness::new(["a", "b"].map(answer)).await;
    for account in ["ann", "bob"] {
        harness.chat(&from(account, "1")).await.1.unwrap();
    }
    let list = ask(&harness, "session.list", Value::Null).await.unwrap();
    let mut keys: Vec<_> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["key"])
        .collect();
    keys.sort_unstable_by_key(ToString::to_string);
    assert_eq!(keys, ["default:ws:ann:main", "default:ws:bob:main"]);
    assert_eq!(list[0]["turns"], 1);
    assert_eq!(list[0]["last_active"], NOON);
    ask(&harness, "session.clear", ann()).await.unwrap();
    let list = ask(&harness, "session.list", Value::Null).await.unwrap();
    let of_ann = |it: &&Value| it["key"] == "default:ws:ann:main";
    let cleared = list.as_array().unwrap().iter().find(of_ann).unwrap();
    assert_eq!(cleared["turns"], 0);
}

#[tokio::test]
async fn budgets_report_what_is_used() {
    let budgets = Budgets {
        session: Some(50),
        daily: Some(60),
        ..Budgets::default()
    };
    let harness = Harness::limited(budgets, [answer("a")]).await;
    harness.chat(&from("ann", "1")).await.1.unwrap();
    let status = ask(&harness, "budget.status", ann()).await.unwrap();
    assert_eq!(status["session"], json!({"used": 15, "limit": 50}));
    assert_eq!(status["daily"], json!({"used": 15, "limit": 60}));
    assert_eq!(status["monthly"], json!({"used": 15}));
    let status = ask(&harness, "budget.status", Value::Null).await.unwrap();
    assert_eq!(status["session"], Value::Null);
}

#[tokio::test]
async fn a_new_day_begins_without_usage() {
    static NOW: AtomicU64 = AtomicU64::new(NOON);
    let clock = || NOW.load(Ordering::Relaxed);
    let (store, budgets) = (MemoryStore::new(), Budgets::default());
    let harness = Harness::build(&store, budgets, clock, [answer("a")], |_| ()).await;
    harness.chat(&from("ann", "1")).await.1.unwrap();
    NOW.store(NOON + 24 * 60 * 60, Ordering::Relaxed);
    let status = ask(&harness, "budget.status", ann()).await.unwrap();
    assert_eq!(status["daily"], json!({"used": 0}));
    // The day is not the last one of its month.
    assert_eq!(status["monthly"], json!({"used": 15}));
    assert_eq!(status["session"], json!({"used": 15}));
}

#[tokio::test]
async fn finds_messages_of_the_session() {
    let harness = Harness::new([answer("a")]).await;
    harness
        .chat(&from("ann", "My name is Ann."))
        .await
        .1
        .unwrap();
    let name = json!([{"text": "My name is Ann.", "at": NOON}]);
    for (account, query, expected) in [
        ("ann", "name", name),
        ("ann", "zebra", json!([])),
        ("bob", "name", json!([])),
    ] {
        let search = json!({"channel": "ws", "account": account, "query": query});
        let found = ask(&harness, "memory.search", search).await.unwrap();
        assert_eq!(found, expected, "{account} {query}");
    }
}

#[tokio::test]
async fn a_list_has_fifty_items_by_default_and_a_thousand_at_most() {
    let harness = Harness::new([]).await;
    let commits: Vec<_> = (0..60)
        .map(|at| {
            let turn = Turn::new(at.to_string(), "a", at);
            Commit::new("default:ws:ann:main", at).with_turn(turn)
        })
        .collect();
    store(&harness, commits).await;
    for (limit, expected) in [
        (None, 50),
        (Some(60), 60),
        (Some(9), 9),
        (Some(u64::MAX), 60),
    ] {
        let mut asked = ann();
        asked["limit"] = json!(limit);
        let history = ask(&harness, "chat.history", asked).await.unwrap();
        assert_eq!(history.as_array().unwrap().len(), expected, "{limit:?}");
    }
    let sessions: Vec<_> = (0..1_001)
        .map(|number| Commit::new(format!("default:ws:{number}:main"), NOON))
        .collect();
    store(&harness, sessions).await;
    let list = ask(&harness, "session.list", Value::Null).await.unwrap();
    assert_eq!(list.as_array().unwrap().len(), 1_000);
}

#[tokio::test]
async fn refuses_ambiguous_input() {
    let router = Bindings::new(
        vec![Binding {
            channel: Some("x".into()),
            ..Binding::new("a")
        }],
        None,
    )
    .unwrap();
    let harness = Harness::with([], |parts| parts.router = router).await;
    for method in ["chat.history", "session.clear", "budget.status"] {
        let why = ask(&harness, method, ann()).await.unwrap_err();
        assert_eq!(why, "no agent configured for ws:ann:main");
        let long = json!({"channel": "x".repeat(513), "account": "a"});
        let why = ask(&harness, method, long).await.unwrap_err();
        let expected = format!("invalid {method} params: channel is longer than 512 bytes");
        assert_eq!(why, expected);
    }
}
