//! The remote agent over a line in memory, on a clock that tests move: one connection.

use std::sync::Mutex;
use std::time::{Duration, UNIX_EPOCH};

use connectonion_proto::client::{ClientConfig, ClientEvent, Step, Taken};
use connectonion_proto::frame::{
    AdminAction, Approval, ApprovalNeeded, AskUser, Input, Mode, Rejection, Scope, SessionState,
    Ulw,
};
use connectonion_proto::net::{Client, Events, Human, Run, RunEvent, connect_with};
use rpc_core::Str;
use rpc_core::net::mem::{self, MemListener};
use rpc_core::net::{LinkEvent, LinkState, QueueConfig};
use rpc_core::{CallError, CloseReason, Delivery, Refused};
use serde_json::json;

use crate::scripted::{
    Host, NOW, client_key, connected, error, event, host_key, output, signed_by, thinking,
    user_input,
};

pub fn options() -> ClientConfig {
    ClientConfig {
        host: Some(*host_key().address()),
        clock: || UNIX_EPOCH + Duration::from_secs_f64(NOW),
        ..ClientConfig::default()
    }
}

pub fn open(options: ClientConfig) -> (Client, Events, MemListener) {
    let (dialer, listener) = mem::listen(64);
    let (agent, events, connection) = connect_with(dialer, client_key(), options);
    tokio::spawn(connection.run());
    (agent, events, listener)
}

/// An agent that is admitted, its events and its host.
pub async fn ready() -> (Client, Events, Host, MemListener) {
    let (agent, events, mut listener) = open(options());
    let (host, _) = Host::answered(&mut listener, &connected("new")).await;
    agent.ready().await.unwrap();
    (agent, events, host, listener)
}

/// The next event of the protocol but the first CONNECTED.
pub async fn next(events: &mut Events) -> ClientEvent {
    loop {
        match events.next_link().await.expect("an event") {
            LinkEvent::Event(ClientEvent::Connected(_)) | LinkEvent::State(_) => {}
            LinkEvent::Event(event) => return event,
            other => panic!("{other:?}"),
        }
    }
}

/// The type of the next step.
pub async fn step(run: &mut Run) -> String {
    match run.next().await {
        Some(Ok(RunEvent::Step(step))) => step.event.kind.tag().to_owned(),
        other => panic!("{other:?}"),
    }
}

/// How the run ends that gives nothing more.
pub async fn failure(run: &mut Run) -> CallError<connectonion_proto::frame::ErrorFrame> {
    match run.next().await {
        Some(Err(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_connect_is_signed_for_one_host() {
    let mut nonces = Vec::new();
    for _ in 0..2 {
        let (agent, _events, mut listener) = open(options());
        let (_host, connect) = Host::answered(&mut listener, &connected("new")).await;
        agent.ready().await.unwrap();
        assert_eq!(signed_by(&connect), agent.address().to_string());
        let payload = &connect["payload"];
        assert_eq!(payload["to"], host_key().address().to_string());
        assert_eq!(payload["timestamp"], NOW);
        nonces.push(payload["nonce"].as_str().unwrap().to_owned());
        assert_eq!(connect.get("session_id"), None);
    }
    assert_ne!(nonces[0], nonces[1]);
}

#[tokio::test(start_paused = true)]
async fn a_prompt_gives_its_steps_and_then_the_output() {
    let (agent, _events, mut host, _listener) = ready().await;
    let mut run = agent.chat("hello").await;
    assert_eq!(
        host.recv().await,
        json!({"type": "INPUT", "prompt": "hello"})
    );
    host.send_all(&[user_input("hello", "u"), thinking("t"), output("hi")])
        .await;
    assert_eq!(step(&mut run).await, "user_input");
    assert!(run.outcome().is_none());
    let output = run.finish().await.unwrap();
    assert_eq!(output.result, "hi");
    assert!(run.next().await.is_none());
    assert!(matches!(run.outcome(), Some(Ok(_))));
    let kept = agent.session();
    assert_eq!(kept.session_id.as_deref(), Some("s-1"));
    assert_eq!(kept.last_msg_id.as_deref(), Some("t"));
    assert!(kept.session.unwrap().get().contains("\"turn\":2"));
}

#[tokio::test(start_paused = true)]
async fn images_and_files_are_sent() {
    use connectonion_proto::Json;
    use connectonion_proto::frame::Attachment;
    let (agent, _events, mut host, _listener) = ready().await;
    let file = Attachment::new("a.txt", "data:text/plain;base64,aGk=");
    let mut input = Input::new("look");
    input.images = Some(Json::of(&["data:image/png;base64,AA=="]).unwrap());
    input.files = Some(Json::of(&[file]).unwrap());
    let _run = agent.send(input).await;
    let sent = host.recv_type("INPUT").await;
    assert_eq!(sent["images"], json!(["data:image/png;base64,AA=="]));
    assert_eq!(
        sent["files"],
        json!([{"name": "a.txt", "data": "data:text/plain;base64,aGk="}])
    );
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_agent_ends_the_run_and_the_next_prompt_runs() {
    let (agent, _events, mut host, _listener) = ready().await;
    let mut run = agent.chat("boom").await;
    host.recv_type("INPUT").await;
    host.send_all(&[user_input("boom", "u"), error("scripted failure")])
        .await;
    assert_eq!(step(&mut run).await, "user_input");
    let failed = failure(&mut run).await;
    assert!(matches!(failed, CallError::Remote(error) if error.message == "scripted failure"));
    let mut run = agent.chat("again").await;
    host.recv_type("INPUT").await;
    host.send(&output("fine")).await;
    assert_eq!(run.finish().await.unwrap().result, "fine");
}

#[tokio::test(start_paused = true)]
async fn questions_of_the_agent_are_answered_by_their_values() {
    let (agent, mut events, mut host, _listener) = ready().await;
    let mut run = agent.chat("work").await;
    host.recv_type("INPUT").await;
    host.send_all(&[
        event(
            "ask_user",
            "q1",
            &json!({"question": "Which?", "options": ["a", "b"]}),
        ),
        event(
            "approval_needed",
            "q2",
            &json!({"tool": "rm", "arguments": {}, "description": ""}),
        ),
        event(
            "approval_needed",
            "q3",
            &json!({"tool": "rm", "arguments": {}}),
        ),
        event("plan_review", "q4", &json!({"plan_content": "1. do it"})),
        event(
            "ulw_turns_reached",
            "q5",
            &json!({"turns_used": 3, "max_turns": 3}),
        ),
    ])
    .await;
    let Some(Ok(RunEvent::AskUser(ask))) = run.next().await else {
        panic!("a question");
    };
    assert_eq!(ask.question().question, "Which?");
    assert_eq!(ask.request_id(), Some("q1"));
    ask.answer("a").await.unwrap();
    let Some(Ok(RunEvent::Approval(ask))) = run.next().await else {
        panic!("an approval");
    };
    ask.approve(Scope::Session).await.unwrap();
    let Some(Ok(RunEvent::Approval(ask))) = run.next().await else {
        panic!("an approval");
    };
    ask.reject(Rejection::Soft).await.unwrap();
    let Some(Ok(RunEvent::PlanReview(ask))) = run.next().await else {
        panic!("a plan");
    };
    ask.reply("do it").await.unwrap();
    let Some(Ok(RunEvent::TurnsReached(ask))) = run.next().await else {
        panic!("turns");
    };
    ask.decide(Ulw::go_on(5)).await.unwrap();
    for sent in [
        json!({"type": "ASK_USER_RESPONSE", "answer": "a", "request_id": "q1"}),
        json!({"type": "APPROVAL_RESPONSE", "approved": true, "scope": "session", "request_id": "q2"}),
        json!({"type": "APPROVAL_RESPONSE", "approved": false, "mode": "reject_soft", "request_id": "q3"}),
        json!({"type": "PLAN_REVIEW_RESPONSE", "message": "do it", "request_id": "q4"}),
        json!({"type": "ULW_RESPONSE", "action": "continue", "turns": 5, "request_id": "q5"}),
    ] {
        assert_eq!(host.recv().await, sent);
    }
    host.send(
        &json!({"type": "ERROR", "code": "STALE_ANSWER", "message": "late", "request_id": "q5"}),
    )
    .await;
    assert!(
        matches!(next(&mut events).await, ClientEvent::AnswerRefused { request_id: Some(id), .. }
        if id == "q5")
    );
}

#[tokio::test(start_paused = true)]
async fn output_declines_every_question() {
    let (agent, _events, mut host, _listener) = ready().await;
    let mut run = agent.chat("work").await;
    host.recv_type("INPUT").await;
    host.send_all(&[
        event("ask_user", "q1", &json!({"question": "Which?"})),
        event(
            "approval_needed",
            "q2",
            &json!({"tool": "rm", "arguments": {}}),
        ),
        output("done without"),
    ])
    .await;
    assert_eq!(run.finish().await.unwrap().result, "done without");
    assert_eq!(host.recv().await["type"], "ASK_USER_RESPONSE");
    let refused = host.recv().await;
    assert_eq!(refused["approved"], json!(false));
    assert_eq!(refused["mode"], "reject_hard");
}

/// Says yes to everything and writes down what it sees.
#[derive(Default)]
struct Yes(Mutex<Vec<String>>);

impl Human for Yes {
    async fn step(&self, step: &Step) {
        self.0
            .lock()
            .unwrap()
            .push(step.event.kind.tag().to_owned());
    }

    async fn ask_user(&self, question: &AskUser) -> Str {
        format!("yes: {}", question.question).into()
    }

    async fn approve(&self, _: &ApprovalNeeded) -> Approval {
        Approval::granted(Scope::Once)
    }
}

#[tokio::test(start_paused = true)]
async fn a_human_answers_while_the_run_is_read() {
    let (agent, _events, mut host, _listener) = ready().await;
    let mut run = agent.chat("work").await;
    host.recv_type("INPUT").await;
    host.send_all(&[
        user_input("work", "u"),
        event("ask_user", "q1", &json!({"question": "Really?"})),
        event(
            "approval_needed",
            "q2",
            &json!({"tool": "rm", "arguments": {}}),
        ),
        output("done"),
    ])
    .await;
    let human = Yes::default();
    assert_eq!(run.complete(&human).await.unwrap().result, "done");
    assert_eq!(host.recv().await["answer"], "yes: Really?");
    assert_eq!(host.recv().await["approved"], json!(true));
    assert_eq!(*human.0.lock().unwrap(), ["user_input"]);
}

#[tokio::test(start_paused = true)]
async fn a_prompt_during_a_run_is_acknowledged_and_answered() {
    let (agent, _events, mut host, _listener) = ready().await;
    let mut run = agent.chat("hello").await;
    host.recv_type("INPUT").await;
    host.send(&user_input("hello", "u")).await;
    assert_eq!(step(&mut run).await, "user_input");
    let speak = agent.interject("and this");
    let recv = async {
        assert_eq!(host.recv().await["prompt"], "and this");
        host.send(&json!({"type": "RUNTIME_INPUT_ACK", "session_id": "s-1", "id": "r-1"}))
            .await;
    };
    let (taken, ()) = tokio::join!(speak, recv);
    assert_eq!(taken.unwrap(), Taken::Queued { id: "r-1".into() });
    let mut listens = agent.chat("this too").await;
    host.recv_type("INPUT").await;
    host.send_all(&[
        thinking("t1"),
        json!({"type": "RUNTIME_INPUT_ACK", "session_id": "s-1", "id": "r-2"}),
        thinking("t2"),
        output("all three"),
    ])
    .await;
    assert!(matches!(listens.next().await, Some(Ok(RunEvent::Queued { id })) if id == "r-2"));
    assert_eq!(step(&mut listens).await, "thinking");
    assert_eq!(listens.finish().await.unwrap().result, "all three");
    assert_eq!(step(&mut run).await, "thinking");
    assert_eq!(step(&mut run).await, "thinking");
    assert_eq!(run.finish().await.unwrap().result, "all three");
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_misses_the_run_gets_the_next() {
    let (agent, _events, mut host, _listener) = ready().await;
    let mut first = agent.chat("one").await;
    host.recv_type("INPUT").await;
    host.send(&user_input("one", "u1")).await;
    assert_eq!(step(&mut first).await, "user_input");
    let mut second = agent.chat("two").await;
    host.recv_type("INPUT").await;
    host.send_all(&[output("first"), user_input("two", "u2"), output("second")])
        .await;
    assert_eq!(first.finish().await.unwrap().result, "first");
    assert_eq!(second.finish().await.unwrap().result, "second");
}

#[tokio::test(start_paused = true)]
async fn frames_without_a_run_are_events() {
    let (agent, mut events, mut host, _listener) = ready().await;
    drop(agent.chat("hello").await);
    host.recv_type("INPUT").await;
    host.send_all(&[
        user_input("hello", "u"),
        output("hi"),
        event("mode_changed", "m", &json!({"mode": "plan"})),
        json!({"type": "AGENT_PROFILE"}),
        error("interrupt requires an active turn"),
    ])
    .await;
    assert!(matches!(next(&mut events).await, ClientEvent::Step(_)));
    assert!(matches!(
        next(&mut events).await,
        ClientEvent::RunEnded(Ok(_))
    ));
    assert!(matches!(next(&mut events).await, ClientEvent::Step(step)
        if step.event.kind.tag() == "mode_changed"));
    assert!(matches!(
        next(&mut events).await,
        ClientEvent::Unknown { .. }
    ));
    assert!(matches!(next(&mut events).await, ClientEvent::Complaint(_)));
}

#[tokio::test(start_paused = true)]
async fn a_run_of_another_device_can_be_followed() {
    let (agent, mut events, mut host, mut listener) = ready().await;
    host.send(&user_input("from the other one", "u")).await;
    assert!(matches!(next(&mut events).await, ClientEvent::Step(_)));
    let mut run = agent.attach();
    host.send(&thinking("t1")).await;
    assert_eq!(step(&mut run).await, "thinking");
    host.cut();
    let (mut host, connect) = Host::answered(&mut listener, &connected("running")).await;
    assert_eq!(connect["last_msg_id"], "t1");
    host.send_all(&[thinking("t2"), output("hi")]).await;
    assert_eq!(step(&mut run).await, "thinking");
    assert_eq!(run.finish().await.unwrap().result, "hi");
}

#[tokio::test(start_paused = true)]
async fn session_syncs_are_delivered_only_on_request() {
    for wanted in [false, true] {
        let (agent, _events, mut listener) = open(ClientConfig {
            session_sync: wanted,
            ..options()
        });
        let (mut host, _) = Host::answered(&mut listener, &connected("new")).await;
        agent.ready().await.unwrap();
        let mut run = agent.chat("hello").await;
        host.recv_type("INPUT").await;
        host.send_all(&[
            user_input("hello", "u"),
            event("session_sync", "y", &json!({"session": {"turn": 1}})),
            thinking("t"),
        ])
        .await;
        assert_eq!(step(&mut run).await, "user_input");
        if wanted {
            assert_eq!(step(&mut run).await, "session_sync");
        }
        assert_eq!(step(&mut run).await, "thinking");
    }
}

#[tokio::test(start_paused = true)]
async fn an_unread_run_drops_its_oldest_steps_and_keeps_its_end() {
    let queue = QueueConfig {
        max_items: 3,
        ..QueueConfig::default()
    };
    let (agent, _events, mut listener) = open(ClientConfig {
        run: queue,
        ..options()
    });
    let (mut host, _) = Host::answered(&mut listener, &connected("new")).await;
    agent.ready().await.unwrap();
    let mut run = agent.chat("hello").await;
    host.recv_type("INPUT").await;
    for id in 0..10 {
        host.send(&thinking(&id.to_string())).await;
    }
    host.send(&output("hi")).await;
    // A question behind it all: its answer says that all was read.
    let asked = agent.status("s-1");
    let answer = async {
        host.recv_type("SESSION_STATUS").await;
        host.send(&json!({"type": "SESSION_STATUS", "session_id": "s-1", "status": "connected"}))
            .await;
    };
    let (status, ()) = tokio::join!(asked, answer);
    assert_eq!(status.unwrap().status, SessionState::Connected);
    assert!(matches!(run.next().await, Some(Ok(RunEvent::Lagged(8)))));
    assert_eq!(step(&mut run).await, "thinking");
    assert_eq!(run.finish().await.unwrap().result, "hi");
}

#[tokio::test(start_paused = true)]
async fn commands_are_encoded_as_specified() {
    let (agent, _events, mut host, _listener) = ready().await;
    agent.set_mode(Mode::Plan, None).await.unwrap();
    agent.update_prompt("better").await.unwrap();
    agent.interrupt().await.unwrap();
    for sent in [
        json!({"type": "mode_change", "mode": "plan"}),
        json!({"type": "prompt_update", "prompt": "better"}),
        json!({"type": "INTERRUPT"}),
    ] {
        assert_eq!(host.recv().await, sent);
    }
    let asked = agent.admin(AdminAction::GetLevel, "0xabc");
    let answer = async {
        let request = host.recv_type("ADMIN_GET_LEVEL").await;
        assert_eq!(request["payload"]["client_id"], "0xabc");
        assert_eq!(request["payload"]["type"], "ADMIN_GET_LEVEL");
        assert_eq!(signed_by(&request), agent.address().to_string());
        host.send(&error("forbidden: admin only")).await;
    };
    let (refused, ()) = tokio::join!(asked, answer);
    assert!(matches!(refused, Err(CallError::Remote(_))));
    // While a run goes on, the words of newer hosts about a command are not its end.
    let mut run = agent.chat("hello").await;
    host.recv_type("INPUT").await;
    host.send(&user_input("hello", "u")).await;
    assert_eq!(step(&mut run).await, "user_input");
    let asked = agent.admin(AdminAction::Block, "0xabc");
    let answer = async {
        host.recv_type("ADMIN_BLOCK").await;
        let words = "unauthorized: signed command already used";
        host.send_all(&[error(words), output("done")]).await;
    };
    let (refused, ()) = tokio::join!(asked, answer);
    assert!(matches!(refused, Err(CallError::Remote(_))));
    assert!(run.next().await.is_none());
    assert!(run.outcome().is_some());
}

#[tokio::test(start_paused = true)]
async fn before_connected_nothing_is_sent() {
    let (agent, _events, mut listener) = open(options());
    let mut run = agent.chat("early").await;
    let refused = failure(&mut run).await;
    assert!(matches!(refused, CallError::Refused(Refused::NotConnected)));
    let mut host = Host::accept(&mut listener).await;
    host.recv_type("CONNECT").await;
    let mut run = agent.chat("early").await;
    let refused = failure(&mut run).await;
    assert_eq!(refused.delivery(), Delivery::NotSent);
    assert!(refused.is_retryable());
}

#[tokio::test(start_paused = true)]
async fn a_refused_signature_ends_the_connection_for_good() {
    let (agent, mut events, mut listener) = open(options());
    let mut run = agent.attach();
    let _host = Host::answered(&mut listener, &error("unauthorized: invalid signature")).await;
    let message = "unauthorized: invalid signature".to_owned();
    let reason = CloseReason::Authentication { message };
    assert_eq!(agent.closed().await, reason);
    assert!(matches!(next(&mut events).await, ClientEvent::Refused(_)));
    assert!(matches!(agent.state(), LinkState::GaveUp { .. }));
    let ended = failure(&mut run).await;
    assert!(matches!(ended, CallError::Closed { reason: of, .. } if of == reason));
    let late = failure(&mut agent.attach()).await;
    assert!(matches!(late, CallError::Refused(Refused::Closed)));
}

#[tokio::test(start_paused = true)]
async fn the_connection_lives_until_its_last_run_ends() {
    let (agent, events, mut host, _listener) = ready().await;
    let run = agent.chat("hello").await;
    host.recv_type("INPUT").await;
    drop((agent, events));
    host.send(&json!({"type": "PING"})).await;
    host.recv_type("PONG").await;
    drop(run);
    assert_eq!(host.recv().await, json!({"close": 1000}));
}

#[tokio::test(start_paused = true)]
async fn a_run_ends_when_its_client_closes_or_its_task_is_dropped() {
    let (agent, _events, mut host, _listener) = ready().await;
    let mut run = agent.chat("hello").await;
    host.recv_type("INPUT").await;
    agent.close();
    let ended = failure(&mut run).await;
    assert!(matches!(
        ended,
        CallError::Closed {
            reason: CloseReason::Local,
            ..
        }
    ));
    assert_eq!(ended.delivery(), Delivery::Unknown);

    let (dialer, _listener) = mem::listen(1);
    let (agent, _events, connection) = connect_with(dialer, client_key(), options());
    let mut run = agent.attach();
    drop(connection);
    let ended = failure(&mut run).await;
    assert!(matches!(
        ended,
        CallError::Closed {
            reason: CloseReason::TaskGone,
            ..
        }
    ));
}

#[tokio::test(start_paused = true)]
async fn debug_output_shows_no_secret() {
    let options = ClientConfig {
        invite_code: Some("s3cret".into()),
        ..options()
    };
    assert!(!format!("{options:?}").contains("s3cret"));
    let (agent, _events, mut host, _listener) = ready().await;
    let run = agent.chat("s3cret").await;
    host.recv_type("INPUT").await;
    assert!(!format!("{agent:?} {run:?}").contains("s3cret"));
}
