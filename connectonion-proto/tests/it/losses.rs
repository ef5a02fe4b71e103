//! The remote agent and a runtime, and a line that is lost at every frame: each run ends, and what is
//! said of a prompt is true.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use connectonion_proto::Json;
use connectonion_proto::client::ClientConfig;
use connectonion_proto::client::Taken;
use connectonion_proto::frame::{
    ApprovalNeeded, AskUser, ErrorFrame, EventKind, Scope, Thinking, ToolResult, ToolStatus,
};
use connectonion_proto::net::{
    Agent, AppError, Client, HostRuntime, Prompt, Reply, RunEvent, RuntimeOptions, Turn,
    connect_with,
};
use connectonion_proto::server::ServerConfig;
use connectonion_proto::trust::TrustLevel;
use rpc_core::net::DriverConfig;
use rpc_core::{CallError, Delivery};
use serde_json::json;
use switchboard_testing::losses::{Lossy, at_every_frame};

use crate::scripted::{client_key, host_key};

/// What has reached the agent, prompts and answers, in order.
type Heard = Arc<Mutex<Vec<String>>>;

/// Wants leave and an answer, twice, and reads what is said meanwhile.
struct Asking(Heard);

impl Asking {
    fn recv(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }
}

impl Agent for Asking {
    async fn run(&self, turn: &Turn, prompt: Prompt) -> Result<Reply, AppError> {
        self.recv(&*prompt.text);
        turn.emit(EventKind::Thinking(Thinking::new("hm")))?;
        let args = Json::of(&json!({"path": "a"})).unwrap();
        let leave = turn.approve(ApprovalNeeded::new("delete", args.clone(), ""));
        self.recv(format!("approved {}", leave.await?.approved));
        // It takes longer than any client waits for what a host sends again.
        tokio::time::sleep(Duration::from_secs(10)).await;
        let result = ToolResult::new("t", "delete", ToolStatus::Success, "gone");
        turn.emit(EventKind::ToolResult(result))?;
        let answer = turn.ask_user(AskUser::new("Which?")).await?;
        self.recv(format!("answer {}", answer.get()));
        for said in turn.next_inputs()? {
            self.recv(&*said.text);
        }
        Ok(Reply::new("done"))
    }
}

fn runtime(received: &Heard) -> HostRuntime {
    let options = RuntimeOptions::new(&host_key(), TrustLevel::Open);
    let runtime = HostRuntime::new(Asking(Arc::clone(received)), options);
    let running = runtime.clone();
    tokio::spawn(async move { running.run().await });
    runtime
}

/// What is said of a prompt is true.
fn check(received: &Heard, prompt: &str, said: Result<(), Delivery>) {
    let received = received.lock().unwrap();
    let arrived = received.iter().filter(|it| *it == prompt).count();
    let possible = match said {
        Ok(()) | Err(Delivery::Delivered) => arrived == 1,
        Err(Delivery::NotSent) => arrived == 0,
        Err(_) => arrived <= 1,
    };
    assert!(possible, "{prompt}: {said:?}, and {received:?}");
}

/// Says something while the agent works.
async fn interject(agent: Client) -> Result<Taken, CallError<ErrorFrame>> {
    agent.interject("more").await
}

async fn scenario(lossy: Lossy, interjects: bool) {
    let received = Heard::default();
    let runtime = runtime(&received);
    let mut listener = lossy.listener;
    tokio::spawn(async move {
        while let Some(line) = listener.accept().await {
            let config = ServerConfig::default();
            tokio::spawn(runtime.serve(line, None, config, DriverConfig::default()));
        }
    });
    let options = ClientConfig {
        host: Some(*host_key().address()),
        ..ClientConfig::default()
    };
    let (agent, mut events, connection) = connect_with(lossy.dialer, client_key(), options);
    tokio::spawn(connection.run());
    tokio::spawn(async move { while events.next().await.is_some() {} });
    agent.ready().await.unwrap();
    let mut run = agent.chat("work").await;
    let mut interjected = None;
    let mut asked = Vec::new();
    while let Some(Ok(event)) = run.next().await {
        match event {
            RunEvent::Approval(ask) => {
                if interjects && interjected.is_none() {
                    interjected = Some(tokio::spawn(interject(agent.clone())));
                    tokio::task::yield_now().await;
                }
                asked.push(ask.request_id().unwrap().to_owned());
                ask.approve(Scope::Once).await.unwrap();
            }
            RunEvent::AskUser(ask) => {
                asked.push(ask.request_id().unwrap().to_owned());
                ask.answer("a").await.unwrap();
            }
            _ => {}
        }
    }
    let end = run.outcome().expect("an end").clone();
    let said = match &end {
        Ok(output) => {
            assert_eq!(output.result, "done");
            Ok(())
        }
        Err(error) => Err(error.delivery()),
    };
    check(&received, "work", said);
    if said.is_ok() {
        asked.dedup();
        assert_eq!(asked.len(), 2, "each question is shown once");
        let received = received.lock().unwrap();
        let answers = ["approved true", "answer \"a\""];
        let got = received.iter().filter(|it| answers.contains(&it.as_str()));
        assert_eq!(got.count(), 2, "and answered once");
    }
    if let Some(interjected) = interjected {
        let said = interjected.await.unwrap();
        check(
            &received,
            "more",
            said.map(drop).map_err(|error| error.delivery()),
        );
    }
    if lossy.loss.is_none() {
        assert_eq!(said, Ok(()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_with_questions_ends_wherever_its_connection_is_lost() {
    at_every_frame(|lossy| scenario(lossy, false)).await;
}

#[tokio::test(start_paused = true)]
async fn a_prompt_during_a_run_learns_its_outcome_wherever_the_connection_is_lost() {
    at_every_frame(|lossy| scenario(lossy, true)).await;
}
