//! What [`ChatLoop`] hears: of runs, of the connection, and of what the user has said meanwhile.

use connectonion_proto::client::{ClientEvent, Step, Taken};
use connectonion_proto::frame::{ErrorFrame, EventKind, OnboardMethod, SessionState};
use connectonion_proto::net::RunEvent;
use rpc_core::net::{LinkEvent, LinkState};
use rpc_core::{CallError, CloseReason, Delivery, Refused};
use serde_json::json;
use switchboard::cli::{self, Failure};
use switchboard::screen::printable;
use switchboard::terminal::ChatEvent;

use super::super::question::{Meant, Question};
use super::{ChatLoop, Said};

const WANTS_CODE: &str = "this agent does not know you: write an invite code";

impl ChatLoop {
    pub(super) async fn run_event(&mut self, event: RunEvent) -> Result<(), Failure> {
        match event {
            RunEvent::Step(step) => self.done(&step).await,
            RunEvent::AskUser(ask) => self.step(ask.step()).await,
            RunEvent::Approval(ask) => self.step(ask.step()).await,
            RunEvent::PlanReview(ask) => self.step(ask.step()).await,
            RunEvent::TurnsReached(ask) => self.step(ask.step()).await,
            RunEvent::Queued { id } => {
                let about = json!({ "id": &*id });
                let words = "  the agent is at work already: it reads this at its next step";
                self.note("queued", about, words).await;
                Ok(())
            }
            RunEvent::Lagged(steps) => {
                let words = format!("too slow: {steps} steps are not shown");
                self.note("lagged", json!({ "steps": steps }), &words).await;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// A step of what is listened to, or of what began before that.
    async fn step(&mut self, step: &Step) -> Result<(), Failure> {
        match Question::of(step).filter(|_| !step.answered) {
            Some(question) => {
                self.is_busy = true;
                self.asked(question).await
            }
            None => self.done(step).await,
        }
    }

    /// A step that asks nothing, or a question that was answered meanwhile.
    async fn done(&mut self, step: &Step) -> Result<(), Failure> {
        self.is_busy |= !is_between_runs(&step.event.kind);
        if self.is_viewed() {
            let events = self.steps.step(&step.event.kind, self.is_own);
            self.view(events).await;
            return Ok(());
        }
        for line in self.show.step(step, self.is_own) {
            self.say(line).await;
        }
        Ok(())
    }

    /// The agent asks. Only the first of several questions is shown.
    async fn asked(&mut self, question: Question) -> Result<(), Failure> {
        if let Some(allowed) = question.allow().filter(|_| self.manner.allow_all) {
            return self.agent.respond(allowed).await.map_err(Failure::new);
        }
        self.questions.push_back(question);
        self.keeper.keep(self.agent.session());
        if self.questions.len() == 1 {
            self.show_question().await;
        }
        if self.is_silent {
            return self.decline().await;
        }
        Ok(())
    }

    async fn show_question(&self) {
        if let Some(question) = self.questions.front() {
            if self.is_viewed() {
                let words = question.words().join("\n");
                return self.view([ChatEvent::Question(words)]).await;
            }
            for line in self.show.question(question.step(), question.words()) {
                self.ask(line).await;
            }
        }
    }

    /// A line is the answer to the first question.
    pub(super) async fn answer(&mut self, text: &str) -> Result<(), Failure> {
        let Some(question) = self.questions.front_mut() else {
            return Ok(());
        };
        match question.answer(text) {
            Ok(Meant::Answer(response)) => {
                self.questions.pop_front();
                let sent = self.agent.respond(response).await;
                self.order(sent).await?;
                self.view_work().await;
                self.show_question().await;
                Ok(())
            }
            Ok(Meant::More(wanted)) => {
                let about = json!({ "message": wanted.trim() });
                self.ask(self.show.note("wanted", about, &wanted)).await;
                Ok(())
            }
            Err(refused) => self.wrong(&refused.to_string()).await,
        }
    }

    /// What is listened to has ended; `true` if that is enough.
    pub(super) async fn ended(&mut self) -> Result<bool, Failure> {
        let end = self.run.outcome().cloned();
        let (was_busy, was_own) = (self.is_busy, self.is_own);
        (self.is_busy, self.is_own) = (false, false);
        self.is_stopped = false;
        self.questions.clear();
        self.run = self.agent.attach();
        match end {
            Some(Ok(output)) => {
                self.keeper.keep(self.agent.session());
                let once = self.is_once() && was_own;
                if self.is_viewed() {
                    let events = self.steps.output(&output);
                    self.view(events).await;
                    return Ok(once);
                }
                for line in self.show.output(&output) {
                    // The answer itself.
                    if once {
                        cli::say(line);
                    } else {
                        self.say(line).await;
                    }
                }
                return Ok(once);
            }
            // Nothing was running that could be listened to.
            Some(Err(CallError::Refused(Refused::UnknownId))) if !was_busy => {}
            Some(Err(CallError::Closed { reason, .. })) if !was_busy => {
                return Err(self.no_connection(&reason));
            }
            Some(Err(error)) => {
                self.view([ChatEvent::Ended]).await;
                self.wrong(&words(&error)).await?;
            }
            None => {}
        }
        Ok(false)
    }

    /// What became of something that was said to an agent at work.
    pub(super) async fn interjected(&mut self, said: Said) -> Result<(), Failure> {
        match said {
            Ok(Taken::Started) => {
                (self.is_busy, self.is_own) = (true, true);
                Ok(())
            }
            Ok(Taken::Queued { id }) => {
                let about = json!({ "id": &*id });
                self.note("queued", about, "  the agent reads this at its next step")
                    .await;
                Ok(())
            }
            Err(error) => self.wrong(&words(&error)).await,
        }
    }

    fn no_connection(&self, why: &CloseReason) -> Failure {
        let words = format!("no connection to {}: {why}", self.url);
        match self.is_in {
            true => Failure::new(words),
            false => Failure::refused(words),
        }
    }

    /// Something about the connection.
    pub(super) async fn link_event(
        &mut self,
        event: LinkEvent<ClientEvent>,
    ) -> Result<(), Failure> {
        match event {
            LinkEvent::State(LinkState::Lost {
                cause, retry_in, ..
            }) => {
                if !self.is_in {
                    return Err(self.no_connection(&cause));
                }
                let about =
                    json!({ "message": cause.to_string(), "retryInMs": retry_in.as_millis() });
                let words = format!("{cause}; trying again in {retry_in:.1?}");
                self.note("lost", about, &words).await;
            }
            LinkEvent::State(LinkState::Ready { generation }) if generation > 1 => {
                let node = self.agent.node().map(|node| node.to_string());
                let words = match &node {
                    Some(node) => format!("connected again, at {node}"),
                    None => "connected again".to_owned(),
                };
                self.note("back", json!({ "node": node }), &words).await;
            }
            LinkEvent::State(state) => {
                if let Some(cause) = state.ended() {
                    return Err(self.no_connection(cause));
                }
            }
            LinkEvent::Event(event) => return self.agent_event(event).await,
            LinkEvent::Lagged(events) => {
                let words = format!("too slow: {events} events are not shown");
                self.note("lagged", json!({ "events": events }), &words)
                    .await;
            }
            _ => {}
        }
        Ok(())
    }

    async fn agent_event(&mut self, event: ClientEvent) -> Result<(), Failure> {
        match event {
            ClientEvent::Connected(connected) => {
                self.is_busy |= connected.status == SessionState::Running;
                self.keeper.keep(self.agent.session());
                // With one prompt, its answer is all that is wanted.
                if self.show.is_json() || !self.is_once() {
                    for line in self.show.connected(&connected, self.agent.node()) {
                        self.say(line).await;
                    }
                }
            }
            ClientEvent::OnboardRequired(required) => {
                let methods: Vec<OnboardMethod> = required.methods.parse().unwrap_or_default();
                let methods: Vec<&str> = methods.iter().map(OnboardMethod::name).collect();
                let about = json!({ "methods": methods });
                if std::mem::take(&mut self.manner.offers_code) {
                    self.note("gate", about, "this agent wants an invite code")
                        .await;
                } else {
                    self.is_gated = true;
                    self.note("gate", about, WANTS_CODE).await;
                }
            }
            // The code that was offered is none.
            ClientEvent::Complaint(error) if self.agent.session().session_id.is_none() => {
                self.is_gated = true;
                self.ask(self.show.error(&error.message)).await;
                self.ask(self.show.note("gate", json!({}), WANTS_CODE))
                    .await;
            }
            ClientEvent::AnswerRefused { error, .. } => {
                self.say(self.show.error(&error.message)).await;
            }
            ClientEvent::Complaint(error) => self.say(self.show.error(&error.message)).await,
            // Of a run that began while nobody was listening.
            ClientEvent::Step(step) => self.step(&step).await?,
            ClientEvent::RunEnded(end) => {
                self.is_busy = false;
                self.questions.clear();
                match end {
                    Ok(output) => {
                        for line in self.show.output(&output) {
                            self.say(line).await;
                        }
                    }
                    Err(error) => self.wrong(&words(&error)).await?,
                }
            }
            ClientEvent::Warning(warning) => tracing::info!(%warning, "the connection goes on"),
            _ => {}
        }
        Ok(())
    }
}

/// Whether a step belongs to no run.
pub(super) const fn is_between_runs(kind: &EventKind) -> bool {
    matches!(kind, EventKind::ModeChanged(_) | EventKind::Unknown { .. })
}

/// Why there is no answer, for people.
pub(super) fn words(error: &CallError<ErrorFrame>) -> String {
    match error {
        CallError::Remote(error) => printable(&error.message).into_owned(),
        CallError::Closed { reason, delivery } => {
            let told = match delivery {
                Delivery::NotSent => "this was not sent",
                Delivery::Unknown => {
                    "nobody knows whether this has arrived; look before you say it again"
                }
                Delivery::Delivered => "the agent had it, and does not know of it any more",
            };
            format!("{reason}; {told}")
        }
        other => other.to_string(),
    }
}
