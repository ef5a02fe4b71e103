//! Engines on one store: one history, one order of turns, one budget, whoever dies.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use exoclaw_proto::budget::{BudgetScope, Budgets, Exceeded};
use exoclaw_proto::frame::ChatSend;
use exoclaw_proto::net::AppError;
use futures_util::future::join_all;
use rpc_core::cluster::LeaseConfig;
use rpc_core::store::{Bucket, BucketConfig, LogConfig, MemoryStore, Store, token};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::harness::*;
use crate::gateway::config::AgentConfig;
use crate::gateway::engine::{Engine, EngineParts, NOT_STORED};
use crate::gateway::store::{GatewayStore, GatewayStoreConfig, Record, StoreLimits};
use crate::gateway::tool::Tools;
use crate::gateway::usage::UsageEntry;
use crate::model::{ChatModel, ModelError};

const LEASE: Duration = Duration::from_secs(2);
pub(super) const UNAVAILABLE: &str = "storage unavailable: try again later";

/// A gateway of a cluster.
pub(super) struct Node {
    pub(super) engine: Engine,
    pub(super) model: Arc<Model>,
    pub(super) heard: mpsc::UnboundedReceiver<&'static str>,
}

/// How a node differs from the others.
#[derive(Default)]
struct Like {
    budgets: Budgets,
    limits: StoreLimits,
    is_learning: bool,
}

impl Node {
    /// A gateway with a connection of its own.
    pub(super) async fn start(
        store: &MemoryStore,
        scripts: impl IntoIterator<Item = Script>,
    ) -> Self {
        Self::on(Arc::new(store.connect()), scripts).await
    }

    /// A gateway with this connection.
    pub(super) async fn on(
        store: Arc<dyn Store>,
        scripts: impl IntoIterator<Item = Script>,
    ) -> Self {
        Self::like(Like::default(), store, scripts).await
    }

    async fn with(
        store: &MemoryStore,
        budgets: Budgets,
        scripts: impl IntoIterator<Item = Script>,
    ) -> Self {
        let like = Like {
            budgets,
            ..Like::default()
        };
        Self::like(like, Arc::new(store.connect()), scripts).await
    }

    /// A gateway that learns of its turns.
    pub(super) async fn learning(
        store: &MemoryStore,
        scripts: impl IntoIterator<Item = Script>,
    ) -> Self {
        let like = Like {
            is_learning: true,
            ..Like::default()
        };
        Self::like(like, Arc::new(store.connect()), scripts).await
    }

    async fn like(
        like: Like,
        store: Arc<dyn Store>,
        scripts: impl IntoIterator<Item = Script>,
    ) -> Self {
        let config = GatewayStoreConfig::default()
            .with_budgets(like.budgets)
            .with_limits(like.limits)
            .with_lease(LeaseConfig {
                lease: LEASE,
                margin: LEASE / 10,
                ..LeaseConfig::default()
            })
            .with_patience(Duration::from_secs(3));
        let cluster = GatewayStore::open(store, config, || NOON);
        let (told, heard) = mpsc::unbounded_channel();
        let model = Model::new(scripts, told);
        let asked = Arc::clone(&model) as Arc<dyn ChatModel>;
        let store = cluster.await.unwrap();
        let mut parts = EngineParts::new(AgentConfig::default(), asked, Tools::new(), store);
        parts.clock = || NOON;
        parts.memory.semantic = like.is_learning;
        Self {
            engine: Engine::new(parts),
            model,
            heard,
        }
    }

    pub(super) fn store(&self) -> &GatewayStore {
        &self.engine.store
    }

    pub(super) async fn chat(&self, chat: &ChatSend) -> Result<(), AppError> {
        self.engine.chat(chat, &mut Heard::default()).await
    }

    pub(super) async fn refused(&self, chat: &ChatSend) -> String {
        match self.chat(chat).await {
            Err(AppError::Refused(error)) => error.message().to_owned(),
            other => panic!("not refused: {other:?}"),
        }
    }

    /// What was answered in a session, oldest first.
    pub(super) async fn history(&self, account: &str) -> Vec<String> {
        let turns = turns(&self.engine, account).await;
        turns.into_iter().map(|[_, answer, _]| answer).collect()
    }

    pub(super) async fn daily(&self) -> u64 {
        self.store().used(None).await.unwrap().1
    }
}

/// Lets a chat go until its model waits at the gate.
pub(super) async fn at_gate(
    chat: Pin<&mut impl Future<Output = Result<(), AppError>>>,
    heard: &mut mpsc::UnboundedReceiver<&'static str>,
) {
    let reached = async { while heard.recv().await != Some("gate") {} };
    tokio::select! {
        outcome = chat => panic!("it has ended: {outcome:?}"),
        () = reached => {}
    }
}

pub(super) fn gated(text: &str) -> Script {
    Script::Answer(vec![Step::Gate, say(text), bill(10, 5), stop()])
}

#[tokio::test(start_paused = true)]
async fn every_node_knows_the_conversation() {
    let store = MemoryStore::new();
    let one = Node::start(&store, [answer("one")]).await;
    let two = Node::start(&store, [answer("two")]).await;
    let three = Node::start(&store, []).await;
    one.chat(&from("ann", "my name is Ann")).await.unwrap();
    two.chat(&from("ann", "and now?")).await.unwrap();
    let asked = two.model.asked().remove(0).messages;
    let known = ["user: my name is Ann", "assistant: one", "user: and now?"];
    assert_eq!(asked, known);
    assert_eq!(three.history("ann").await, ["one", "two"]);
    assert_eq!(three.daily().await, 30);
    let log = three.engine.usage(9).await.unwrap();
    assert_eq!(log.iter().map(UsageEntry::tokens).sum::<u64>(), 30);
    let sessions = three.store().sessions(9).await.unwrap();
    let session = &sessions[0];
    assert_eq!(session.session, "default:ws:ann:main");
    assert_eq!((sessions.len(), session.count, session.tokens), (1, 2, 30));
    assert_eq!(three.store().session_count(0).await, Ok(1));
}

#[tokio::test(start_paused = true)]
async fn two_turns_of_one_session_on_two_nodes_follow_one_another() {
    let store = MemoryStore::new();
    let mut one = Node::start(&store, [gated("first")]).await;
    let two = Node::start(&store, [answer("second")]).await;
    let chat = from("ann", "hi");
    let mut heard = Heard::default();
    let mut first = std::pin::pin!(one.engine.chat(&chat, &mut heard));
    at_gate(first.as_mut(), &mut one.heard).await;
    let mut second = std::pin::pin!(two.chat(&chat));
    let early = timeout(Duration::from_millis(200), &mut second).await;
    assert!(early.is_err() && two.model.asked().is_empty());
    // A chat of another session does not wait.
    one.model.open_gate();
    let (first, second) = tokio::join!(first, second);
    assert_eq!((first, second), (Ok(()), Ok(())));
    let asked = two.model.asked().remove(0).messages;
    assert_eq!(asked, ["user: hi", "assistant: first", "user: hi"]);
    assert_eq!(one.history("ann").await, ["first", "second"]);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_while_its_turn_waits_for_another_node_delays_no_other() {
    let store = MemoryStore::new();
    let mut one = Node::start(&store, [gated("first")]).await;
    let two = Node::start(&store, []).await;
    let three = Node::start(&store, [answer("third")]).await;
    let chat = from("ann", "hi");
    let mut heard = Heard::default();
    let mut first = std::pin::pin!(one.engine.chat(&chat, &mut heard));
    at_gate(first.as_mut(), &mut one.heard).await;
    let left = timeout(Duration::from_millis(150), two.chat(&chat)).await;
    assert!(left.is_err());
    one.model.open_gate();
    first.await.unwrap();
    three.chat(&chat).await.unwrap();
    assert_eq!(two.history("ann").await, ["first", "third"]);
}

#[tokio::test(start_paused = true)]
async fn every_node_knows_an_abandoned_answer() {
    let store = MemoryStore::new();
    let begun = Script::Answer(vec![say("I was"), Step::Gate]);
    let broken = Script::Answer(vec![say("well"), Step::Break(ModelError::Cut)]);
    let mut one = Node::start(&store, [begun, broken]).await;
    let two = Node::start(&store, [answer("yes")]).await;
    {
        let chat = from("ann", "hello");
        let mut heard = Heard::default();
        let mut left = Box::pin(one.engine.chat(&chat, &mut heard));
        at_gate(left.as_mut(), &mut one.heard).await;
    }
    let stopped = ["hello", "I was", "stopped"];
    assert_eq!(turns(&two.engine, "ann").await, [stopped]);
    failure(one.chat(&from("ann", "go on")).await);
    two.chat(&from("ann", "still there?")).await.unwrap();
    let asked = two.model.asked().remove(0).messages;
    let known = [
        "user: hello",
        "assistant: I was\n\n[stopped]",
        "user: go on",
        "assistant: well",
        "user: still there?",
    ];
    assert_eq!(asked, known);
    let why =
        "broken off: the provider closed the connection before the end of the answer; try again";
    let told = turns(&one.engine, "ann").await;
    assert_eq!(
        told[1..],
        [["go on", "well", why], ["still there?", "yes", ""]]
    );
}

#[tokio::test(start_paused = true)]
async fn three_nodes_overshoot_a_budget_by_the_runs_in_flight_at_most() {
    const AT_ONCE: u64 = 4;
    const LIMIT: u64 = 200;
    let store = MemoryStore::new();
    let budgets = Budgets {
        daily: Some(LIMIT),
        ..Budgets::default()
    };
    let mut nodes = Vec::new();
    for _ in 0..3 {
        let scripts = (0..100).map(|_| answer("ok"));
        nodes.push(Node::with(&store, budgets, scripts).await);
    }
    // A chat is estimated at 2 tokens and uses 15.
    let chats = nodes.iter().enumerate().flat_map(|(at, node)| {
        (0..AT_ONCE).map(move |line| async move {
            let mut answered = 0;
            for _ in 0..20 {
                match node.chat(&from(&format!("{at}-{line}"), "hi")).await {
                    Ok(()) => answered += 1,
                    Err(AppError::Refused(why)) => {
                        let why = Exceeded::parse(why.message()).expect("a budget");
                        assert_eq!((why.scope, why.limit), (BudgetScope::Daily, LIMIT));
                        assert!(why.used <= LIMIT + 12 * 13);
                    }
                    other => panic!("{other:?}"),
                }
            }
            answered
        })
    });
    let answered: u64 = join_all(chats).await.into_iter().sum();
    let most = LIMIT + 3 * AT_ONCE * 13;
    assert!(
        15 * answered <= most && 15 * answered + 2 > LIMIT,
        "{answered}"
    );
    for node in &nodes {
        assert_eq!(node.daily().await, 15 * answered);
    }
    let log = nodes[0].engine.usage(1000).await.unwrap();
    assert_eq!(log.len() as u64, answered);
}

#[tokio::test(start_paused = true)]
async fn a_session_budget_holds_on_all_nodes() {
    let store = MemoryStore::new();
    let budgets = Budgets {
        session: Some(16),
        ..Budgets::default()
    };
    let one = Node::with(&store, budgets, [answer("one")]).await;
    let two = Node::with(&store, budgets, [answer("other")]).await;
    one.chat(&from("ann", "hi")).await.unwrap();
    let why = two.refused(&from("ann", "hi")).await;
    assert!(
        why.starts_with("token budget exceeded (session: 15/16)"),
        "{why}"
    );
    two.chat(&from("bob", "hi")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_node_that_dies_in_a_turn_does_not_hold_its_session() {
    let store = MemoryStore::new();
    let mut one = Node::start(&store, [gated("never")]).await;
    let two = Node::start(&store, [answer("next")]).await;
    let chat = from("ann", "hi");
    let engine = Arc::new(one.engine);
    let dying = Arc::clone(&engine);
    let mut first = Box::pin(async move {
        let chat = from("ann", "hi");
        dying.chat(&chat, &mut Heard::default()).await
    });
    at_gate(first.as_mut(), &mut one.heard).await;
    engine.store.kill();
    // No destructor runs.
    std::mem::forget(first);
    two.chat(&chat).await.unwrap();
    assert_eq!(two.history("ann").await, ["", "next"]);
    // With the estimate of the question.
    assert_eq!(two.daily().await, 16);
}

#[tokio::test(start_paused = true)]
async fn a_node_presumed_dead_cannot_store_its_answer_and_its_tokens_count() {
    let store = MemoryStore::new();
    let mut one = Node::start(&store, [gated("late")]).await;
    let two = Node::start(&store, [answer("next")]).await;
    let chat = from("ann", "hi");
    let mut heard = Heard::default();
    let mut first = std::pin::pin!(one.engine.chat(&chat, &mut heard));
    at_gate(first.as_mut(), &mut one.heard).await;
    one.store().pause();
    two.chat(&chat).await.unwrap();
    one.model.open_gate();
    assert_eq!(failure(first.await), NOT_STORED);
    assert_eq!(two.history("ann").await, ["", "next"]);
    let sessions = two.store().sessions(9).await.unwrap();
    assert_eq!(sessions[0].tokens, 30);
    assert_eq!(two.daily().await, 30);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_loses_its_lease_comes_back_as_another_and_its_turn_is_fenced() {
    let store = MemoryStore::new();
    let budgets = Budgets {
        daily: Some(1000),
        ..Budgets::default()
    };
    let scripts = [gated("late"), answer("again")];
    let mut one = Node::with(&store, budgets, scripts).await;
    let two = Node::with(&store, budgets, [answer("next")]).await;
    let chat = from("ann", "hi");
    let mut heard = Heard::default();
    let mut first = std::pin::pin!(one.engine.chat(&chat, &mut heard));
    at_gate(first.as_mut(), &mut one.heard).await;
    let lost = one.store().node().await;
    let store: Arc<dyn Store> = Arc::new(store.connect());
    let config = BucketConfig {
        max_age: Some(LEASE),
        ..BucketConfig::default()
    };
    let nodes = Bucket::open(&store, "nodes", config).await.unwrap();
    nodes.delete(&token(&lost), None).await.unwrap();
    two.chat(&chat).await.unwrap();
    one.model.open_gate();
    assert_eq!(failure(first.await), NOT_STORED);
    while one.store().node().await == lost {
        sleep(Duration::from_millis(10)).await;
    }
    one.chat(&chat).await.unwrap();
    assert_eq!(two.history("ann").await, ["", "next", "again"]);
    let sessions = two.store().sessions(9).await.unwrap();
    assert_eq!((sessions[0].tokens, two.daily().await), (45, 45));
    one.engine.close().await;
    assert_eq!(two.daily().await, 45);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_leaves_delays_no_other() {
    let store = MemoryStore::new();
    let budgets = Budgets {
        daily: Some(20),
        ..Budgets::default()
    };
    let one = Node::with(&store, budgets, [answer("one")]).await;
    one.chat(&from("ann", "hi")).await.unwrap();
    one.engine.close().await;
    let two = Node::with(&store, budgets, [answer("two")]).await;
    two.chat(&from("ann", "hi")).await.unwrap();
    assert_eq!(
        two.refused(&from("ann", "hi")).await,
        "token budget exceeded (daily: 30/20)"
    );
}

/// The accounts with sessions that are stored, the last used ones first.
async fn stored(store: &MemoryStore) -> Vec<String> {
    let log = LogConfig::new("gateway_sessions.*");
    let log = store.log("gateway_sessions", log).await.unwrap();
    let heads = log.heads("gateway_sessions.*").await.unwrap();
    let account = |subject: &str| subject.split("=3A").nth(2).unwrap().to_owned();
    heads.iter().rev().map(|it| account(&it.subject)).collect()
}

#[tokio::test(start_paused = true)]
async fn the_oldest_sessions_beyond_the_limit_are_forgotten_with_their_turns() {
    let store = MemoryStore::new();
    let like = Like {
        limits: StoreLimits::default().with_sessions(2),
        ..Like::default()
    };
    let long = "y".repeat(20_000);
    let scripts = (0..6).map(|_| answer(&long));
    let node = Node::like(like, Arc::new(store.connect()), scripts).await;
    for name in ["ann", "bob", "cat", "dan", "ann"] {
        node.chat(&from(name, "hi")).await.unwrap();
    }
    assert_eq!(node.store().sweep().await, 2);
    let left = |sessions: Vec<Record>| -> Vec<String> {
        sessions.into_iter().map(|it| it.session).collect()
    };
    let sessions = left(node.store().sessions(9).await.unwrap());
    assert_eq!(sessions, ["default:ws:ann:main", "default:ws:dan:main"]);
    assert_eq!(stored(&store).await, ["ann", "dan"]);
    assert!(node.history("bob").await.is_empty());
    assert_eq!(node.store().sweep().await, 0);
    // Whoever comes back begins again.
    node.chat(&from("bob", "hi")).await.unwrap();
    assert_eq!(node.history("bob").await.len(), 1);
    assert_eq!(node.store().sweep().await, 1);
    let sessions = left(node.store().sessions(9).await.unwrap());
    assert_eq!(sessions, ["default:ws:bob:main", "default:ws:ann:main"]);
}

#[tokio::test(start_paused = true)]
async fn sessions_that_are_too_large_together_are_forgotten_except_those_in_use() {
    let store = MemoryStore::new();
    let like = Like {
        limits: StoreLimits::default().with_total_bytes(50_000),
        ..Like::default()
    };
    let long = "y".repeat(20_000);
    let scripts = [answer(&long), gated("late")];
    let mut node = Node::like(like, Arc::new(store.connect()), scripts).await;
    let other = Node::start(&store, [answer(&long), answer(&long)]).await;
    let chat = from("ann", "hi");
    node.chat(&chat).await.unwrap();
    let mut heard = Heard::default();
    let mut running = std::pin::pin!(node.engine.chat(&chat, &mut heard));
    at_gate(running.as_mut(), &mut node.heard).await;
    for name in ["bob", "cat"] {
        other.chat(&from(name, "hi")).await.unwrap();
    }
    assert_eq!(node.store().sweep().await, 1);
    node.model.open_gate();
    running.await.unwrap();
    assert_eq!(stored(&store).await, ["ann", "cat"]);
    assert_eq!(node.history("ann").await.len(), 2);
}
