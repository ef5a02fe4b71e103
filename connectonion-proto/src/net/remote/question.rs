//! [`Question`]: a question of the agent, which waits for its answer.

use std::fmt;
use std::sync::Weak;

use rpc_core::Refused;
use rpc_core::net::{LinkState, WeakLink};
use rpc_core::{Json, Str};

use super::session::ClientSession;
use crate::client::Step;
use crate::frame::{
    Answer, Approval, ApprovalNeeded, AskUser, Mode, PlanReview, Rejection, Response, Scope, Ulw,
    UlwAction, UlwTurnsReached,
};

/// A question of the agent. The agent waits for the answer, for hours if need be; a question that is
/// dropped stays open, so hold it until the user has answered. It keeps no connection open.
///
/// The answer names the question, so that it cannot be taken for another's. If the line is down, it
/// waits until it is back; if it is lost with its line, it is sent again, provided that the host still
/// asks. One that comes too late is told as [`Event::AnswerRefused`](super::Event).
#[must_use = "the agent waits for the answer"]
pub struct Question<Q> {
    question: Q,
    step: Step,
    session: Weak<ClientSession>,
}

impl<Q> Question<Q> {
    pub(super) const fn new(question: Q, step: Step, session: Weak<ClientSession>) -> Self {
        Self {
            question,
            step,
            session,
        }
    }

    /// What is asked.
    pub const fn question(&self) -> &Q {
        &self.question
    }

    /// The event's id, which the answer names; `None` from old hosts that gave none.
    #[must_use]
    pub fn request_id(&self) -> Option<&str> {
        self.step.event.id.as_deref()
    }

    /// The event and its whole frame.
    #[must_use]
    pub const fn step(&self) -> &Step {
        &self.step
    }

    /// Sends any answer. While a host that does not bind answers to questions sends a run again, the
    /// answer waits, and is dropped if its question is not open any more.
    ///
    /// # Errors
    /// [`Refused::Closed`] if there will be no connection any more, [`Refused::TooLarge`],
    /// [`Refused::QueueFull`]. Old hosts take a second answer for that to their next question.
    ///
    /// # Cancel safety
    /// Dropping the future before it is ready: the answer may or may not be sent.
    pub async fn respond(&self, answer: Answer) -> Result<(), Refused> {
        let request_id = self.step.event.id.clone();
        let mut response = Response::new("", answer);
        response.request_id = request_id;
        let session = self.session.upgrade().ok_or(Refused::Closed)?;
        let link = session.link().and_then(WeakLink::upgrade);
        let link = link.ok_or(Refused::Closed)?;
        let mut states = link.watch();
        loop {
            let generation = link.ready().await.map_err(|_| Refused::Closed)?;
            if session.defers(&response) {
                return Ok(());
            }
            let response = response.clone();
            let sent = link.command(move |conn, now| conn.respond(&response, now));
            match sent.await {
                Ok(Err(Refused::Closed | Refused::NotReady)) | Err(Refused::NotConnected) => {}
                Ok(done) => return done,
                Err(refused) => return Err(refused),
            }
            // The line is on its way out.
            let is_over = |state: &LinkState| *state != LinkState::Ready { generation };
            if states.wait_for(is_over).await.is_err() {
                return Err(Refused::Closed);
            }
        }
    }
}

impl Question<AskUser> {
    /// Answers with a text.
    ///
    /// # Errors
    /// As for [`respond`](Self::respond).
    ///
    /// # Cancel safety
    /// As for [`respond`](Self::respond).
    pub async fn answer(&self, text: impl AsRef<str>) -> Result<(), Refused> {
        self.answer_json(Json::string(text.as_ref())).await
    }

    /// Answers with any JSON value: several options, fields that were filled in.
    ///
    /// # Errors
    /// As for [`respond`](Self::respond).
    ///
    /// # Cancel safety
    /// As for [`respond`](Self::respond).
    pub async fn answer_json(&self, value: Json) -> Result<(), Refused> {
        self.respond(Answer::AskUser(value)).await
    }
}

impl Question<ApprovalNeeded> {
    /// The tool may run.
    ///
    /// # Errors
    /// As for [`respond`](Self::respond).
    ///
    /// # Cancel safety
    /// As for [`respond`](Self::respond).
    pub async fn approve(&self, scope: Scope) -> Result<(), Refused> {
        self.decide(Approval::granted(scope)).await
    }

    /// The tool may not run, and this follows.
    ///
    /// # Errors
    /// As for [`respond`](Self::respond).
    ///
    /// # Cancel safety
    /// As for [`respond`](Self::respond).
    pub async fn reject(&self, mode: Rejection) -> Result<(), Refused> {
        self.decide(Approval::refused(mode)).await
    }

    /// Decides in any way, with feedback for example.
    ///
    /// # Errors
    /// As for [`respond`](Self::respond).
    ///
    /// # Cancel safety
    /// As for [`respond`](Self::respond).
    pub async fn decide(&self, approval: Approval) -> Result<(), Refused> {
        self.respond(Answer::Approval(approval)).await
    }
}

impl Question<PlanReview> {
    /// Says something to the plan: what the tool that asked returns.
    ///
    /// # Errors
    /// As for [`respond`](Self::respond).
    ///
    /// # Cancel safety
    /// As for [`respond`](Self::respond).
    pub async fn reply(&self, message: impl Into<Str>) -> Result<(), Refused> {
        self.respond(Answer::PlanReview(message.into())).await
    }
}

impl Question<UlwTurnsReached> {
    /// The agent goes on for so many turns.
    ///
    /// # Errors
    /// As for [`respond`](Self::respond).
    ///
    /// # Cancel safety
    /// As for [`respond`](Self::respond).
    pub async fn go_on(&self, turns: u64) -> Result<(), Refused> {
        self.decide(Ulw::go_on(turns)).await
    }

    /// The agent goes on in another mode.
    ///
    /// # Errors
    /// As for [`respond`](Self::respond).
    ///
    /// # Cancel safety
    /// As for [`respond`](Self::respond).
    pub async fn switch_mode(&self, mode: Mode) -> Result<(), Refused> {
        self.decide(Ulw::switch_mode(mode)).await
    }

    /// The agent stops.
    ///
    /// # Errors
    /// As for [`respond`](Self::respond).
    ///
    /// # Cancel safety
    /// As for [`respond`](Self::respond).
    pub async fn stop(&self) -> Result<(), Refused> {
        self.decide(stop()).await
    }

    /// Decides in any way.
    ///
    /// # Errors
    /// As for [`respond`](Self::respond).
    ///
    /// # Cancel safety
    /// As for [`respond`](Self::respond).
    pub async fn decide(&self, decision: Ulw) -> Result<(), Refused> {
        self.respond(Answer::Ulw(decision)).await
    }
}

/// The decision that stops an agent: any word that hosts do not know.
pub(super) fn stop() -> Ulw {
    let mut stop = Ulw::go_on(0);
    stop.action = UlwAction::Other("stop".into());
    stop.turns = None;
    stop
}

/// Prints which question it is.
impl<Q> fmt::Debug for Question<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Question")
            .field("kind", &self.step.event.kind.tag())
            .field("request_id", &self.request_id())
            .finish_non_exhaustive()
    }
}
