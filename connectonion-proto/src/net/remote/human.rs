//! [`Human`]: answers an agent's questions.

use std::future::{Future, ready};

use rpc_core::Str;

use crate::client::Step;
use crate::frame::{
    Approval, ApprovalNeeded, AskUser, PlanReview, Rejection, Ulw, UlwTurnsReached,
};

/// The answer of a client that cannot ask.
const NOBODY: &str = "No one is here to answer. This is not an approval.";

/// A handler that sees an agent's steps and answers its questions: a terminal, a chat window, a
/// test.
///
/// Implement the methods that you need, as `async fn`. Every one has a default: questions are declined,
/// so that no agent waits for an answer that never comes.
///
/// ```
/// use connectonion_proto::client::Step;
/// use connectonion_proto::net::Human;
///
/// /// Shows what the agent does, and declines its questions.
/// struct Terminal;
///
/// impl Human for Terminal {
///     async fn step(&self, step: &Step) {
///         println!("step: {}", step.event.kind.tag());
///     }
/// }
/// ```
pub trait Human: Send + Sync {
    /// Shows a step of the agent.
    fn step(&self, _step: &Step) -> impl Future<Output = ()> + Send {
        ready(())
    }

    /// Answers a question.
    fn ask_user(&self, _question: &AskUser) -> impl Future<Output = Str> + Send {
        ready(Str::from_static(NOBODY))
    }

    /// Decides whether a tool may run.
    fn approve(&self, _tool: &ApprovalNeeded) -> impl Future<Output = Approval> + Send {
        ready(Approval::refused(Rejection::Hard).with_feedback(NOBODY))
    }

    /// Reviews a plan, with the return value of the tool that asked.
    fn review_plan(&self, _plan: &PlanReview) -> impl Future<Output = Str> + Send {
        ready(Str::from_static(NOBODY))
    }

    /// Decides how to continue when the turns of the mode `ulw` are used up.
    fn turns_reached(&self, _reached: &UlwTurnsReached) -> impl Future<Output = Ulw> + Send {
        ready(Ulw::stop())
    }
}

/// A [`Human`] that declines every question.
pub(super) struct DeclineAll;

impl Human for DeclineAll {}
