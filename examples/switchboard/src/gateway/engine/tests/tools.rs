//! The tool loop.

use super::harness::*;
use crate::gateway::usage::Ending;

#[tokio::test]
async fn a_tool_turn_is_reported_in_order_and_its_results_reach_the_model() {
    let first = Script::Answer(vec![
        say("let "),
        call(0, "a", "echo", r#"{"message":"one"}"#),
        say("me"),
        call(1, "b", "echo", r#"{"message":"two"}"#),
        bill(8, 2),
        stop(),
    ]);
    let harness = Harness::new([first, answer(" see")]).await;
    let (steps, outcome) = harness.chat(&from("ann", "hi")).await;
    assert_eq!(outcome, Ok(()));
    let expected = [
        "text let ",
        "text me",
        r#"tool_use call_1 echo {"message":"one"}"#,
        r#"tool_use call_2 echo {"message":"two"}"#,
        "usage 8 2",
        "tool_result call_1 ok one",
        "tool_result call_2 ok two",
        "text \n\n",
        "text see",
        "usage 10 5",
    ];
    assert_eq!(steps, expected);
    let asked = harness.model.asked();
    assert_eq!(asked[0].tools, ["echo", "fail", "panic", "hang", "block"]);
    let expected = ["user: hi", "assistant: let me", "tool: one", "tool: two"];
    assert_eq!(asked[1].messages, expected);
    let known = harness
        .engine
        .store
        .recall("default:ws:ann:main", None, 9)
        .await;
    assert_eq!(known.unwrap()[0].assistant, "let me\n\nsee");
}

#[tokio::test]
async fn a_failed_or_unknown_tool_is_reported_and_the_loop_continues() {
    let first = Script::Answer(vec![
        call(0, "a", "fail", "{}"),
        call(1, "b", "panic", "{}"),
        call(2, "c", "nope", "{}"),
        call(3, "d", "echo", "{}"),
        stop(),
    ]);
    let harness = Harness::new([first, answer("so it is")]).await;
    let (steps, outcome) = harness.chat(&from("ann", "hi")).await;
    assert_eq!(outcome, Ok(()));
    let results: Vec<_> = steps.iter().filter(|it| it.contains("_result")).collect();
    const TOLD: &str = "tool_result call_3 failed tool execution failed: there is no tool \"nope\"; \
                        there are: echo, fail, panic, hang, block";
    let expected = [
        "tool_result call_1 failed tool execution failed: no luck",
        "tool_result call_2 failed tool execution failed: panic",
        TOLD,
        "tool_result call_4 ok {}",
    ];
    assert_eq!(results, expected);
    let asked = harness.model.asked();
    let why = "tool: Error: there is no tool \"nope\"; there are: echo, fail, panic, hang, block";
    assert_eq!(asked[1].messages[4], why);
}

#[tokio::test]
async fn every_call_of_a_reply_has_an_id_of_its_own() {
    let first = Script::Answer(vec![
        call(0, "", "echo", "{}"),
        call(1, "x", "echo", "{}"),
        call(2, "x2", "fail", "{}"),
        stop(),
    ]);
    let second = Script::Answer(vec![call(0, "x", "echo", "{}"), stop()]);
    let harness = Harness::new([first, second, answer("ok")]).await;
    let (steps, _) = harness.chat(&from("ann", "hi")).await;
    let ids = |kind: &str| -> Vec<String> {
        let of_kind = steps.iter().filter_map(|it| it.strip_prefix(kind));
        of_kind
            .map(|it| it.split(' ').nth(1).unwrap().to_owned())
            .collect()
    };
    let used = ids("tool_use");
    assert_eq!(used, ids("tool_result"));
    assert_eq!(used, ["call_1", "call_2", "call_3", "call_4"]);
}

#[tokio::test]
async fn bounds_the_tool_results_of_a_reply() {
    let long = "x".repeat(1_000_000);
    let rounds = (0..9).map(|n| {
        let arguments = format!(r#"{{"message":"{n}{long}"}}"#);
        Script::Answer(vec![call(0, "a", "echo", &arguments), stop()])
    });
    let harness = Harness::with(rounds.chain([answer("ok")]), |parts| {
        parts.limits = parts.limits.with_tokens(usize::MAX);
    })
    .await;
    let (steps, outcome) = harness.chat(&from("ann", "hi")).await;
    assert_eq!(outcome, Ok(()));
    let results: Vec<_> = steps.iter().filter(|it| it.contains("_result")).collect();
    let (last, before) = results.split_last().unwrap();
    let expected = "tool_result call_9 failed tool execution failed: too much output for one reply";
    assert_eq!(*last, expected);
    assert_eq!(before.len(), 8);
    assert!(before.iter().all(|it| it.len() > 1_000_000));
    let told = harness.model.asked()[9].messages.last().cloned();
    assert!(told.unwrap().starts_with("tool: Error: "));
}

#[tokio::test]
async fn a_call_whose_arguments_are_not_an_object_is_reported_to_the_model_and_not_run() {
    for unreadable in [
        "{\"mess",
        "{\"message\":\"a\"}\n</think> done",
        "{}{}",
        "[1]",
    ] {
        let first = Script::Answer(vec![
            call(0, "a", "echo", unreadable),
            call(1, "b", "echo", ""),
            call(2, "", "", ""),
            stop(),
        ]);
        let harness = Harness::new([first, answer("ok")]).await;
        let (steps, outcome) = harness.chat(&from("ann", "hi")).await;
        assert_eq!(outcome, Ok(()));
        assert_eq!(steps[3], "tool_result call_2 ok {}");
        let begin = "tool_result call_1 failed tool execution failed: the arguments are not";
        assert!(steps[4].starts_with(begin), "{unreadable}: {steps:?}");
        // A placeholder is left out.
        let told = &harness.model.asked()[1].messages;
        assert_eq!(told.len(), 4, "{told:?}");
        assert!(told[2].starts_with("tool: Error: the arguments are not"));
    }
}

#[tokio::test]
async fn a_model_that_calls_tools_without_end_is_stopped_and_its_words_are_remembered() {
    let round = || {
        Script::Answer(vec![
            say("x"),
            call(0, "a", "echo", "{}"),
            bill(1, 1),
            stop(),
        ])
    };
    let scripts = (0..3).map(|_| round());
    let harness = Harness::with(scripts, |parts| parts.agent.max_tool_rounds = 3).await;
    let (steps, outcome) = harness.chat(&from("ann", "hi")).await;
    let why = failure(outcome);
    assert_eq!(why, "tool-use loop exceeded max iterations");
    assert!(steps.last().unwrap().starts_with("tool_result"));
    assert_eq!(harness.model.asked().len(), 3);
    assert_eq!(harness.used().await, 6);
    assert_eq!(harness.log().await[0].ending, Ending::TooManyRounds);
    assert_eq!(harness.engine.store.sessions(1).await.unwrap()[0].count, 1);
}

#[tokio::test]
async fn a_model_has_ten_rounds_of_tools_by_default() {
    let round = |n| {
        let arguments = format!("{{\"n\":{n}}}");
        Script::Answer(vec![call(0, "a", "echo", &arguments), stop()])
    };
    let harness = Harness::new((0..11).map(round)).await;
    let (_, outcome) = harness.chat(&from("ann", "hi")).await;
    assert_eq!(failure(outcome), "tool-use loop exceeded max iterations");
    assert_eq!(harness.model.asked().len(), 10);
}

#[tokio::test]
async fn the_same_call_with_the_same_result_is_made_three_times_and_the_reason_is_told() {
    let round = |_| Script::Answer(vec![call(0, "a", "echo", "{}"), stop()]);
    let harness = Harness::new((0..11).map(round)).await;
    let (steps, outcome) = harness.chat(&from("ann", "hi")).await;
    let made = steps.iter().filter(|step| step.contains(" ok "));
    assert_eq!(made.count(), 3, "{steps:?}");
    let why = failure(outcome);
    assert!(
        why.contains("the same call gave the same result 3 times"),
        "{why}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blocking_tool_delays_no_other_chat_of_the_task() {
    let first = Script::Answer(vec![call(0, "a", "block", "{}"), stop()]);
    let mut harness = Harness::new([first, answer("quick"), answer("end")]).await;
    let (a, b) = (from("ann", "hi"), from("bob", "hi"));
    let mut heard = Heard::default();
    // Both on one task, as the chats of one connection are.
    let mut slow = std::pin::pin!(harness.engine.chat(&a, &mut heard));
    tokio::select! {
        () = async {
            while harness.heard.recv().await != Some("tool runs") {}
        } => {}
        _ = &mut slow => panic!("the tool was not seen to run"),
    }
    let mut quick = Heard::default();
    tokio::select! {
        biased;
        _ = &mut slow => panic!("the tool still blocks"),
        outcome = harness.engine.chat(&b, &mut quick) => assert_eq!(outcome, Ok(())),
    }
    harness.barrier.wait();
    assert_eq!(slow.await, Ok(()));
}
