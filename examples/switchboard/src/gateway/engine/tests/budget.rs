//! Budgets, and what is counted.

use std::sync::Arc;

use async_trait::async_trait;
use exoclaw_proto::budget::Budgets;
use exoclaw_proto::frame::StreamEvent;
use exoclaw_proto::net::Gone;
use rpc_core::store::{Log, LogConfig, MemoryStore, Store as _};

use super::harness::*;
use crate::gateway::engine::{NOT_STORED, Reply};
use crate::gateway::store::usage;
use crate::gateway::usage::Ending;
use crate::model::provider::Provider;

#[tokio::test]
async fn a_chat_over_budget_is_refused_before_the_model_is_asked_and_its_session_counts() {
    let [session, daily, monthly] = [
        [Some(1), None, None],
        [None, Some(1), None],
        [None, None, Some(1)],
    ]
    .map(|[session, daily, monthly]| Budgets {
        session,
        daily,
        monthly,
    });
    for (budgets, expected) in [
        (session, "session: 0/1"),
        (daily, "daily: 0/1"),
        (monthly, "monthly: 0/1"),
    ] {
        let harness = Harness::limited(budgets, []).await;
        let why = harness.refused(&from("ann", "hello")).await;
        let expected = format!("token budget exceeded ({expected}); estimates count too (2 tokens");
        assert!(why.starts_with(&expected), "{why}");
        assert!(harness.model.asked().is_empty());
        assert_eq!(harness.sessions().await, ["default:ws:ann:main"]);
        assert_eq!(harness.log().await, []);
    }
}

#[tokio::test]
async fn usage_counts_and_estimates_leave_out_the_instructions() {
    let budgets = Budgets {
        daily: Some(17),
        ..Budgets::default()
    };
    let harness = Harness::over(&MemoryStore::new(), budgets, [answer("ok")], |parts| {
        parts.agent.system_prompt = Some("x".repeat(1000));
    })
    .await;
    harness.chat(&from("ann", "hello")).await.1.unwrap();
    assert_eq!(harness.used().await, 15);
    let why = harness.refused(&from("bob", "hello, hello")).await;
    let expected =
        "token budget exceeded (daily: 15/17); estimates count too (4 tokens for this message";
    assert!(why.starts_with(expected), "{why}");
}

#[tokio::test]
async fn two_runs_at_once_do_not_both_take_the_last_room() {
    let gated = Script::Answer(vec![Step::Gate, say("x"), bill(1, 1), stop()]);
    let budgets = Budgets {
        daily: Some(10),
        ..Budgets::default()
    };
    let mut harness = Harness::limited(budgets, [gated, answer("y")]).await;
    // 24 bytes are estimated at 7 tokens.
    let long = "x".repeat(24);
    let (a, b) = (from("ann", &long), from("bob", &long));
    let mut heard = Heard::default();
    let mut first = std::pin::pin!(harness.engine.chat(&a, &mut heard));
    tokio::select! {
        _ = &mut first => panic!("it waits"),
        point = harness.heard.recv() => assert_eq!(point, Some("gate")),
    }
    let why = match harness.engine.chat(&b, &mut Heard::default()).await {
        Err(exoclaw_proto::net::AppError::Refused(error)) => error.message().to_owned(),
        other => panic!("{other:?}"),
    };
    let expected = "token budget exceeded (daily: 7/10); estimates count too (7 tokens";
    assert!(why.starts_with(expected), "{why}");
    harness.model.open_gate();
    assert_eq!(first.await, Ok(()));
    // What the first one did not need is free again.
    assert_eq!(harness.chat(&b).await.1, Ok(()));
}

#[tokio::test]
async fn usage_is_reported_for_each_call_and_summed_in_the_log() {
    let first = vec![
        bill(3, 0),
        call(0, "a", "echo", r#"{"message":"hi"}"#),
        bill(20, 2),
        stop(),
    ];
    let scripts = [Script::Answer(first), answer("done")];
    let harness = Harness::with(scripts, |parts| {
        parts.agent.model.provider = Some(Provider::OpenAi);
        parts.agent.model.model = Some("m".to_owned());
    })
    .await;
    let (steps, _) = harness.chat(&from("ann", "hello")).await;
    let bills: Vec<_> = steps.iter().filter(|it| it.starts_with("usage")).collect();
    assert_eq!(bills, ["usage 20 2", "usage 10 5"]);
    let log = harness.log().await;
    assert_eq!(log.len(), 1);
    let entry = &log[0];
    assert_eq!((entry.input_tokens, entry.output_tokens), (30, 7));
    assert!(!entry.estimated);
    assert_eq!((entry.ending, entry.at), (Ending::Done, NOON));
    let named = [
        &*entry.session,
        &*entry.agent,
        &*entry.provider,
        &*entry.model,
    ];
    assert_eq!(named, ["default:ws:ann:main", "default", "openai", "m"]);
    assert_eq!(harness.used().await, 37);
}

#[tokio::test]
async fn missing_usage_is_estimated_for_the_client_too() {
    let silent = Script::Answer(vec![say("12345678"), stop()]);
    let harness = Harness::new([silent]).await;
    let (steps, _) = harness.chat(&from("ann", "hello world!")).await;
    assert_eq!(steps, ["text 12345678", "usage 3 2"]);
    assert_eq!(harness.used().await, 5);
    let log = harness.log().await;
    assert!(log[0].estimated);
    assert_eq!((log[0].input_tokens, log[0].output_tokens), (3, 2));
}

#[tokio::test]
async fn usage_that_a_full_disk_refuses_is_reported_counted_and_written_later() {
    let budgets = Budgets {
        daily: Some(40),
        ..Budgets::default()
    };
    let scripts = [answer("one"), answer("two"), answer("three")];
    let harness = Harness::limited(budgets, scripts).await;
    harness.store.set_full(true);
    for _ in 0..2 {
        let (steps, outcome) = harness.chat(&from("ann", "hi")).await;
        assert_eq!(steps.len(), 2, "the answer is whole: {steps:?}");
        assert_eq!(failure(outcome), NOT_STORED);
    }
    assert_eq!(harness.used().await, 30);
    assert_eq!(harness.engine.usage(9).await.unwrap().len(), 2);
    assert_eq!(usage(&harness.store, 9).await.unwrap(), []);
    harness.store.set_full(false);
    harness.chat(&from("bob", "hi")).await.1.unwrap();
    assert_eq!(harness.log().await.len(), 3);
    assert_eq!(usage(&harness.store, 9).await.unwrap().len(), 3);
    let of_ann = harness.engine.store.used(Some("default:ws:ann:main"));
    assert_eq!(of_ann.await, Ok((30, 45, 45)));
    // A gateway that is started now has no hole in its budget.
    let harness = Harness::over(&harness.store, budgets, [], |_| ()).await;
    let why = harness.refused(&from("ann", "hi")).await;
    assert_eq!(why, "token budget exceeded (daily: 45/40)");
}

#[tokio::test]
async fn usage_that_was_kept_is_written_at_the_end() {
    let harness = Harness::new([answer("one")]).await;
    harness.store.set_full(true);
    assert_eq!(
        failure(harness.chat(&from("ann", "hi")).await.1),
        NOT_STORED
    );
    harness.store.set_full(false);
    assert_eq!(harness.log().await.len(), 1);
}

#[tokio::test]
async fn a_gateway_that_is_killed_in_an_answer_has_stored_its_question_and_counted_its_tokens() {
    let limited = Budgets {
        daily: Some(1000),
        ..Budgets::default()
    };
    for budgets in [Budgets::default(), limited] {
        let gated = Script::Answer(vec![say("I"), Step::Gate, stop()]);
        let mut harness = Harness::limited(budgets, [gated]).await;
        let (ann, mut heard) = (from("ann", "who are you?"), Heard::default());
        let mut run = std::pin::pin!(harness.engine.chat(&ann, &mut heard));
        tokio::select! {
            _ = &mut run => panic!("it waits"),
            point = harness.heard.recv() => assert_eq!(point, Some("gate")),
        }
        let key = "default:ws:ann:main";
        let again = Harness::over(&harness.store, budgets, [], |_| ()).await;
        let turns = again.engine.store.recall(key, None, 9).await.unwrap();
        assert_eq!(turns.len(), 1);
        assert_eq!(turns[0].user, "who are you?");
        assert_eq!(again.engine.store.used(Some(key)).await, Ok((4, 4, 4)));
        // The usage takes the place of the estimate.
        harness.model.open_gate();
        run.await.unwrap();
        let used = harness.engine.store.used(Some(key)).await.unwrap();
        assert_eq!(used, (harness.used().await, used.0, used.0));
    }
}

/// A client that looks how many records of sessions there are when something comes.
struct Looks(Arc<dyn Log>, Vec<u64>);

#[async_trait]
impl Reply for Looks {
    async fn event(&mut self, _: StreamEvent) -> Result<(), Gone> {
        self.1.push(self.0.state().await.unwrap().last);
        Ok(())
    }
}

#[tokio::test]
async fn nothing_is_sent_before_the_question_is_stored_and_a_prompt_answer_is_stored_with_it() {
    let gated = Script::Answer(vec![say("two"), Step::Gate, bill(10, 5), stop()]);
    let harness = Harness::new([answer("one"), gated]).await;
    harness.model.open_gate();
    let config = LogConfig::new("gateway_sessions.*");
    let log = harness.store.log("gateway_sessions", config).await.unwrap();
    for (sent, last) in [([1, 1], 1), ([2, 2], 3)] {
        let mut client = Looks(Arc::clone(&log), Vec::new());
        let answered = harness.engine.chat(&from("ann", "hi"), &mut client).await;
        assert_eq!((answered, client.1), (Ok(()), sent.to_vec()));
        assert_eq!(log.state().await.unwrap().last, last);
    }
}
