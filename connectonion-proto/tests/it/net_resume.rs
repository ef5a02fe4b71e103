//! The remote agent over lines that are lost: what is resumed, what is shown once, what is said twice
//! (nothing).

use std::time::Duration;

use connectonion_proto::client::{ClientConfig, ClientEvent, Resume};
use connectonion_proto::frame::AskUser;
use connectonion_proto::net::{Client, Question, Run, RunEvent};
use rpc_core::net::mem::MemListener;
use rpc_core::net::{LinkConfig, LinkEvent};
use rpc_core::reconnect::ReconnectPolicy;
use rpc_core::{CallError, CloseReason, Delivery, Refused};
use serde_json::json;
use tokio::time::{Instant, timeout};

use crate::net_answers::asking;
use crate::net_client::{failure, open, options, ready, step};
use crate::scripted::{
    Host, connected, error, event, newer, output, signed_by, thinking, user_input,
};

/// A run whose first two steps were shown.
async fn in_mid_run() -> (Client, Run, Host, MemListener) {
    let (agent, _, host, listener, mut run) = asking(&thinking("t1")).await;
    assert_eq!(step(&mut run).await, "thinking");
    (agent, run, host, listener)
}

/// Such a run whose line was cut then.
async fn cut_in_mid_run() -> (Client, Run, MemListener) {
    let (agent, run, host, listener) = in_mid_run().await;
    host.cut();
    (agent, run, listener)
}

/// A run whose agent has asked a question.
async fn asked() -> (Client, Run, Question<AskUser>, Host, MemListener) {
    let (agent, _, mut host, listener) = ready().await;
    let mut run = agent.chat("hello").await;
    host.recv_type("INPUT").await;
    host.send(&event("ask_user", "q", &json!({"question": "Which?"})))
        .await;
    let Some(Ok(RunEvent::AskUser(ask))) = run.next().await else {
        panic!("a question");
    };
    (agent, run, ask, host, listener)
}

/// A run ends as lost, and its prompt has arrived.
async fn is_lost(run: &mut Run) {
    let lost = failure(run).await;
    let reason = CloseReason::Lost;
    let delivery = Delivery::Delivered;
    assert_eq!(lost, CallError::Closed { reason, delivery });
}

/// Nothing is said again.
async fn recv_nothing(mut host: Host) {
    let received = timeout(Duration::from_secs(59), host.recv()).await;
    assert!(received.is_err(), "{received:?}");
}

#[tokio::test(start_paused = true)]
async fn a_resumed_run_delivers_each_event_once() {
    let (agent, mut run, mut listener) = cut_in_mid_run().await;
    let (mut host, connect) = Host::answered(&mut listener, &connected("running")).await;
    assert_eq!(connect["session_id"], "s-1");
    assert_eq!(connect["last_msg_id"], "t1");
    assert_eq!(signed_by(&connect), agent.address().to_string());
    // A host that does not know the id begins at the beginning.
    host.send_all(&[user_input("hello", "u"), thinking("t1"), thinking("t2")])
        .await;
    assert_eq!(step(&mut run).await, "thinking");
    host.send(&output("hi")).await;
    assert_eq!(run.finish().await.unwrap().result, "hi");
    assert_eq!(agent.session().last_msg_id.as_deref(), Some("t2"));
    recv_nothing(host).await;
}

#[tokio::test(start_paused = true)]
async fn a_start_and_its_end_with_one_id_are_both_shown() {
    let (agent, _, mut host, mut listener) = ready().await;
    let mut run = agent.chat("hello").await;
    host.recv_type("INPUT").await;
    let compact = |status: &str| event("compact", "c", &json!({"status": status}));
    host.send_all(&[user_input("hello", "u"), compact("compacting")])
        .await;
    assert_eq!(step(&mut run).await, "user_input");
    assert_eq!(step(&mut run).await, "compact");
    host.cut();
    let (mut host, _) = Host::answered(&mut listener, &connected("running")).await;
    host.send_all(&[compact("done"), output("hi")]).await;
    assert_eq!(step(&mut run).await, "compact");
    assert_eq!(run.finish().await.unwrap().result, "hi");
}

#[tokio::test(start_paused = true)]
async fn updates_of_one_id_are_shown_where_nothing_was_lost() {
    let (agent, _, mut host, _listener) = ready().await;
    let mut run = agent.chat("hello").await;
    host.recv_type("INPUT").await;
    let progress = event("progress", "p", &json!({"done": 1}));
    host.send_all(&[user_input("hello", "u"), progress.clone(), progress])
        .await;
    for name in ["user_input", "progress", "progress"] {
        assert_eq!(step(&mut run).await, name);
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_ended_meanwhile_takes_its_answer_from_the_conversation() {
    for status in ["connected", "new"] {
        let (agent, mut run, mut listener) = cut_in_mid_run().await;
        let (host, _) = Host::answered(&mut listener, &newer(status, "while you were away")).await;
        let output = run.finish().await.unwrap();
        assert_eq!(output.result, "while you were away");
        assert!(output.chat_items.is_some());
        let kept = agent.session().session.unwrap();
        assert!(kept.get().contains("while you were away"));
        recv_nothing(host).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_forgotten_run_ends_with_the_delivery_of_its_prompt() {
    let (_agent, mut run, mut listener) = cut_in_mid_run().await;
    let (host, _) = Host::answered(&mut listener, &connected("new")).await;
    is_lost(&mut run).await;
    recv_nothing(host).await;
}

#[tokio::test(start_paused = true)]
async fn a_possibly_lost_prompt_is_not_resent() {
    for (answer, expected) in [
        (connected("connected"), Err(Delivery::Unknown)),
        (connected("new"), Err(Delivery::Unknown)),
        (newer("connected", "it did arrive"), Ok("it did arrive")),
    ] {
        let (agent, _, mut host, mut listener) = ready().await;
        let mut run = agent.chat("hello").await;
        host.recv_type("INPUT").await;
        host.cut();
        let (host, _) = Host::answered(&mut listener, &answer).await;
        let end = run.finish().await;
        let end = end.as_ref().map(|it| it.result.as_str());
        assert_eq!(end.map_err(CallError::delivery), expected);
        recv_nothing(host).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_running_session_confirms_the_prompt() {
    let (agent, _, mut host, mut listener) = ready().await;
    let mut run = agent.chat("hello").await;
    host.recv_type("INPUT").await;
    host.cut();
    let (mut host, _) = Host::answered(&mut listener, &connected("running")).await;
    host.send_all(&[user_input("hello", "u"), output("hi")])
        .await;
    assert_eq!(step(&mut run).await, "user_input");
    assert_eq!(run.finish().await.unwrap().result, "hi");
    recv_nothing(host).await;
}

#[tokio::test(start_paused = true)]
async fn a_question_can_be_answered_after_a_reconnect() {
    let (_agent, mut run, ask, host, mut listener) = asked().await;
    host.cut();
    let answer = ask.answer("a");
    let back = async {
        let (mut host, connect) = Host::answered(&mut listener, &connected("running")).await;
        assert_eq!(connect.get("last_msg_id"), None, "the question is open");
        host.send(&event("ask_user", "q", &json!({"question": "Which?"})))
            .await;
        let sent = host.recv().await;
        let expected = json!({"type": "ASK_USER_RESPONSE", "answer": "a", "request_id": "q"});
        assert_eq!(sent, expected);
        host.send(&output("a it is")).await;
        host
    };
    let (answered, _host) = tokio::join!(answer, back);
    answered.unwrap();
    assert_eq!(run.finish().await.unwrap().result, "a it is");
}

#[tokio::test(start_paused = true)]
async fn a_question_of_an_ended_agent_cannot_be_answered() {
    let (agent, run, ask, mut host, _listener) = asked().await;
    agent.close();
    assert_eq!(host.recv().await, json!({"close": 1000}));
    drop(host);
    agent.closed().await;
    assert_eq!(ask.answer("a").await, Err(Refused::Closed));
    drop((agent, run));
    assert_eq!(ask.answer("a").await, Err(Refused::Closed));
}

#[tokio::test(start_paused = true)]
async fn a_restarted_program_resumes_its_run() {
    let resume = Resume::parse(
        r#"{"session_id":"s-1","last_msg_id":"t1","session":{"turn":1,"messages":[]}}"#,
    );
    let (agent, _events, mut listener) = open(ClientConfig {
        resume: resume.unwrap(),
        ..options()
    });
    let mut run = agent.attach();
    let (mut host, connect) = Host::answered(&mut listener, &connected("running")).await;
    assert_eq!(connect["session_id"], "s-1");
    assert_eq!(connect["last_msg_id"], "t1");
    assert_eq!(connect["session"], json!({"turn": 1, "messages": []}));
    host.send_all(&[thinking("t2"), output("hi")]).await;
    assert_eq!(step(&mut run).await, "thinking");
    assert_eq!(run.finish().await.unwrap().result, "hi");
}

#[tokio::test(start_paused = true)]
async fn a_restarted_program_gets_the_open_question() {
    let (agent, _, mut host, _listener) = ready().await;
    let mut run = agent.chat("hello").await;
    host.recv_type("INPUT").await;
    let question = event("ask_user", "q", &json!({"question": "Which?"}));
    host.send_all(&[user_input("hello", "u"), question.clone()])
        .await;
    assert_eq!(step(&mut run).await, "user_input");
    assert!(matches!(run.next().await, Some(Ok(RunEvent::AskUser(_)))));
    let kept = agent.session();
    assert_eq!(kept.last_msg_id.as_deref(), Some("u"));
    let (agent, _events, mut listener) = open(ClientConfig {
        resume: kept,
        ..options()
    });
    let mut run = agent.attach();
    let (mut host, _) = Host::answered(&mut listener, &connected("running")).await;
    host.send(&question).await;
    assert!(matches!(run.next().await, Some(Ok(RunEvent::AskUser(_)))));
}

#[tokio::test(start_paused = true)]
async fn an_older_conversation_yields_to_the_hosts() {
    let (agent, _, mut host, mut listener) = ready().await;
    let mut run = agent.chat("hello").await;
    host.recv_type("INPUT").await;
    host.send(&output("hi")).await;
    run.finish().await.unwrap();
    let mut run = agent.chat("hello").await;
    host.recv_type("INPUT").await;
    host.cut();
    let (host, connect) = Host::answered(&mut listener, &connected("connected")).await;
    assert_eq!(connect["session"]["iteration"], 0);
    assert_eq!(connect["session"]["result"], "hi");
    failure(&mut run).await;
    host.cut();
    let (_host, connect) = Host::answered(&mut listener, &connected("connected")).await;
    assert_eq!(connect["session"]["iteration"], 1);
}

#[tokio::test(start_paused = true)]
async fn an_oversized_conversation_does_not_prevent_connecting() {
    let (agent, _, mut listener) = open(ClientConfig {
        max_sent_bytes: 1024,
        ..options()
    });
    let (mut host, _) = Host::answered(&mut listener, &connected("new")).await;
    agent.ready().await.unwrap();
    let mut run = agent.chat("hello").await;
    host.recv_type("INPUT").await;
    host.send(&output(&"hi ".repeat(1000))).await;
    run.finish().await.unwrap();
    host.cut();
    let (_host, connect) = Host::answered(&mut listener, &connected("connected")).await;
    assert_eq!(connect["session_id"], "s-1");
    assert_eq!(connect.get("session"), None);
    assert_eq!(agent.ready().await, Ok(2));
}

#[tokio::test(start_paused = true)]
async fn a_new_session_is_a_new_connection_with_or_without_the_conversation() {
    for keeps in [true, false] {
        let (agent, _, mut host, mut listener) = ready().await;
        let mut run = agent.chat("hello").await;
        host.recv_type("INPUT").await;
        host.send(&output("hi")).await;
        run.finish().await.unwrap();
        let mut stuck = agent.chat("stuck").await;
        host.recv_type("INPUT").await;
        let renew = agent.new_session(keeps);
        let back = async {
            assert_eq!(host.recv().await, json!({"close": 1000}));
            Host::answered(&mut listener, &connected("new")).await
        };
        let (renewed, (_host, connect)) = tokio::join!(renew, back);
        assert_eq!(renewed, Ok(()));
        assert_eq!(connect.get("session_id"), None);
        assert_eq!(connect.get("session").is_some(), keeps);
        let ended = failure(&mut stuck).await;
        assert!(matches!(
            ended,
            CallError::Closed {
                reason: CloseReason::Local,
                ..
            }
        ));
    }
}

#[tokio::test(start_paused = true)]
async fn attaching_to_an_idle_session_reports_it() {
    let (agent, mut events, mut listener) = open(options());
    let mut run = agent.attach();
    let (_host, _) = Host::answered(&mut listener, &newer("connected", "old")).await;
    let nothing = failure(&mut run).await;
    assert!(matches!(nothing, CallError::Refused(Refused::UnknownId)));
    loop {
        match events.next_link().await {
            Some(LinkEvent::Event(ClientEvent::Connected(frame))) => {
                assert!(frame.session.is_some());
                break;
            }
            Some(LinkEvent::State(_)) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_session_that_the_host_assigns_counts() {
    let (agent, mut run, mut listener) = cut_in_mid_run().await;
    let mut other = connected("new");
    other["session_id"] = json!("s-2");
    let (host, _) = Host::answered(&mut listener, &other).await;
    assert_eq!(failure(&mut run).await.delivery(), Delivery::Delivered);
    assert_eq!(agent.session().session_id.as_deref(), Some("s-2"));
    assert_eq!(agent.session().last_msg_id, None);
    host.cut();
    let (_host, connect) = Host::answered(&mut listener, &connected("new")).await;
    assert_eq!(connect["session_id"], "s-2");
}

#[tokio::test(start_paused = true)]
async fn a_run_of_another_device_does_not_answer_a_prompt() {
    let (agent, _, mut host, mut listener) = ready().await;
    let mut run = agent.chat("mine").await;
    host.recv_type("INPUT").await;
    host.send(&json!({"type": "RUNTIME_INPUT_ACK", "session_id": "s-1", "id": "r"}))
        .await;
    assert!(matches!(
        run.next().await,
        Some(Ok(RunEvent::Queued { .. }))
    ));
    host.cut();
    // The conversation begins with `hello`.
    let (_host, _) = Host::answered(&mut listener, &newer("connected", "theirs")).await;
    assert_eq!(failure(&mut run).await.delivery(), Delivery::Delivered);
    drop(agent);
}

#[tokio::test(start_paused = true)]
async fn reconnect_delays_grow_and_reset_when_connected() {
    let (agent, _events, mut listener) = open(options());
    let mut waits = Vec::new();
    let mut lost = Instant::now();
    for round in 0..8 {
        let host = Host::accept(&mut listener).await;
        waits.push(lost.elapsed());
        assert!(!agent.state().is_ready(), "{round}");
        host.cut();
        lost = Instant::now();
    }
    for pair in waits.windows(2).skip(5) {
        assert!(pair[1] >= Duration::from_secs(15), "{waits:?}");
        assert!(pair[1] <= Duration::from_secs(30), "{waits:?}");
    }
    let (host, _) = Host::answered(&mut listener, &connected("new")).await;
    agent.ready().await.unwrap();
    host.cut();
    lost = Instant::now();
    let _host = Host::accept(&mut listener).await;
    assert!(lost.elapsed() <= Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn without_reconnects_a_run_ends_with_its_connection() {
    let link = ClientConfig::default().link;
    let link = LinkConfig {
        reconnect: ReconnectPolicy::off(),
        ..link
    };
    let (agent, _events, mut listener) = open(ClientConfig { link, ..options() });
    let (mut host, _) = Host::answered(&mut listener, &connected("new")).await;
    agent.ready().await.unwrap();
    let mut run = agent.chat("hello").await;
    host.recv_type("INPUT").await;
    host.send(&user_input("hello", "u")).await;
    assert_eq!(step(&mut run).await, "user_input");
    host.cut();
    is_lost(&mut run).await;
}

#[tokio::test(start_paused = true)]
async fn a_refused_reconnect_ends_the_run() {
    let (agent, mut run, mut listener) = cut_in_mid_run().await;
    let _host = Host::answered(&mut listener, &error("forbidden: blacklisted")).await;
    let ended = failure(&mut run).await;
    assert!(matches!(
        ended,
        CallError::Closed {
            reason: CloseReason::Authentication { .. },
            ..
        }
    ));
    agent.closed().await;
}

#[tokio::test(start_paused = true)]
async fn the_conversation_of_the_last_run_opens_the_next_connection() {
    let (agent, _events, mut host, mut listener) = ready().await;
    let mut run = agent.chat("hello").await;
    host.recv_type("INPUT").await;
    host.send_all(&[user_input("hello", "u"), output("hi")])
        .await;
    run.finish().await.unwrap();
    host.cut();
    let (_host, connect) = Host::answered(&mut listener, &connected("connected")).await;
    let session = &connect["session"];
    assert_eq!(session["result"], "hi");
}

#[tokio::test(start_paused = true)]
async fn an_undelivered_step_is_replayed_to_the_next_program() {
    let (agent, mut run, mut host, mut listener) = in_mid_run().await;
    host.send_all(&[thinking("t2"), json!({"type": "PING"})])
        .await;
    host.recv_type("PONG").await;
    host.cut();
    // The last step has come, and waits here: the next line begins behind it.
    let (_host, connect) = Host::answered(&mut listener, &connected("running")).await;
    assert_eq!(connect["last_msg_id"], "t2");
    let kept = agent.session();
    assert_eq!(kept.last_msg_id.as_deref(), Some("t1"));

    let (other, _events, mut listener) = open(ClientConfig {
        resume: kept,
        ..options()
    });
    let mut rest = other.attach();
    let (mut host, connect) = Host::answered(&mut listener, &connected("running")).await;
    assert_eq!(connect["last_msg_id"], "t1");
    host.send_all(&[thinking("t2"), output("hi")]).await;
    assert_eq!(step(&mut rest).await, "thinking");
    assert_eq!(other.session().last_msg_id.as_deref(), Some("t2"));
    assert_eq!(rest.finish().await.unwrap().result, "hi");
    assert_eq!(step(&mut run).await, "thinking");
    assert_eq!(agent.session().last_msg_id.as_deref(), Some("t2"));
}

#[tokio::test(start_paused = true)]
async fn an_incomplete_text_is_replayed_to_the_next_program() {
    let (agent, _, mut host, mut listener) = ready().await;
    let mut run = agent.chat("hello").await;
    host.recv_type("INPUT").await;
    let part = |id| {
        event(
            "assistant_delta",
            id,
            &json!({"content": id, "message_id": "m"}),
        )
    };
    host.send_all(&[user_input("hello", "u"), part("1"), part("2")])
        .await;
    for expected in ["user_input", "assistant_delta", "assistant_delta"] {
        assert_eq!(step(&mut run).await, expected);
    }
    host.cut();
    // The host tells both parts again, and this program has shown them.
    let (mut host, connect) = Host::answered(&mut listener, &connected("running")).await;
    assert_eq!(connect["last_msg_id"], "u");
    host.send_all(&[part("1"), part("2"), part("3")]).await;
    let RunEvent::Step(third) = run.next().await.unwrap().unwrap() else {
        panic!("no step")
    };
    assert_eq!(third.event.id.as_deref(), Some("3"));
    assert_eq!(agent.session().last_msg_id.as_deref(), Some("u"));
    let whole = event("assistant", "m", &json!({"content": "123"}));
    host.send_all(&[whole, output("123")]).await;
    assert_eq!(step(&mut run).await, "assistant");
    assert_eq!(agent.session().last_msg_id.as_deref(), Some("m"));
    assert_eq!(run.finish().await.unwrap().result, "123");
}

#[tokio::test(start_paused = true)]
async fn steps_of_the_previous_session_do_not_affect_the_new_one() {
    let (agent, _, mut host, mut listener) = ready().await;
    let mut run = agent.chat("hello").await;
    host.recv_type("INPUT").await;
    host.send_all(&[user_input("hello", "u"), thinking("t1")])
        .await;
    assert_eq!(step(&mut run).await, "user_input");
    let renew = agent.new_session(false);
    let back = async {
        assert_eq!(host.recv().await, json!({"close": 1000}));
        Host::answered(&mut listener, &connected("new")).await
    };
    let (renewed, _) = tokio::join!(renew, back);
    assert_eq!(renewed, Ok(()));
    assert_eq!(step(&mut run).await, "thinking");
    assert_eq!(agent.session().last_msg_id, None);
}
