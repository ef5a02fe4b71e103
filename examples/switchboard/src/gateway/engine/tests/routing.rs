//! Agents, session keys, and turns.

use std::sync::Arc;

use exoclaw_proto::binding::{Binding, Bindings};
use exoclaw_proto::frame::{ChatSend, SessionRef};
use exoclaw_proto::net::AppError;
use futures_util::poll;

use super::harness::*;
use crate::gateway::engine::MAX_NAME;

#[tokio::test]
async fn a_chat_belongs_to_the_session_of_its_agent_channel_account_and_peer() {
    let harness = Harness::new((0..3).map(|_| answer("hi"))).await;
    let of_peer = ChatSend {
        session: SessionRef {
            peer: Some("b:c".into()),
            ..SessionRef::new("ws", "ann")
        },
        content: "b".into(),
    };
    let of_team = ChatSend {
        session: SessionRef {
            guild: Some("g".into()),
            team: Some("t".into()),
            ..SessionRef::new("ws", "ann")
        },
        content: "c".into(),
    };
    for chat in [from("ann", "a"), of_peer, of_team] {
        assert_eq!(harness.chat(&chat).await.1, Ok(()));
    }
    let expected = ["default:ws:ann:b%3Ac", "default:ws:ann:main"];
    assert_eq!(harness.sessions().await, expected);
    let status = harness.engine.status().await;
    assert_eq!((status.sessions, status.plugins), (2, 5));
    let plugins = harness.engine.plugins().into_iter().map(|it| it.name);
    let expected = ["echo", "fail", "panic", "hang", "block"];
    assert_eq!(plugins.collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn bindings_choose_the_agent_and_other_chats_go_to_the_default() {
    let bindings = vec![Binding {
        guild_id: Some("g".into()),
        ..Binding::new("vip")
    }];
    let router = Bindings::new(bindings, Some("else".to_owned())).unwrap();
    let scripts = (0..2).map(|_| answer("hi"));
    let harness = Harness::with(scripts, |parts| parts.router = router).await;
    harness.chat(&from("ann", "a")).await.1.unwrap();
    let bound = ChatSend {
        session: SessionRef {
            guild: Some("g".into()),
            ..SessionRef::new("ws", "ann")
        },
        content: "a".into(),
    };
    harness.chat(&bound).await.1.unwrap();
    assert_eq!(
        harness.sessions().await,
        ["else:ws:ann:main", "vip:ws:ann:main"]
    );
}

#[tokio::test]
async fn a_chat_without_an_agent_is_refused_and_starts_no_session() {
    let router = Bindings::new(
        vec![Binding {
            channel: Some("x".into()),
            ..Binding::new("a")
        }],
        None,
    )
    .unwrap();
    let harness = Harness::with([], |parts| parts.router = router).await;
    let why = harness.refused(&from("ann", "hi")).await;
    assert_eq!(why, "no agent configured for ws:ann:main");
    assert_eq!(harness.sessions().await, [""; 0]);
}

#[tokio::test]
async fn refuses_too_long_names_before_anything_is_stored() {
    let harness = Harness::new([answer("hi")]).await;
    let long = "é".repeat(MAX_NAME / 2 + 1);
    let mut chats = ["peer", "guild", "team"].map(|name| (name, from("a", "x")));
    let [(_, peer), (_, guild), (_, team)] = &mut chats;
    let members = [
        &mut peer.session.peer,
        &mut guild.session.guild,
        &mut team.session.team,
    ];
    for member in members {
        *member = Some((&*long).into());
    }
    for (name, chat) in [("account", from(&long, "x"))].into_iter().chain(chats) {
        let expected = format!("invalid chat.send params: {name} is longer than 512 bytes");
        assert_eq!(harness.refused(&chat).await, expected);
    }
    assert_eq!(harness.sessions().await, [""; 0]);
    let longest = from(&"x".repeat(MAX_NAME), "x");
    assert_eq!(harness.chat(&longest).await.1, Ok(()));
}

#[tokio::test]
async fn the_second_of_two_messages_at_once_knows_of_the_first() {
    let first = Script::Answer(vec![say("on"), Step::Gate, say("e"), stop()]);
    let mut harness = Harness::new([first, answer("two")]).await;
    let mut heard = (Heard::default(), Heard::default());
    let (a, b) = (from("ann", "first"), from("ann", "second"));
    let engine = &harness.engine;
    let mut one = std::pin::pin!(engine.chat(&a, &mut heard.0));
    let mut two = std::pin::pin!(engine.chat(&b, &mut heard.1));
    assert!(poll!(&mut one).is_pending());
    assert!(poll!(&mut two).is_pending());
    tokio::select! {
        _ = &mut one => panic!("it waits"),
        _ = &mut two => panic!("it is not its turn"),
        point = harness.heard.recv() => assert_eq!(point, Some("gate")),
    }
    harness.model.open_gate();
    let (one, two) = tokio::join!(one, two);
    assert_eq!((one, two), (Ok(()), Ok(())));
    let asked = harness.model.asked();
    assert_eq!(asked[0].messages, ["user: first"]);
    let expected = ["user: first", "assistant: one", "user: second"];
    assert_eq!(asked[1].messages, expected);
}

#[tokio::test]
async fn different_sessions_run_side_by_side() {
    let gated = || Script::Answer(vec![Step::Gate, say("x"), stop()]);
    let harness = Harness::new([gated(), gated()]).await;
    let (engine, model) = (Arc::new(harness.engine), harness.model);
    let mut heard = harness.heard;
    let chats = ["ann", "bob"].map(|account| {
        let engine = Arc::clone(&engine);
        let chat = from(account, "hi");
        tokio::spawn(async move { engine.chat(&chat, &mut Heard::default()).await })
    });
    for _ in 0..2 {
        assert_eq!(heard.recv().await, Some("gate"));
    }
    assert_eq!(model.asked().len(), 2);
    model.open_gate();
    model.open_gate();
    for chat in chats {
        assert_eq!(chat.await.unwrap(), Ok(()));
    }
}

#[tokio::test]
async fn more_messages_than_can_wait_are_refused_and_the_others_answered() {
    let gated = Script::Answer(vec![Step::Gate, say("x"), stop()]);
    let scripts = std::iter::once(gated).chain((0..64).map(|_| answer("y")));
    let harness = Harness::new(scripts).await;
    let engine = Arc::new(harness.engine);
    let mut heard = harness.heard;
    let chat = |_| {
        let engine = Arc::clone(&engine);
        let chat = from("ann", "hi");
        tokio::spawn(async move { engine.chat(&chat, &mut Heard::default()).await })
    };
    let first = chat(0);
    assert_eq!(heard.recv().await, Some("gate"));
    let others: Vec<_> = (0..65).map(chat).collect();
    let mut refused = 0;
    // Those that wait do so behind the gate.
    while engine.turns.waiting() < 64 {
        tokio::task::yield_now().await;
    }
    harness.model.open_gate();
    for chat in std::iter::once(first).chain(others) {
        match chat.await.unwrap() {
            Ok(()) => {}
            Err(AppError::Refused(error)) => {
                let expected = "session busy: 64 turns are waiting already";
                assert_eq!(error.message(), expected);
                refused += 1;
            }
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!(refused, 1);
}
