//! [`Human`]: whoever answers an agent's questions.

use async_trait::async_trait;
use rpc_core::Str;

use super::question;
use crate::client::Step;
use crate::frame::{
    Approval, ApprovalNeeded, AskUser, PlanReview, Rejection, Ulw, UlwTurnsReached,
};

/// What is said when nobody is there to answer.
const NOBODY: &str = "DeclineAll is here to answer. This is not an approval.";

/// Whoever sees what an agent does and answers its questions: a terminal, a chat window, a test.
///
/// Everything has a default: questions are declined, so that no agent waits for an answer that nobody
/// will give.
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
    /// The agent has done something.
    async fn step(&self, step: &Step) {
        let _ = step;
    }

    /// The agent asks.
    async fn ask_user(&self, question: &AskUser) -> Str {
        let _ = question;
        Str::from_static(NOBODY)
    }

    /// A tool waits for leave.
    async fn approve(&self, tool: &ApprovalNeeded) -> Approval {
        let _ = tool;
        Approval::refused(Rejection::Hard).with_feedback(NOBODY)
    }

    /// A plan waits for a word: what the tool that asked returns.
    async fn review_plan(&self, plan: &PlanReview) -> Str {
        let _ = plan;
        Str::from_static(NOBODY)
    }

    /// The turns of the mode `ulw` are used up.
    async fn turns_reached(&self, reached: &UlwTurnsReached) -> Ulw {
        let _ = reached;
        question::stop()
    }
}

/// Nobody: declines every question.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeclineAll;

#[async_trait]
impl Human for DeclineAll {}
