//! Providers that fail, and panics.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt as _;

use super::harness::*;
use crate::gateway::engine::EngineParts;
use crate::gateway::usage::Ending;
use crate::model::ModelError;

#[tokio::test]
async fn an_absent_provider_costs_nothing_and_the_question_is_shown() {
    let harness = Harness::new([Script::Refuse(unreachable()), answer("back")]).await;
    let (steps, outcome) = harness.chat(&from("ann", "hello")).await;
    assert_eq!(failure(outcome), "provider error: connection refused");
    assert_eq!(steps, [""; 0]);
    assert_eq!(harness.used().await, 0);
    harness.chat(&from("ann", "again")).await.1.unwrap();
    // A question that is refused would be refused with every request.
    assert_eq!(harness.model.asked()[1].messages, ["user: again"]);
    let turns = harness.turns("ann").await;
    assert_eq!(turns[0], ["hello", "", "failed: connection refused"]);
    let log = harness.log().await;
    assert_eq!(log[0].ending, Ending::ProviderError);
    assert_eq!((log[0].tokens(), log[0].estimated), (0, false));
}

#[tokio::test]
async fn a_provider_that_times_out_counts_because_it_may_have_worked() {
    let late = ModelError::TimedOut {
        what: "request timed out",
        after: Duration::from_secs(45),
    };
    let harness = Harness::new([Script::Refuse(late.clone())]).await;
    let (_, outcome) = harness.chat(&from("ann", "12345678")).await;
    assert_eq!(
        failure(outcome),
        "provider error: ".to_owned() + &late.to_string()
    );
    assert_eq!(harness.used().await, 2);
    assert!(harness.log().await[0].estimated);
}

#[tokio::test]
async fn text_before_an_error_is_shown_counted_and_stored() {
    let broken = Script::Answer(vec![
        bill(6, 0),
        say("I was "),
        say("say"),
        Step::Break(ModelError::Cut),
    ]);
    let harness = Harness::new([broken, answer("sorry")]).await;
    let (steps, outcome) = harness.chat(&from("ann", "My name is Ann.")).await;
    assert_eq!(
        failure(outcome),
        format!("provider error: {}", ModelError::Cut)
    );
    assert_eq!(steps, ["text I was ", "text say"]);
    // 9 bytes of text count as 3 tokens.
    assert_eq!(harness.used().await, 9);
    harness.chat(&from("ann", "go on")).await.1.unwrap();
    let expected = [
        "user: My name is Ann.",
        "assistant: I was say",
        "user: go on",
    ];
    assert_eq!(harness.model.asked()[1].messages, expected);
    let why =
        "broken off: the provider closed the connection before the end of the answer; try again";
    let turns = harness.turns("ann").await;
    assert_eq!(turns[0], ["My name is Ann.", "I was say", why]);
    assert_eq!(turns[1], ["go on", "sorry", ""]);
    let log = harness.log().await;
    assert_eq!(log[0].ending, Ending::ProviderError);
    assert_eq!((log[0].input_tokens, log[0].output_tokens), (6, 3));
    assert!(log[0].estimated);
}

#[tokio::test]
async fn a_failure_that_a_full_disk_does_not_take_is_reported_with_the_error() {
    let broken = Script::Answer(vec![say("I was"), Step::Break(ModelError::Cut)]);
    let harness = Harness::new([broken]).await;
    harness.store.set_full(true);
    let (steps, outcome) = harness.chat(&from("ann", "hi")).await;
    assert_eq!(steps, ["text I was"]);
    let why = failure(outcome);
    let expected = format!("provider error: {}; storing the question", ModelError::Cut);
    assert!(why.starts_with(&expected), "{why}");
    let parts = |parts: &mut EngineParts| parts.model = Err("no key".to_owned());
    let harness = Harness::with([], parts).await;
    harness.store.set_full(true);
    let why = harness.refused(&from("ann", "hi")).await;
    assert!(why.contains("no key; storing the question failed"), "{why}");
}

#[tokio::test]
async fn an_error_in_a_later_round_keeps_the_usage_of_earlier_ones() {
    let first = Script::Answer(vec![
        say("wait"),
        call(0, "a", "echo", "{}"),
        bill(8, 2),
        stop(),
    ]);
    let harness = Harness::new([first, Script::Refuse(unreachable())]).await;
    let (_, outcome) = harness.chat(&from("ann", "hi")).await;
    assert_eq!(failure(outcome), "provider error: connection refused");
    assert_eq!(harness.used().await, 10);
    let log = harness.log().await;
    assert_eq!((log[0].tokens(), log[0].estimated), (10, false));
}

#[tokio::test]
async fn without_a_key_every_chat_is_refused_and_nothing_is_logged() {
    let harness = Harness::with([], |parts| {
        let error = ModelError::NoKey {
            provider: "anthropic",
            variable: "ANTHROPIC_API_KEY".to_owned(),
            setting: "[agent] key_file".to_owned(),
        };
        parts.model = Err(error.to_string());
    })
    .await;
    let why = harness.refused(&from("ann", "hello")).await;
    let expected = "provider error: anthropic needs a key: set ANTHROPIC_API_KEY, or name a file with [agent] key_file";
    assert_eq!(why, expected);
    assert_eq!(harness.sessions().await, ["default:ws:ann:main"]);
    let mark = format!(
        "failed: {}",
        expected.trim_start_matches("provider error: ")
    );
    assert_eq!(harness.turns("ann").await, [["hello", "", &mark]]);
    assert_eq!((harness.used().await, harness.log().await.len()), (0, 0));
}

#[tokio::test]
async fn a_panic_of_the_model_gives_the_turn_back_and_is_counted() {
    let panics = Script::Answer(vec![say("12345678"), Step::Panic]);
    let harness = Harness::new([panics, answer("still here")]).await;
    let ann = from("ann", "hello");
    let chat = AssertUnwindSafe(harness.chat(&ann)).catch_unwind();
    assert!(chat.await.is_err());
    assert_eq!(harness.used().await, 2 + 2);
    assert_eq!(harness.chat(&ann).await.1, Ok(()));
    let expected = ["user: hello", "assistant: 12345678", "user: hello"];
    assert_eq!(harness.model.asked()[1].messages, expected);
    let turns = harness.turns("ann").await;
    assert_eq!(
        turns[0],
        ["hello", "12345678", "broken off: the gateway has failed"]
    );
    let log = harness.log().await;
    assert_eq!(log[0].ending, Ending::Aborted);
    assert_eq!(log[1].ending, Ending::Done);
}
