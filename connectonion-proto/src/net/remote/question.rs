//! [`Question`]: an open question of the agent.

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

/// A question of the agent. The agent waits for the answer, for hours if need be; a dropped
/// question stays open, so hold it until the user has answered. It keeps no connection open.
///
/// The answer names the question, so that it cannot be taken for another's. Without a connection it
/// waits for the next one; if it is lost with its connection, it is sent again, provided that the
/// host still asks. An answer that comes too late is reported as
/// [`Event::AnswerRefused`](super::Event).
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

    /// Returns the question.
    pub const fn question(&self) -> &Q {
        &self.question
    }

    /// Returns the event's id, which the answer names; `None` from old hosts that sent none.
    #[must_use]
    pub fn request_id(&self) -> Option<&str> {
        self.step.event.id.as_deref()
    }

    /// Returns the event and its whole frame.
    #[must_use]
    pub const fn step(&self) -> &Step {
        &self.step
    }

    /// Sends any answer. While a host that does not bind answers to questions replays a run, the
    /// answer waits, and is dropped if its question is no longer open.
    ///
    /// # Errors
    /// [`Refused::Closed`] if there will be no further connection, [`Refused::TooLarge`],
    /// [`Refused::QueueFull`]. Old hosts take a second answer as the answer to their next question.
    ///
    /// # Cancel safety
    /// If the future is dropped before it is ready, the answer may or may not be sent.
    pub async fn respond(&self, answer: Answer) -> Result<(), Refused> {
        let request_id = self.step.event.id.clone();
        let mut response = Response::new("", answer);
        response.request_id = request_id;
        let session = self.session.upgrade().ok_or(Refused::Closed)?;
        let link = session.link().and_then(WeakLink::upgrade);
        let link = link.ok_or(Refused::Closed)?;
        let mut states = link.states();
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

    /// Answers with any JSON value, such as several options or a filled-in form.
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
    /// Approves the tool.
    ///
    /// # Errors
    /// As for [`respond`](Self::respond).
    ///
    /// # Cancel safety
    /// As for [`respond`](Self::respond).
    pub async fn approve(&self, scope: Scope) -> Result<(), Refused> {
        self.decide(Approval::granted(scope)).await
    }

    /// Refuses the tool, with this consequence.
    ///
    /// # Errors
    /// As for [`respond`](Self::respond).
    ///
    /// # Cancel safety
    /// As for [`respond`](Self::respond).
    pub async fn reject(&self, mode: Rejection) -> Result<(), Refused> {
        self.decide(Approval::refused(mode)).await
    }

    /// Sends any decision, for example with feedback.
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
    /// Answers with a review, the return value of the tool that asked.
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
    /// Lets the agent continue for this many turns.
    ///
    /// # Errors
    /// As for [`respond`](Self::respond).
    ///
    /// # Cancel safety
    /// As for [`respond`](Self::respond).
    pub async fn go_on(&self, turns: u64) -> Result<(), Refused> {
        self.decide(Ulw::go_on(turns)).await
    }

    /// Lets the agent continue in another mode.
    ///
    /// # Errors
    /// As for [`respond`](Self::respond).
    ///
    /// # Cancel safety
    /// As for [`respond`](Self::respond).
    pub async fn switch_mode(&self, mode: Mode) -> Result<(), Refused> {
        self.decide(Ulw::switch_mode(mode)).await
    }

    /// Stops the agent.
    ///
    /// # Errors
    /// As for [`respond`](Self::respond).
    ///
    /// # Cancel safety
    /// As for [`respond`](Self::respond).
    pub async fn stop(&self) -> Result<(), Refused> {
        self.decide(stop()).await
    }

    /// Sends any decision.
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

/// Returns the decision that stops an agent: a word unknown to hosts.
pub(super) fn stop() -> Ulw {
    let mut stop = Ulw::go_on(0);
    stop.action = UlwAction::Other("stop".into());
    stop.turns = None;
    stop
}

/// Prints the question's id.
impl<Q> fmt::Debug for Question<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Question")
            .field("kind", &self.step.event.kind.tag())
            .field("request_id", &self.request_id())
            .finish_non_exhaustive()
    }
}
