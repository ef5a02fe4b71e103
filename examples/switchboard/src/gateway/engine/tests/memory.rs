//! What a model is told, and what is remembered.

use exoclaw_proto::budget::Budgets;
use exoclaw_proto::frame::{ChatSend, SessionRef};

use super::harness::*;
use crate::gateway::engine::EngineParts;
use crate::scratch::Folder;

fn told(harness: &Harness, call: usize) -> Vec<String> {
    harness.model.asked()[call].messages.clone()
}

#[tokio::test]
async fn the_context_is_instructions_soul_turns_and_the_message() {
    let folder = Folder::new();
    let soul = folder.path().join("soul.md");
    std::fs::write(&soul, "You are kind.").unwrap();
    let harness = Harness::with([answer("one"), answer("two")], |parts| {
        parts.agent.system_prompt = Some("Be brief.".to_owned());
        parts.agent.soul_path = Some(soul.clone());
    })
    .await;
    harness
        .chat(&from("ann", "My name is Ann."))
        .await
        .1
        .unwrap();
    // The file counts as it is when the message comes.
    std::fs::write(&soul, "You are grim.").unwrap();
    harness.chat(&from("ann", "and?")).await.1.unwrap();
    let expected = [
        "system: Be brief.",
        "system: You are kind.",
        "user: My name is Ann.",
    ];
    assert_eq!(told(&harness, 0), expected);
    let expected = [
        "system: Be brief.",
        "system: You are grim.",
        "user: My name is Ann.",
        "assistant: one",
        "user: and?",
    ];
    assert_eq!(told(&harness, 1), expected);
}

#[tokio::test]
async fn a_repeated_question_is_sent_once_without_its_first_answer() {
    let harness = Harness::new(["one", "two", "three", "four"].map(answer)).await;
    for (id, content) in [
        ("a", "first"),
        ("b", "second"),
        ("b", "second"),
        ("c", "third"),
    ] {
        let mut reply = Heard::default();
        let chat = from("ann", content);
        let answered = harness.engine.answer(&chat, named(id), &mut reply).await;
        answered.unwrap();
    }
    let first = ["user: first", "assistant: one", "user: second"];
    assert_eq!(told(&harness, 1), first);
    assert_eq!(told(&harness, 2), first);
    let last = ["assistant: three", "user: third"];
    assert_eq!(told(&harness, 3), [&first[..], &last[..]].concat());
}

#[tokio::test]
async fn nothing_of_another_session_reaches_the_model() {
    let harness = Harness::new((0..3).map(|_| answer("ok"))).await;
    harness
        .chat(&from("ann", "My name is Ann."))
        .await
        .1
        .unwrap();
    harness.chat(&from("bob", "who am I?")).await.1.unwrap();
    let other_peer = ChatSend {
        session: SessionRef {
            peer: Some("p".into()),
            ..SessionRef::new("ws", "ann")
        },
        content: "who am I?".into(),
    };
    harness.chat(&other_peer).await.1.unwrap();
    for call in [1, 2] {
        assert_eq!(told(&harness, call), ["user: who am I?"]);
    }
}

#[tokio::test]
async fn only_the_last_turns_are_sent_to_the_model() {
    let scripts = ["a", "b", "c"].map(answer);
    let harness = Harness::with(scripts, |parts: &mut EngineParts| {
        parts.memory.episodic_window = Some(1);
    })
    .await;
    for text in ["My name is Ann.", "2", "3"] {
        harness.chat(&from("ann", text)).await.1.unwrap();
    }
    assert_eq!(told(&harness, 2), ["user: 2", "assistant: b", "user: 3"]);
}

#[tokio::test]
async fn a_conversation_is_sent_up_to_its_limit_and_a_cut_is_reported() {
    let harness = Harness::with((0..8).map(|_| answer("a")), |parts: &mut EngineParts| {
        // A question and its answer cost ten tokens.
        parts.limits = parts.limits.with_tokens(55);
    })
    .await;
    for number in 0..8 {
        let (steps, outcome) = harness.chat(&from("ann", &number.to_string())).await;
        outcome.unwrap();
        let is_cut = steps.iter().any(|step| step.contains("oldest message"));
        assert_eq!(is_cut, number > 5, "{steps:?}");
    }
    let questions = told(&harness, 7);
    let questions: Vec<_> = questions
        .iter()
        .filter_map(|it| it.strip_prefix("user: "))
        .collect();
    assert_eq!(questions, ["2", "3", "4", "5", "6", "7"]);
}

#[tokio::test]
async fn an_empty_answer_is_not_stored_but_charged() {
    let empty = Script::Answer(vec![bill(7, 0), stop()]);
    let harness = Harness::new([empty, answer("now")]).await;
    let (steps, outcome) = harness.chat(&from("ann", "My name is Ann.")).await;
    assert_eq!((steps, outcome), (vec!["usage 7 0".to_owned()], Ok(())));
    harness.chat(&from("ann", "2")).await.1.unwrap();
    assert_eq!(told(&harness, 1), ["user: 2"]);
    assert_eq!(harness.used().await, 7 + 15);
}

#[tokio::test]
async fn an_empty_message_is_answered_as_well() {
    let harness = Harness::new([answer("yes?")]).await;
    let (steps, outcome) = harness.chat(&from("ann", "")).await;
    assert_eq!(outcome, Ok(()));
    assert_eq!(steps, ["text yes?", "usage 10 5"]);
}

#[tokio::test]
async fn after_a_restart_turns_and_tokens_are_there_again() {
    let harness = Harness::new([answer("one")]).await;
    harness
        .chat(&from("ann", "My name is Ann."))
        .await
        .1
        .unwrap();
    harness.engine.close().await;
    let budgets = Budgets {
        session: Some(20),
        daily: Some(400),
        ..Budgets::default()
    };
    let again = Harness::over(&harness.store, budgets, [], |_| ()).await;
    assert_eq!(again.used().await, 15);
    let why = again.refused(&from("ann", &"x".repeat(20))).await;
    assert!(
        why.starts_with("token budget exceeded (session: 15/20)"),
        "{why}"
    );
    drop(again);
    let none = Budgets::default();
    let again = Harness::over(&harness.store, none, [answer("two")], |_| ()).await;
    again.chat(&from("ann", "2")).await.1.unwrap();
    let expected = ["user: My name is Ann.", "assistant: one", "user: 2"];
    assert_eq!(told(&again, 0), expected);
}
