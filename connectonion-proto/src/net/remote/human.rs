//! [`Human`]: answers an agent's questions.

use async_trait::async_trait;
use rpc_core::Str;

use crate::client::Step;
use crate::frame::{
    Approval, ApprovalNeeded, AskUser, PlanReview, Rejection, Ulw, UlwTurnsReached,
};

/// The answer of [`DeclineAll`].
const NOBODY: &str = "Nobody is here to answer. This is not an approval.";

/// A handler that sees an agent's steps and answers its questions: a terminal, a chat window, a
/// test.
///
/// Every method has a default: questions are declined, so that no agent waits for an answer that
/// never comes.
///
/// ```
/// use async_trait::async_trait;
/// use connectonion_proto::client::Step;
/// use connectonion_proto::net::Human;
///
/// /// Shows what the agent does, and declines its questions.
/// struct Terminal;
///
/// #[async_trait]
/// impl Human for Terminal {
///     async fn step(&self, step: &Step) {
///         println!("step: {}", step.event.kind.tag());
///     }
/// }
/// ```
#[async_trait]
pub trait Human: Send + Sync {
    /// Shows a step of the agent.
    async fn step(&self, step: &Step) {
        let _ = step;
    }

    /// Answers a question.
    async fn ask_user(&self, question: &AskUser) -> Str {
        let _ = question;
        Str::from_static(NOBODY)
    }

    /// Decides whether a tool may run.
    async fn approve(&self, tool: &ApprovalNeeded) -> Approval {
        let _ = tool;
        Approval::refused(Rejection::Hard).with_feedback(NOBODY)
    }

    /// Reviews a plan, with the return value of the tool that asked.
    async fn review_plan(&self, plan: &PlanReview) -> Str {
        let _ = plan;
        Str::from_static(NOBODY)
    }

    /// Decides how to continue when the turns of the mode `ulw` are used up.
    async fn turns_reached(&self, reached: &UlwTurnsReached) -> Ulw {
        let _ = reached;
        Ulw::stop()
    }
}

/// A [`Human`] that declines every question.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeclineAll;

#[async_trait]
impl Human for DeclineAll {}
