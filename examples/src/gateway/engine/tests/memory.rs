//! What a model is told, and what is remembered.

use std::sync::Arc;

use super::stage::*;
use crate::gateway::engine::EngineParts;
use crate::gateway::store::Store as _;
use crate::gateway::store::scratch::Folder;

fn told(stage: &Stage, call: usize) -> Vec<String> {
    stage.model.asked()[call].messages.clone()
}

#[tokio::test]
async fn the_context_is_instructions_soul_facts_turns_and_the_message() {
    let folder = Folder::new();
    let soul = folder.path().join("soul.md");
    std::fs::write(&soul, "You are kind.").unwrap();
    let stage = Stage::with([answer("one"), answer("two")], |parts| {
        parts.agent.system_prompt = Some("Be brief.".to_owned());
        parts.agent.soul_path = Some(soul.clone());
    })
    .await;
    stage.chat(&from("ann", "My name is Ann.")).await.1.unwrap();
    // The file counts as it is when the message comes.
    std::fs::write(&soul, "You are grim.").unwrap();
    stage.chat(&from("ann", "and?")).await.1.unwrap();
    let expected = [
        "system: Be brief.",
        "system: You are kind.",
        "user: My name is Ann.",
    ];
    assert_eq!(told(&stage, 0), expected);
    let expected = [
        "system: Be brief.",
        "system: You are grim.",
        "system: Known facts:\n- the user's name is Ann",
        "user: My name is Ann.",
        "assistant: one",
        "user: and?",
    ];
    assert_eq!(told(&stage, 1), expected);
}

#[tokio::test]
async fn nothing_of_another_session_is_told() {
    let stage = Stage::new((0..3).map(|_| answer("ok"))).await;
    stage.chat(&from("ann", "My name is Ann.")).await.1.unwrap();
    stage.chat(&from("bob", "who am I?")).await.1.unwrap();
    let other_peer = from("ann", "who am I?").with_peer("p");
    stage.chat(&other_peer).await.1.unwrap();
    for call in [1, 2] {
        assert_eq!(told(&stage, call), ["user: who am I?"]);
    }
}

#[tokio::test]
async fn only_the_last_turns_are_told_and_no_facts_if_they_are_off() {
    let scripts = ["a", "b", "c"].map(answer);
    let stage = Stage::with(scripts, |parts: &mut EngineParts| {
        parts.memory.episodic_window = 1;
        parts.memory.semantic_enabled = false;
    })
    .await;
    for text in ["My name is Ann.", "2", "3"] {
        stage.chat(&from("ann", text)).await.1.unwrap();
    }
    assert_eq!(told(&stage, 2), ["user: 2", "assistant: b", "user: 3"]);
    let known = stage.store.recall("default:ws:ann:main", "default", 9);
    assert!(known.unwrap().facts.is_empty());
}

#[tokio::test]
async fn an_empty_answer_is_no_turn_but_is_paid_for() {
    let empty = Script::Answer(vec![bill(7, 0), stop()]);
    let stage = Stage::new([empty, answer("now")]).await;
    let (steps, outcome) = stage.chat(&from("ann", "My name is Ann.")).await;
    assert_eq!((steps, outcome), (vec!["usage 7 0".to_owned()], Ok(())));
    stage.chat(&from("ann", "2")).await.1.unwrap();
    assert_eq!(told(&stage, 1), ["user: 2"]);
    assert_eq!(stage.used(), 7 + 15);
}

#[tokio::test]
async fn an_empty_message_is_answered_as_well() {
    let stage = Stage::new([answer("yes?")]).await;
    let (steps, outcome) = stage.chat(&from("ann", "")).await;
    assert_eq!(outcome, Ok(()));
    assert_eq!(steps, ["text yes?", "usage 10 5"]);
}

#[tokio::test]
async fn after_a_restart_turns_facts_and_tokens_are_there_again() {
    let stage = Stage::new([answer("one")]).await;
    stage.chat(&from("ann", "My name is Ann.")).await.1.unwrap();
    stage.engine.close().await;
    let budget = |parts: &mut EngineParts| {
        parts.budgets = parts.budgets.with_session(Some(20)).with_daily(Some(400));
    };
    let again = Stage::over(Arc::clone(&stage.store), [answer("two")], budget).await;
    assert_eq!(again.used(), 15);
    let why = again.refused(&from("ann", &"x".repeat(20))).await;
    assert_eq!(why, "token budget exceeded (session: 15/20)");
    drop(again);
    let again = Stage::over(Arc::clone(&stage.store), [answer("two")], |_| ()).await;
    again.chat(&from("ann", "2")).await.1.unwrap();
    let expected = [
        "system: Known facts:\n- the user's name is Ann",
        "user: My name is Ann.",
        "assistant: one",
        "user: 2",
    ];
    assert_eq!(told(&again, 0), expected);
}
