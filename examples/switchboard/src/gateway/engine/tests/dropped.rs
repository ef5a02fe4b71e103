//! Clients that leave.

use async_trait::async_trait;
use exoclaw_proto::frame::StreamEvent;
use exoclaw_proto::net::{AppError, Gone};
use futures_util::{FutureExt as _, poll};
use tokio::sync::oneshot;

use super::harness::*;
use crate::gateway::engine::Reply;
use crate::gateway::usage::{Ending, UsageEntry};
use crate::model::Delta;

/// The next request to the model holds this of what was before.
async fn next_holds(harness: &Harness, before: &[&str]) {
    harness.chat(&from("ann", "next")).await.1.unwrap();
    let asked = harness.model.asked();
    let expected = [before, &["user: next"]].concat();
    assert_eq!(asked.last().unwrap().messages, expected);
}

fn numbers(entry: &UsageEntry) -> (Ending, u64, u64, bool) {
    let (input, output) = (entry.input_tokens, entry.output_tokens);
    (entry.ending, input, output, entry.estimated)
}

#[tokio::test]
async fn a_client_that_leaves_while_it_waits_loses_its_place_and_nothing_is_counted() {
    let first = Script::Answer(vec![Step::Gate, say("x"), bill(1, 1), stop()]);
    let mut harness = Harness::new([first, answer("third")]).await;
    let (a, b) = (from("ann", "one"), from("ann", "two"));
    let mut heard = (Heard::default(), Heard::default());
    let mut one = std::pin::pin!(harness.engine.chat(&a, &mut heard.0));
    tokio::select! {
        _ = &mut one => panic!("it waits"),
        point = harness.heard.recv() => assert_eq!(point, Some("gate")),
    }
    {
        let mut two = std::pin::pin!(harness.engine.chat(&b, &mut heard.1));
        assert!(poll!(&mut two).is_pending());
        assert_eq!(harness.engine.turns.waiting(), 1);
    }
    assert_eq!(harness.engine.turns.waiting(), 0);
    harness.model.open_gate();
    assert_eq!(one.await, Ok(()));
    harness.chat(&from("ann", "three")).await.1.unwrap();
    assert_eq!(harness.log().await.len(), 2);
    assert_eq!(harness.used().await, 2 + 15);
}

#[tokio::test]
async fn a_client_that_leaves_while_history_is_read_costs_nothing() {
    let harness = Harness::new([answer("hi")]).await;
    {
        let chat = from("ann", "hello");
        let mut heard = Heard::default();
        let mut chat = std::pin::pin!(harness.engine.chat(&chat, &mut heard));
        harness.store.set_paused(true);
        assert!(chat.as_mut().now_or_never().is_none());
        harness.store.set_paused(false);
        assert_eq!(harness.engine.turns.running(), 1);
    }
    next_holds(&harness, &[]).await;
    assert_eq!(harness.log().await.len(), 1);
}

#[tokio::test]
async fn a_question_counts_although_its_client_leaves_before_the_first_word() {
    let mut harness = Harness::new([Script::Hang, answer("hi")]).await;
    let chat = from("ann", "12345678");
    assert_eq!(harness.leave_at(&chat, "asked").await, [""; 0]);
    assert_eq!(harness.used().await, 2);
    next_holds(&harness, &["user: 12345678", "assistant: [stopped]"]).await;
    let log = harness.log().await;
    assert_eq!(numbers(&log[0]), (Ending::Cancelled, 2, 0, true));
}

#[tokio::test]
async fn a_client_that_leaves_in_a_stream_stops_the_model_and_is_counted() {
    let first = Script::Answer(vec![bill(6, 0), say("12345678"), Step::Gate]);
    let mut harness = Harness::new([first, answer("hi")]).await;
    let steps = harness
        .leave_at(&from("ann", "My name is Ann"), "gate")
        .await;
    assert_eq!(steps, ["text 12345678"]);
    harness.reached("model stopped").await;
    assert_eq!(harness.used().await, 8);
    next_holds(
        &harness,
        &["user: My name is Ann", "assistant: 12345678\n\n[stopped]"],
    )
    .await;
    let log = harness.log().await;
    assert_eq!(numbers(&log[0]), (Ending::Cancelled, 6, 2, true));
}

#[tokio::test]
async fn thoughts_count_although_the_client_leaves_meanwhile() {
    let thought = Step::Give(Delta::Thought("12345678".to_owned()));
    let first = Script::Answer(vec![bill(6, 0), thought, Step::Gate]);
    let mut harness = Harness::new([first, answer("hi")]).await;
    let steps = harness
        .leave_at(&from("ann", "My name is Ann"), "gate")
        .await;
    assert_eq!(steps, [""; 0]);
    harness.reached("model stopped").await;
    assert_eq!(harness.used().await, 8);
}

#[tokio::test]
async fn a_client_that_leaves_while_a_tool_runs_stops_the_tool_and_is_counted() {
    let first = Script::Answer(vec![call(0, "a", "hang", "{}"), bill(6, 3), stop()]);
    let mut harness = Harness::new([first, answer("hi")]).await;
    let chat = from("ann", "hello");
    let mut heard = Heard::default();
    tokio::select! {
        _ = harness.engine.chat(&chat, &mut heard) => panic!("the tool hangs"),
        () = async {
            assert_eq!(harness.heard.recv().await, Some("model stopped"));
            assert_eq!(harness.heard.recv().await, Some("tool runs"));
        } => {}
    }
    assert_eq!(heard.steps, ["tool_use call_1 hang {}", "usage 6 3"]);
    harness.reached("tool stopped").await;
    next_holds(&harness, &["user: hello", "assistant: [stopped]"]).await;
    let log = harness.log().await;
    assert_eq!(numbers(&log[0]), (Ending::Cancelled, 6, 3, false));
}

#[tokio::test]
async fn a_reply_without_a_receiver_ends_the_run() {
    let first = Script::Answer(vec![say("a"), Step::Gate, say("b"), bill(6, 3), stop()]);
    let harness = Harness::new([first, answer("hi")]).await;
    harness.model.open_gate();
    let mut heard = Heard {
        leaves_after: Some(1),
        ..Heard::default()
    };
    let outcome = harness.engine.chat(&from("ann", "x"), &mut heard).await;
    assert_eq!(outcome, Err(AppError::Gone(Gone)));
    next_holds(&harness, &["user: x", "assistant: ab\n\n[stopped]"]).await;
    let log = harness.log().await;
    assert_eq!(numbers(&log[0]), (Ending::Cancelled, 1, 1, true));
}

#[tokio::test]
async fn a_turn_is_written_to_its_end_and_the_next_message_waits() {
    let first = Script::Answer(vec![Step::Gate, say("one"), bill(10, 5), stop()]);
    let mut harness = Harness::new([first, answer("two")]).await;
    let chat = from("ann", "first");
    let mut heard = Heard::default();
    {
        let mut chat = std::pin::pin!(harness.engine.chat(&chat, &mut heard));
        // The model has said everything.
        for expected in ["gate", "model stopped"] {
            tokio::select! {
                _ = &mut chat => panic!("it is not written"),
                point = harness.heard.recv() => assert_eq!(point, Some(expected)),
            }
            harness.store.set_paused(true);
            harness.model.open_gate();
        }
    }
    assert_eq!(heard.steps, ["text one", "usage 10 5"]);
    let next = from("ann", "second");
    let mut heard = Heard::default();
    {
        let mut next = std::pin::pin!(harness.engine.chat(&next, &mut heard));
        assert!(poll!(&mut next).is_pending());
        assert_eq!(harness.engine.turns.waiting(), 1);
        harness.store.set_paused(false);
        assert_eq!(next.await, Ok(()));
    }
    let expected = ["user: first", "assistant: one", "user: second"];
    assert_eq!(harness.model.asked()[1].messages, expected);
    assert_eq!(harness.log().await.len(), 2);
}

/// A client that is slow to take `done`.
struct Slow(Option<oneshot::Receiver<()>>);

#[async_trait]
impl Reply for Slow {
    async fn event(&mut self, _: StreamEvent) -> Result<(), Gone> {
        Ok(())
    }

    async fn done(&mut self) -> Result<(), Gone> {
        self.0.take().unwrap().await.map_err(|_| Gone)
    }
}

#[tokio::test]
async fn nothing_of_the_next_reply_comes_before_the_end_of_this_one() {
    let harness = Harness::new([answer("one"), answer("two")]).await;
    let (take, taken) = oneshot::channel();
    let (chats, mut slow) = (
        [from("ann", "first"), from("ann", "second")],
        Slow(Some(taken)),
    );
    let mut heard = Heard::default();
    {
        let mut first = std::pin::pin!(harness.engine.chat(&chats[0], &mut slow));
        let mut second = std::pin::pin!(harness.engine.chat(&chats[1], &mut heard));
        assert!(poll!(&mut first).is_pending());
        while harness.engine.usage(1).await.unwrap().is_empty() {
            assert!(poll!(&mut first).is_pending());
            tokio::task::yield_now().await;
        }
        harness.engine.writing.finished().await;
        // The first is stored. Its client alone keeps the second waiting.
        assert!(poll!(&mut first).is_pending());
        assert!(poll!(&mut second).is_pending());
        assert_eq!(harness.engine.turns.waiting(), 1);
        take.send(()).unwrap();
        assert_eq!(first.await, Ok(()));
        assert_eq!(second.await, Ok(()));
    }
    assert_eq!(heard.steps, ["text two", "usage 10 5"]);
}

#[tokio::test]
async fn closing_waits_for_the_usage_of_clients_that_left() {
    let mut harness = Harness::new([Script::Hang]).await;
    harness.leave_at(&from("ann", "hello"), "asked").await;
    let log = harness.log().await;
    assert_eq!(log.len(), 1);
}

#[tokio::test]
async fn an_abandoned_answer_is_in_the_history_once_it_is_written() {
    let first = Script::Answer(vec![say("I was "), say("say"), Step::Gate]);
    let mut harness = Harness::new([first, Script::Hang]).await;
    harness.leave_at(&from("ann", "hello"), "gate").await;
    harness.store.set_paused(true);
    {
        let mut early = std::pin::pin!(harness.turns("ann"));
        assert!(poll!(&mut early).is_pending());
        harness.store.set_paused(false);
    }
    harness.reached("model stopped").await;
    harness.engine.writing.finished().await;
    let stopped = ["hello", "I was say", "stopped"];
    assert_eq!(harness.turns("ann").await, [stopped]);
    harness
        .leave_at(&from("ann", "still there?"), "asked")
        .await;
    harness.engine.writing.finished().await;
    let next = ["still there?", "", "stopped"];
    assert_eq!(harness.turns("ann").await, [stopped, next]);
}

#[tokio::test]
async fn a_history_waits_for_the_turn_of_a_client_that_just_left() {
    let first = Script::Answer(vec![say("I was"), Step::Gate]);
    let mut harness = Harness::new([first]).await;
    harness.leave_at(&from("ann", "hello"), "gate").await;
    let stopped = ["hello", "I was", "stopped"];
    assert_eq!(harness.turns("ann").await, [stopped]);
}
