//! [`Question`]: an open question of the agent.

use std::sync::Weak;

use rpc_core::{Json, Refused, Str};

use super::protocol::Shared;
use crate::client::Step;
use crate::frame::{
    Answer, Approval, ApprovalNeeded, AskUser, PlanReview, Rejection, Response, Scope, Ulw,
    UlwTurnsReached,
};

/// A question of the agent. The agent waits for the answer, for hours if need be; a dropped
/// question stays open, so hold it until the user has answered. It keeps no connection open.
///
/// The answer names the question, so that it cannot be taken for another's. Without a connection it
/// waits for the next one; if it is lost with its connection, it is sent again, provided that the
/// host still asks. An answer that comes too late is reported as
/// [`ClientEvent::AnswerRefused`](crate::client::ClientEvent).
#[must_use = "the agent waits for the answer"]
pub struct Question<Q> {
    question: Q,
    step: Step,
    shared: Weak<Shared>,
}

impl<Q> Question<Q> {
    pub(super) const fn new(question: Q, step: Step, shared: Weak<Shared>) -> Self {
        Self {
            question,
            step,
            shared,
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

    /// Sends any answer. Without a connection it waits for the next one, and is dropped if the run
    /// is over by then. While a host that does not bind answers to questions replays a run, it waits,
    /// and is dropped if its question is no longer open.
    ///
    /// # Errors
    /// [`Refused::Closed`] if there will be no further connection, [`Refused::TooLarge`]. Old hosts
    /// take a second answer as the answer to their next question.
    ///
    /// # Cancel safety
    /// If the future was polled, the answer is sent.
    pub async fn respond(&self, answer: Answer) -> Result<(), Refused> {
        let mut response = Response::new("", answer);
        response.request_id.clone_from(&self.step.event.id);
        let shared = self.shared.upgrade().ok_or(Refused::Closed)?;
        shared.respond(response).await
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
        let text = Json::string(text.as_ref());
        self.respond(Answer::AskUser(text)).await
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
    /// Sends a decision: [go on](Ulw::go_on), [in another mode](Ulw::switch_mode), or
    /// [stop](Ulw::stop).
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

// Prints the question's id.
rpc_core::debug_fields!([Q] Question<Q>, this => {
    kind: this.step.event.kind.tag(),
    request_id: this.request_id(),
});
