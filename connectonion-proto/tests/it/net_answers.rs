//! The remote agent's answers over lines that are lost: a question that is open is answered, and one
//! that is not open gets no second answer.

use connectonion_proto::client::ClientConfig;
use connectonion_proto::client::{ClientEvent, Resume};
use connectonion_proto::frame::Scope;
use connectonion_proto::net::{Client, Events, Run, RunEvent};
use rpc_core::net::mem::MemListener;
use serde_json::{Value, json};
use tokio::time::{Duration, timeout};

use crate::net_client::{next, open, options, ready, step};
use crate::scripted::{Host, connected, event, output, user_input};

fn ask_user(id: &str) -> Value {
    event("ask_user", id, &json!({"question": "Which?"}))
}

fn approval_needed(id: &str) -> Value {
    event(
        "approval_needed",
        id,
        &json!({"tool": "bash", "arguments": {"command": "rm it"}}),
    )
}

fn tool_result(id: &str) -> Value {
    event(
        "tool_result",
        id,
        &json!({"tool_id": "t", "name": "bash", "args": {}, "status": "success", "result": "ok"}),
    )
}

fn answer(id: &str) -> Value {
    json!({"type": "ASK_USER_RESPONSE", "answer": "a", "request_id": id})
}

fn bound() -> Value {
    let mut frame = connected("running");
    frame["bound_answers"] = json!(true);
    frame
}

struct Asked {
    agent: Client,
    events: Events,
    run: Run,
    host: Host,
    listener: MemListener,
}

pub(crate) async fn asking(question: &Value) -> (Client, Events, Host, MemListener, Run) {
    let (agent, events, mut host, listener) = ready().await;
    let mut run = agent.chat("hello").await;
    host.recv_type("INPUT").await;
    host.send_all(&[user_input("hello", "u"), question.clone()])
        .await;
    assert_eq!(step(&mut run).await, "user_input");
    (agent, events, host, listener, run)
}

/// A run whose question was answered; the host has heard the answer, but no one can know that.
async fn answered(confirms: bool) -> Asked {
    let (agent, events, mut host, listener, mut run) = asking(&ask_user("q")).await;
    host.confirms = confirms;
    let Some(Ok(RunEvent::AskUser(ask))) = run.next().await else {
        panic!("a question");
    };
    ask.answer("a").await.unwrap();
    assert_eq!(host.recv().await, answer("q"));
    Asked {
        agent,
        events,
        run,
        host,
        listener,
    }
}

/// Nothing but `PONG` is said.
async fn recv_nothing(host: &mut Host) {
    let received = timeout(Duration::from_secs(20), host.recv()).await;
    assert!(received.is_err(), "{received:?}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_lost_with_its_connection_is_resent() {
    let mut it = answered(false).await;
    it.host.cut();
    for _ in 0..2 {
        // It may be lost again.
        let (mut host, _) = Host::answered(&mut it.listener, &connected("running")).await;
        host.send(&ask_user("q")).await;
        assert_eq!(host.recv().await, answer("q"));
        host.cut();
    }
    let (mut host, _) = Host::answered(&mut it.listener, &connected("running")).await;
    host.send(&ask_user("q")).await;
    assert_eq!(host.recv().await, answer("q"));
    host.send_all(&[tool_result("r"), output("a it is")]).await;
    assert_eq!(step(&mut it.run).await, "tool_result");
    assert_eq!(it.run.finish().await.unwrap().result, "a it is");
}

#[tokio::test(start_paused = true)]
async fn an_approval_lost_with_its_connection_is_asked_again() {
    let (_agent, _events, mut host, mut listener, mut run) = asking(&approval_needed("q")).await;
    let Some(Ok(RunEvent::Approval(ask))) = run.next().await else {
        panic!("a question");
    };
    ask.approve(Scope::Once).await.unwrap();
    assert_eq!(host.recv().await["type"], "APPROVAL_RESPONSE");
    host.cut();
    let (mut host, _) = Host::answered(&mut listener, &connected("running")).await;
    host.send(&approval_needed("q")).await;
    recv_nothing(&mut host).await;
    let Some(Ok(RunEvent::Approval(ask))) = run.next().await else {
        panic!("the question again");
    };
    ask.approve(Scope::Once).await.unwrap();
    let received = host.recv().await;
    assert_eq!(
        (&received["approved"], &received["request_id"]),
        (&json!(true), &json!("q"))
    );
    host.send(&output("done")).await;
    assert_eq!(run.finish().await.unwrap().result, "done");
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_is_not_sent_to_the_next_question() {
    for goes_on in [true, false] {
        let (_agent, _events, host, mut listener, mut run) = asking(&ask_user("q")).await;
        let Some(Ok(RunEvent::AskUser(ask))) = run.next().await else {
            panic!("a question");
        };
        host.cut();
        // The user answers while the line is down.
        let answers = tokio::spawn(async move { ask.answer("a").await });
        let (mut host, _) = Host::answered(&mut listener, &connected("running")).await;
        host.send(&ask_user("q")).await;
        if goes_on {
            // Someone else has answered meanwhile.
            host.send(&approval_needed("q2")).await;
            recv_nothing(&mut host).await;
            let next = run.next().await;
            assert!(matches!(next, Some(Ok(RunEvent::Approval(_)))), "{next:?}");
        } else {
            assert_eq!(host.recv().await, answer("q"));
        }
        assert_eq!(answers.await.unwrap(), Ok(()));
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_swallowed_by_a_dead_connection_is_resent() {
    let mut it = answered(false).await;
    // The line stays, and nothing comes any more: the client leaves it after 60 s.
    let (mut host, _) = Host::answered(&mut it.listener, &connected("running")).await;
    host.send(&ask_user("q")).await;
    assert_eq!(host.recv().await, answer("q"));
    host.send(&output("a it is")).await;
    assert_eq!(it.run.finish().await.unwrap().result, "a it is");
    drop(it.host);
}

#[tokio::test(start_paused = true)]
async fn a_delivered_answer_is_not_resent_to_the_next_question() {
    for next in [tool_result("r"), approval_needed("q2")] {
        let mut it = answered(false).await;
        it.host.cut();
        let (mut host, _) = Host::answered(&mut it.listener, &connected("running")).await;
        host.send_all(&[ask_user("q"), next]).await;
        recv_nothing(&mut host).await;
        match it.run.next().await {
            Some(Ok(RunEvent::Step(step))) => assert_eq!(step.event.kind.tag(), "tool_result"),
            Some(Ok(RunEvent::Approval(ask))) => assert_eq!(ask.request_id(), Some("q2")),
            other => panic!("{other:?}"),
        }
        host.send(&output("done")).await;
        assert_eq!(it.run.finish().await.unwrap().result, "done");
    }
}

#[tokio::test(start_paused = true)]
async fn a_confirmed_answer_is_not_resent_during_the_run() {
    let mut it = answered(true).await;
    recv_nothing(&mut it.host).await;
    it.host.cut();
    let (mut host, _) = Host::answered(&mut it.listener, &connected("running")).await;
    // What was allowed takes its time.
    host.send(&ask_user("q")).await;
    recv_nothing(&mut host).await;
    host.send_all(&[tool_result("r"), output("done")]).await;
    assert_eq!(step(&mut it.run).await, "tool_result");
    assert_eq!(it.run.finish().await.unwrap().result, "done");
}

#[tokio::test(start_paused = true)]
async fn a_refused_repeat_of_a_bound_answer_is_not_an_error() {
    let mut it = answered(false).await;
    it.host.cut();
    let (mut host, _) = Host::answered(&mut it.listener, &bound()).await;
    // The agent does something else besides, so the question is not the last event.
    assert_eq!(host.recv().await, answer("q"));
    let stale = |id: &str| {
        json!({"type": "ERROR", "code": "STALE_ANSWER", "reason": "stale", "message": "stale",
            "request_id": id})
    };
    host.send_all(&[stale("q"), stale("q"), output("done")])
        .await;
    assert_eq!(it.run.finish().await.unwrap().result, "done");
    let refused = next(&mut it.events).await;
    assert!(matches!(refused, ClientEvent::AnswerRefused { .. }));
    let more = timeout(Duration::from_secs(20), next(&mut it.events)).await;
    assert!(more.is_err(), "only the second one is told: {more:?}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_for_an_ended_run_is_not_sent_to_the_next() {
    let mut it = answered(false).await;
    it.host.cut();
    let (mut host, _) = Host::answered(&mut it.listener, &connected("connected")).await;
    assert!(it.run.finish().await.is_err());
    let mut run = it.agent.chat("again").await;
    host.recv_type("INPUT").await;
    host.send_all(&[user_input("again", "u2"), ask_user("q3")])
        .await;
    assert_eq!(step(&mut run).await, "user_input");
    assert!(matches!(run.next().await, Some(Ok(RunEvent::AskUser(_)))));
    host.cut();
    let (mut host, _) = Host::answered(&mut it.listener, &connected("running")).await;
    host.send(&ask_user("q3")).await;
    recv_nothing(&mut host).await;
}

/// The run of a session that goes on behind its first step.
async fn attached() -> (Client, Run, Host, MemListener) {
    let resume = Resume::parse(r#"{"session_id":"s-1","last_msg_id":"u"}"#);
    let (agent, _events, mut listener) = open(ClientConfig {
        resume: resume.unwrap(),
        ..options()
    });
    let run = agent.attach();
    let (host, _) = Host::answered(&mut listener, &connected("running")).await;
    (agent, run, host, listener)
}

#[tokio::test(start_paused = true)]
async fn the_last_replayed_question_is_open() {
    let (_agent, mut run, mut host, mut listener) = attached().await;
    host.send_all(&[ask_user("q1"), tool_result("r"), approval_needed("q2")])
        .await;
    assert_eq!(step(&mut run).await, "ask_user", "it was answered");
    assert_eq!(step(&mut run).await, "tool_result");
    // The line is lost before the last one was shown.
    host.cut();
    let (mut host, connect) = Host::answered(&mut listener, &connected("running")).await;
    assert_eq!(connect["last_msg_id"], "r");
    host.send(&approval_needed("q2")).await;
    let Some(Ok(RunEvent::Approval(ask))) = run.next().await else {
        panic!("a question");
    };
    assert_eq!(ask.request_id(), Some("q2"));
    // What comes later is shown at once.
    host.send_all(&[tool_result("r2"), ask_user("q3"), output("done")])
        .await;
    assert_eq!(step(&mut run).await, "tool_result");
    assert!(matches!(run.next().await, Some(Ok(RunEvent::AskUser(_)))));
    assert_eq!(run.finish().await.unwrap().result, "done");
}

#[tokio::test(start_paused = true)]
async fn attaching_delivers_the_open_question() {
    let resume = Resume::parse(r#"{"session_id":"s-1","last_msg_id":"u"}"#);
    let (agent, mut events, mut listener) = open(ClientConfig {
        resume: resume.unwrap(),
        ..options()
    });
    let (mut host, _) = Host::answered(&mut listener, &connected("running")).await;
    host.send(&ask_user("q1")).await;
    // The client was connected first, and no one listened.
    while !matches!(events.next().await, Some(ClientEvent::Step(_))) {}
    let mut run = agent.attach();
    let Some(Ok(RunEvent::AskUser(ask))) = run.next().await else {
        panic!("a question");
    };
    ask.answer("yes").await.unwrap();
    host.recv_type("ASK_USER_RESPONSE").await;
    drop(run);
    let mut run = agent.attach();
    host.send(&output("done")).await;
    assert_eq!(run.finish().await.unwrap().result, "done");
}

#[tokio::test(start_paused = true)]
async fn a_replayed_question_is_delivered_before_the_run_ends() {
    let (_agent, mut run, mut host, _listener) = attached().await;
    host.send_all(&[ask_user("q1"), output("done")]).await;
    assert_eq!(step(&mut run).await, "ask_user");
    assert_eq!(run.finish().await.unwrap().result, "done");
}

#[tokio::test(start_paused = true)]
async fn a_receipt_is_not_mistaken_for_a_query_reply() {
    let it = answered(true).await;
    let mut host = it.host;
    let asked = it.agent.status("other");
    let reply = async {
        let query = host.recv_type("SESSION_STATUS").await;
        assert_eq!(query["session"]["session_id"], "other");
        host.send(&json!({"type": "SESSION_STATUS", "session_id": "other", "status": "not_found"}))
            .await;
    };
    let (status, ()) = tokio::join!(asked, reply);
    assert_eq!(status.unwrap().status.name(), "not_found");
}
