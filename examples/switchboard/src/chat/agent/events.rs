//! What [`Agent`] hears: of runs, of the connection, and of what the user has said meanwhile.

use connectonion_proto::client::{ClientEvent, Step, Taken};
use connectonion_proto::frame::{
    ChatItem, ChatItemKind, Connected, ErrorFrame, EventKind, OnboardMethod, Output, SessionState,
};
use connectonion_proto::net::RunEvent;
use futures_util::FutureExt as _;
use rpc_core::net::{LinkEvent, LinkState};
use rpc_core::{CallError, CloseReason, Delivery, Limits, Refused};
use serde_json::json;

use super::question::Question;
use super::{Agent, InterjectionResult};
use crate::chat::terminal::ChatEvent;
use crate::chat::{self, Out};
use crate::cli::{self, Failure, Service};
use crate::model::seconds;

const WANTS_CODE: &str = "this agent does not know you: write an invite code";
/// So many items of an earlier conversation are shown.
const EARLIER: usize = 20;

impl Agent {
    pub(super) async fn run_event(&mut self, event: RunEvent, out: &Out) -> Result<(), Failure> {
        match event {
            RunEvent::Step(step) => self.done(&step, out).await,
            RunEvent::AskUser(ask) => return self.step(ask.step(), out).await,
            RunEvent::Approval(ask) => return self.step(ask.step(), out).await,
            RunEvent::PlanReview(ask) => return self.step(ask.step(), out).await,
            RunEvent::TurnsReached(ask) => return self.step(ask.step(), out).await,
            RunEvent::Queued { id } => queued(&id, out).await,
            RunEvent::Lagged(steps) => {
                let words = format!("too slow: {steps} steps are not shown");
                out.report("lagged", json!({ "steps": steps }), &words)
                    .await;
            }
            _ => {}
        }
        Ok(())
    }

    /// A step of what is listened to, or of what began before that.
    async fn step(&mut self, step: &Step, out: &Out) -> Result<(), Failure> {
        match Question::of(step).filter(|_| !step.answered) {
            Some(question) => {
                self.status.is_busy = true;
                self.asked(question, out).await
            }
            None => {
                self.done(step, out).await;
                Ok(())
            }
        }
    }

    /// A step that asks nothing, or a question that was answered meanwhile.
    async fn done(&mut self, step: &Step, out: &Out) {
        self.status.is_busy |= !is_between_runs(&step.event.kind);
        out.line(frame("step", step)).await;
        let events = self.steps.step(&step.event.kind, self.status.is_own);
        out.people(events).await;
    }

    /// The agent asks. Only the first of several questions is shown.
    async fn asked(&mut self, question: Question, out: &Out) -> Result<(), Failure> {
        if let Some(allowed) = question.allow().filter(|_| self.allow_all) {
            return self.client.respond(allowed).await.map_err(Failure::new);
        }
        self.questions.push_back(question);
        self.keeper.keep(self.client.session());
        if self.questions.len() == 1 {
            self.show_question(out).await;
        }
        Ok(())
    }

    /// What is listened to has ended.
    pub(super) async fn ended(&mut self, out: &Out) -> Result<(), Failure> {
        let end = self.run.outcome().cloned();
        let was_busy = std::mem::take(&mut self.status.is_busy);
        self.status.is_own = false;
        self.questions.clear();
        self.run = self.client.attach();
        match end {
            Some(Ok(output)) => {
                self.keeper.keep(self.client.session());
                self.output(&output, out).await;
            }
            // Nothing was running that could be listened to.
            Some(Err(CallError::Refused(Refused::UnknownId))) if !was_busy => {}
            // The user has begun another conversation.
            Some(Err(CallError::Closed {
                reason: CloseReason::Local,
                ..
            })) => out.people([ChatEvent::Ended]).await,
            Some(Err(CallError::Closed { reason, .. })) if !was_busy => {
                return Err(self.no_connection(&reason));
            }
            Some(Err(error)) => {
                out.people([ChatEvent::Ended]).await;
                out.wrong(Failure::new(words(&error))).await;
            }
            None => {}
        }
        Ok(())
    }

    async fn output(&mut self, output: &Output, out: &Out) {
        let mut about = json!({
            "result": &*output.result,
            "sessionId": output.session_id.as_deref(),
        });
        if let Some(why) = &output.not_stored {
            about["notStored"] = json!(&**why);
        }
        out.program("output", about).await;
        out.people(self.steps.output(output)).await;
    }

    /// The outcome of something that was said to an agent at work.
    pub(super) async fn interjected(&mut self, interjection: InterjectionResult, out: &Out) {
        match interjection {
            Ok(Taken::Started) => (self.status.is_busy, self.status.is_own) = (true, true),
            Ok(Taken::Queued { id }) => queued(&id, out).await,
            Err(error) => out.wrong(Failure::new(words(&error))).await,
        }
    }

    fn no_connection(&self, why: &CloseReason) -> Failure {
        match self.status.is_in {
            true => Failure::new(format_args!("no connection to {}: {why}", self.url)),
            false => cli::unreached(&Service::CONNECTONION, &self.url, why),
        }
    }

    /// Something about the connection.
    pub(super) async fn link_event(
        &mut self,
        event: LinkEvent<ClientEvent>,
        out: &Out,
    ) -> Result<(), Failure> {
        match event {
            LinkEvent::State(LinkState::Lost {
                cause, retry_in, ..
            }) => {
                self.catch_up(out).await?;
                if cause == CloseReason::Local {
                    return Ok(());
                }
                if !self.status.is_in {
                    return Err(self.no_connection(&cause));
                }
                self.status.is_lost = true;
                let about =
                    json!({ "message": cause.to_string(), "retryInMs": retry_in.as_millis() });
                let words = format!("{cause}; trying again in {}", seconds(retry_in));
                out.report("lost", about, &words).await;
            }
            LinkEvent::State(state) => {
                if let Some(cause) = state.ended() {
                    self.catch_up(out).await?;
                    return Err(self.no_connection(cause));
                }
            }
            LinkEvent::Event(event) => return self.agent_event(event, out).await,
            LinkEvent::Lagged(events) => {
                let words = format!("too slow: {events} events are not shown");
                out.report("lagged", json!({ "events": events }), &words)
                    .await;
            }
            _ => {}
        }
        Ok(())
    }

    /// Shows what came before the connection was lost.
    async fn catch_up(&mut self, out: &Out) -> Result<(), Failure> {
        while let Some(event) = self.run.next().now_or_never() {
            match event {
                Some(Ok(event)) => self.run_event(event, out).await?,
                Some(Err(_)) | None => return self.ended(out).await,
            }
        }
        Ok(())
    }

    /// The agent has let the user in, the first time or again.
    async fn connected(&mut self, connected: &Connected, out: &Out) -> Result<(), Failure> {
        let again = self.status.is_in;
        (self.status.is_in, self.status.is_gated) = (true, false);
        let was_lost = std::mem::take(&mut self.status.is_lost);
        self.status.is_busy |= connected.status == SessionState::Running;
        self.keeper.keep(self.client.session());
        let node = self.client.node().map(|node| node.to_string());
        let about = json!({
            "node": node,
            "sessionId": &*connected.session_id,
            "status": connected.status.name(),
            "newer": connected.session.is_some(),
        });
        out.program(if again { "back" } else { "connected" }, about)
            .await;
        let missed = self
            .seeks
            .take()
            .filter(|_| connected.status == SessionState::New);
        if let Some(id) = missed {
            let words = format!("the agent knows no session {id}: this is a new one");
            out.warn(&words).await;
        }
        if again {
            if was_lost && !out.is_json() {
                out.connected(node.as_deref(), true).await;
            }
            return Ok(());
        }
        // With one prompt, its answer is all that is wanted. What still runs is shown as it happens.
        if !self.is_once && connected.status != SessionState::Running {
            out.people(earlier(connected)).await;
        }
        match self.mode.take() {
            Some(mode) => self.client.set_mode(mode, None).await.map_err(Failure::new),
            None => Ok(()),
        }
    }

    async fn agent_event(&mut self, event: ClientEvent, out: &Out) -> Result<(), Failure> {
        match event {
            ClientEvent::Connected(connected) => return self.connected(&connected, out).await,
            ClientEvent::OnboardRequired(required) => {
                let methods: Vec<OnboardMethod> = required.methods.parse().unwrap_or_default();
                let methods: Vec<&str> = methods.iter().map(OnboardMethod::name).collect();
                out.program("gate", json!({ "methods": methods })).await;
                if std::mem::take(&mut self.offers_code) {
                    let words = "this agent requires an invite code".to_owned();
                    out.people([ChatEvent::Note(words)]).await;
                } else {
                    self.gate(out).await;
                }
            }
            // The offered code is not valid.
            ClientEvent::Complaint(error) if self.client.session().session_id.is_none() => {
                out.complain(&error.message).await;
                out.program("gate", json!({})).await;
                self.gate(out).await;
            }
            ClientEvent::AnswerRefused { error, .. } | ClientEvent::Complaint(error) => {
                out.complain(&error.message).await;
            }
            // Of a run that began without a listener.
            ClientEvent::Step(step) => self.step(&step, out).await?,
            ClientEvent::RunEnded(end) => {
                self.status.is_busy = false;
                self.questions.clear();
                match end {
                    Ok(output) => self.output(&output, out).await,
                    Err(error) => out.wrong(Failure::new(words(&error))).await,
                }
            }
            ClientEvent::Warning(warning) => tracing::info!(%warning, "the connection goes on"),
            _ => {}
        }
        Ok(())
    }

    async fn gate(&mut self, out: &Out) {
        self.status.is_gated = true;
        out.people([ChatEvent::Question(WANTS_CODE.to_owned())])
            .await;
    }
}

async fn queued(id: &str, out: &Out) {
    let words = "the agent is at work: it reads this at its next step";
    out.report("queued", json!({ "id": id }), words).await;
}

/// What was said before.
fn earlier(connected: &Connected) -> Vec<ChatEvent> {
    let items = connected.chat_items.as_ref();
    let items = items.and_then(|items| ChatItem::list(items.get(), &Limits::default()).ok());
    let items = items.unwrap_or_default();
    let skipped = items.len().saturating_sub(EARLIER);
    let items = items.iter().skip(skipped);
    let shown = items.filter_map(|item| {
        let text = item.text()?;
        Some(match &item.kind {
            ChatItemKind::User(_) => [ChatEvent::User(text.to_string()), ChatEvent::TextEnd],
            _ => [ChatEvent::Text(text.to_string()), ChatEvent::Ended],
        })
    });
    shown.flatten().collect()
}

/// A step for programs.
pub(super) fn frame(name: &str, step: &Step) -> String {
    chat::frame(name, step.frame.get())
}

/// Whether a step belongs to no run.
pub(super) const fn is_between_runs(kind: &EventKind) -> bool {
    matches!(kind, EventKind::ModeChanged(_) | EventKind::Unknown { .. })
}

/// Why there is no answer, for people.
pub(super) fn words(error: &CallError<ErrorFrame>) -> String {
    match error {
        CallError::Remote(error) => error.message.to_string(),
        CallError::Closed { reason, delivery } => {
            let what_is_known = match delivery {
                Delivery::NotSent => "this was not sent",
                Delivery::Unknown => {
                    "this may or may not have arrived; check before you send it again"
                }
                Delivery::Delivered => "the agent received it, but its answer is lost",
            };
            format!("{reason}; {what_is_known}")
        }
        other => other.to_string(),
    }
}
