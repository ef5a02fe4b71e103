//! The recorded hosts, played to the remote agent: its runs show what the recorded agent did and end
//! with what it answered, and its answers are those that were recorded.

use connectonion_proto::client::Taken;
use connectonion_proto::frame::{Answer, ClientFrame, Input, Response};
use connectonion_proto::id::EventId;
use connectonion_proto::limits::defaults;
use connectonion_proto::net::{Client, Run, RunEvent};
use rpc_core::CallError;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::script::{is_end, is_event};
use super::{Line, VERSIONS, connections, recordings};
use crate::net_client::{open, options};
use crate::scripted::Host;

const ANSWERS: [&str; 3] = [
    "ASK_USER_RESPONSE",
    "APPROVAL_RESPONSE",
    "PLAN_REVIEW_RESPONSE",
];

/// Whether a user of the remote agent could have said all of it.
fn is_users(lines: &[(usize, &Line)]) -> bool {
    let mut said = lines.iter().filter(|(_, line)| line.is_from_client());
    let begins = said
        .next()
        .is_some_and(|(_, line)| line.kind() == "CONNECT");
    let is_plain = |line: &Line| {
        let is_prompt = line.kind() == "INPUT" && line.frame["prompt"] != "";
        is_prompt || ANSWERS.contains(&line.kind())
    };
    begins
        && said.all(|(_, line)| is_plain(line))
        && lines.iter().any(|(_, line)| line.kind() == "OUTPUT")
}

fn input(frame: &Value) -> Input {
    let text = frame.to_string();
    match ClientFrame::decode(&text, &defaults()) {
        Ok(ClientFrame::Input(input)) => input,
        other => panic!("{other:?}"),
    }
}

fn answer(frame: &Value) -> Answer {
    let text = frame.to_string();
    match ClientFrame::decode(&text, &defaults()) {
        Ok(ClientFrame::Response(response)) => {
            let response: Response = response;
            response.answer
        }
        other => panic!("{other:?}"),
    }
}

/// A user of the remote agent at a recorded host.
struct User {
    agent: Client,
    host: Host,
    run: Option<Run>,
    interjected: Vec<JoinHandle<Result<Taken, CallError<connectonion_proto::frame::ErrorFrame>>>>,
    /// The ids of the steps that the recorded host has shown of this run, and that the run has.
    shown: Vec<EventId>,
    seen: Vec<EventId>,
    runs: usize,
}

impl User {
    async fn send(&mut self, place: &str, line: &Line) {
        if ANSWERS.contains(&line.kind()) {
            return self.answer(place, line).await;
        }
        let input = input(&line.frame);
        if self.run.is_some() {
            let (agent, prompt) = (self.agent.clone(), input.prompt.unwrap());
            let said = async move { agent.interject(prompt).await };
            self.interjected.push(tokio::spawn(said));
        } else {
            self.run = Some(self.agent.send(input).await);
        }
        let frame = self.host.recv_type("INPUT").await;
        assert_eq!(frame["prompt"], line.frame["prompt"], "{place}");
    }

    /// Answers the question that is open; one that comes late is not said.
    async fn answer(&mut self, place: &str, line: &Line) {
        if line.frame["request_id"].as_str() != self.shown.last().map(|id| &**id) {
            return;
        }
        let run = self.run.as_mut().unwrap();
        let answer = answer(&line.frame);
        loop {
            let event = run.next().await.unwrap().unwrap();
            let step = match &event {
                RunEvent::Step(step) => step,
                RunEvent::AskUser(ask) => ask.step(),
                RunEvent::Approval(ask) => ask.step(),
                RunEvent::PlanReview(ask) => ask.step(),
                other => panic!("{place}: {other:?}"),
            };
            let id = step.event.id.clone();
            self.seen.extend(id.clone());
            if id.as_deref() != line.frame["request_id"].as_str() {
                // One that was answered before the line was lost.
                continue;
            }
            match event {
                RunEvent::AskUser(ask) => ask.respond(answer).await.unwrap(),
                RunEvent::Approval(ask) => ask.respond(answer).await.unwrap(),
                RunEvent::PlanReview(ask) => ask.respond(answer).await.unwrap(),
                _ => continue,
            }
            break;
        }
        let frame = self.host.recv_type(line.kind()).await;
        for (name, value) in line.frame.as_object().unwrap() {
            assert_eq!(&frame[name], value, "{place}: {name}");
        }
    }

    async fn recv(&mut self, place: &str, line: &Line) {
        self.host.send(&line.frame).await;
        if is_event(line) && self.run.is_some() {
            self.shown
                .extend(line.frame["id"].as_str().map(EventId::from));
        }
        if !is_end(&line.frame) {
            return;
        }
        let Some(mut run) = self.run.take() else {
            return;
        };
        let mut failure = None;
        while let Some(event) = run.next().await {
            match event {
                Ok(RunEvent::Step(step)) => self.seen.extend(step.event.id),
                // They were answered before the line was lost.
                Ok(RunEvent::Approval(ask)) => self.seen.extend(ask.step().event.id.clone()),
                Ok(other) => panic!("{place}: {other:?}"),
                Err(CallError::Remote(error)) => failure = Some(error.message),
                Err(other) => panic!("{place}: {other:?}"),
            }
        }
        if line.kind() == "OUTPUT" {
            let output = run.outcome().unwrap().as_ref().unwrap();
            assert_eq!(
                &*output.result,
                line.frame["result"].as_str().unwrap(),
                "{place}"
            );
        } else {
            assert_eq!(
                failure.as_deref(),
                line.frame["message"].as_str(),
                "{place}"
            );
        }
        assert_eq!(self.seen, self.shown, "{place}");
        self.seen.clear();
        self.shown.clear();
        self.runs += 1;
    }
}

#[tokio::test(start_paused = true)]
async fn the_client_completes_every_recording() {
    let mut runs = 0;
    for recording in VERSIONS.into_iter().flat_map(recordings) {
        for lines in connections(&recording) {
            if !is_users(&lines) {
                continue;
            }
            let (agent, mut events, mut listener) = open(options());
            tokio::spawn(async move { while events.next().await.is_some() {} });
            let host = Host::accept(&mut listener).await;
            let mut user = User {
                agent,
                host,
                run: None,
                interjected: Vec::new(),
                shown: Vec::new(),
                seen: Vec::new(),
                runs: 0,
            };
            user.host.recv_type("CONNECT").await;
            for (at, line) in lines {
                let place = recording.place(at);
                if line.kind() == "CONNECTED" {
                    user.host.send(&line.frame).await;
                    user.agent.ready().await.unwrap();
                    let is_running = line.frame["status"] == json!("running");
                    user.run = is_running.then(|| user.agent.attach());
                } else if line.is_from_host() {
                    user.recv(&place, line).await;
                } else if line.is_from_client() && line.kind() != "CONNECT" {
                    user.send(&place, line).await;
                }
            }
            for interjected in user.interjected {
                assert!(matches!(
                    interjected.await.unwrap(),
                    Ok(Taken::Queued { .. })
                ));
            }
            runs += user.runs;
        }
    }
    assert!(runs > 80, "{runs}");
}
