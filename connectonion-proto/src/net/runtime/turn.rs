//! [`Turn`]: one run, from its [`Agent`](super::Agent)'s point of view.

use std::fmt;
use std::sync::Arc;

use rpc_core::{Json, Str};
use serde::Serialize;
use tokio::sync::{Notify, oneshot};

use super::HostRuntime;
use crate::auth::Address;
use crate::codec::to_json;
use crate::frame::{
    Answer, Approval, ApprovalNeeded, AskUser, EventKind, Mode, PlanReview, Ulw, UlwTurnsReached,
};
use crate::hub::{AskError, EmitError};
use crate::id::SessionId;
use crate::limits::ULW_TURNS;
use crate::session::{Owner, Prompt, RunId, RunOver};

/// A handle to one run for its [`Agent`](super::Agent): it sends events, asks questions, returns
/// what the user wants meanwhile, and has the conversation.
///
/// Sending an event never waits: events are kept for all connections and for those that reconnect,
/// within the bounds of the host. A question waits for a human, as long as it takes, also without a
/// connection.
///
/// ```
/// use async_trait::async_trait;
/// use connectonion_proto::frame::{AskUser, EventKind, Thinking};
/// use connectonion_proto::net::{Agent, AgentError, Prompt, Reply, Turn};
///
/// struct Barista;
///
/// #[async_trait]
/// impl Agent for Barista {
///     async fn run(&self, turn: &Turn, prompt: Prompt) -> Result<Reply, AgentError> {
///         turn.emit(EventKind::Thinking(Thinking::new("milk or not?")))?;
///         let milk = turn.ask_user(AskUser::new("With milk?")).await?;
///         Ok(Reply::new(format!("{}, milk: {}", prompt.text, milk.get())))
///     }
/// }
/// ```
pub struct Turn {
    pub(super) runtime: HostRuntime,
    pub(super) run: RunId,
    pub(super) session_id: SessionId,
    pub(super) owner: Owner,
    #[cfg_attr(
        not(feature = "server"),
        allow(dead_code, reason = "upgrades need `server`")
    )]
    pub(super) head: Option<Arc<Head>>,
    pub(super) signals: Arc<Signals>,
}

/// The head of an upgrade request.
#[cfg(feature = "server")]
pub(in crate::net) type Head = http::request::Parts;
#[cfg(not(feature = "server"))]
pub(in crate::net) type Head = std::convert::Infallible;

/// The signals that wake an agent.
#[derive(Debug, Default)]
pub(super) struct Signals {
    /// The user wants the agent to stop.
    pub(super) interrupt: Notify,
    /// The user has sent a prompt.
    pub(super) input: Notify,
    /// The user has changed the goal.
    pub(super) goal: std::sync::Mutex<Option<Str>>,
}

impl Turn {
    /// Returns the session's id.
    #[must_use]
    pub const fn session_id(&self) -> &SessionId {
        &self.session_id
    }

    /// Returns the address that the client has proved; `None` if it has proved none.
    #[must_use]
    pub const fn caller(&self) -> Option<&Address> {
        match &self.owner {
            Owner::Key(address) => Some(address),
            Owner::Unsigned => None,
        }
    }

    /// Returns the upgrade request of the connection that has sent the prompt: headers, URI and
    /// extensions. `None` if the prompt came over another transport, or its client had left before
    /// the run started.
    #[cfg(feature = "server")]
    #[cfg_attr(docsrs, doc(cfg(feature = "server")))]
    #[must_use]
    pub fn parts(&self) -> Option<&http::request::Parts> {
        self.head.as_deref()
    }

    /// Sends an event. Returns its id.
    ///
    /// # Errors
    /// [`EmitError`]. Retrying fails again.
    pub fn emit(&self, event: EventKind) -> Result<Str, EmitError> {
        self.runtime
            .with(|state, now| state.hub.emit(self.run, event, None, now))
    }

    /// Like [`emit`](Self::emit), with the id of an earlier event: the end of a model's call has the
    /// id of its start.
    ///
    /// # Errors
    /// As for [`emit`](Self::emit).
    pub fn emit_as(&self, id: &str, event: EventKind) -> Result<(), EmitError> {
        let emit =
            |state: &mut super::state::State, now| state.hub.emit(self.run, event, Some(id), now);
        self.runtime.with(emit).map(drop)
    }

    /// Starts a step, and returns what the user has said meanwhile, oldest first. The clients learn
    /// that it was read, and it is part of the conversation now. Call it before each call of a
    /// model; the session's `iteration` counts these calls.
    ///
    /// # Errors
    /// [`RunOver`].
    pub fn next_inputs(&self) -> Result<Vec<Prompt>, RunOver> {
        self.runtime
            .with(|state, now| state.hub.next_inputs(self.run, now))
    }

    /// Waits until an input of the user can be [read](Self::next_inputs).
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn input_waits(&self) {
        loop {
            // Made before the look, so that no input falls between.
            let input = self.signals.input.notified();
            let waits = self.runtime.with(|state, _| state.hub.has_inputs(self.run));
            if waits {
                return;
            }
            input.await;
        }
    }

    /// Asks the user, and waits for the answer: any JSON value, usually a text.
    ///
    /// # Errors
    /// [`AskError`]
    ///
    /// # Cancel safety
    /// Dropping the future withdraws the question: an answer gets an ERROR.
    pub async fn ask_user(&self, question: AskUser) -> Result<Json, AskError> {
        match self.ask(EventKind::AskUser(question)).await? {
            Answer::AskUser(answer) => Ok(answer),
            _ => Err(RunOver.into()),
        }
    }

    /// Asks the user whether a tool may run, and waits for the answer.
    ///
    /// # Errors
    /// As for [`ask_user`](Self::ask_user).
    ///
    /// # Cancel safety
    /// As for [`ask_user`](Self::ask_user).
    pub async fn approve(&self, tool: ApprovalNeeded) -> Result<Approval, AskError> {
        match self.ask(EventKind::ApprovalNeeded(tool)).await? {
            Answer::Approval(approval) => Ok(approval),
            _ => Err(RunOver.into()),
        }
    }

    /// Shows the user a plan, and waits for the review.
    ///
    /// # Errors
    /// As for [`ask_user`](Self::ask_user).
    ///
    /// # Cancel safety
    /// As for [`ask_user`](Self::ask_user).
    pub async fn plan_review(&self, plan: PlanReview) -> Result<Str, AskError> {
        match self.ask(EventKind::PlanReview(plan)).await? {
            Answer::PlanReview(message) => Ok(message),
            _ => Err(RunOver.into()),
        }
    }

    /// Reports that the turns of the mode `ulw` are used up, and waits for the user's decision.
    ///
    /// # Errors
    /// As for [`ask_user`](Self::ask_user).
    ///
    /// # Cancel safety
    /// As for [`ask_user`](Self::ask_user).
    pub async fn ulw_turns_reached(&self, turns: UlwTurnsReached) -> Result<Ulw, AskError> {
        match self.ask(EventKind::UlwTurnsReached(turns)).await? {
            Answer::Ulw(ulw) => Ok(ulw),
            _ => Err(RunOver.into()),
        }
    }

    async fn ask(&self, question: EventKind) -> Result<Answer, AskError> {
        let (sender, answer) = oneshot::channel();
        let id = self.runtime.with(|state, now| {
            let id = state.hub.ask(self.run, question, now)?;
            state.expect(self.run, id.clone(), sender);
            Ok::<_, AskError>(id)
        })?;
        let withdraw = Withdraw { turn: self, id };
        let answer = answer.await.map_err(|_| RunOver)?;
        drop(withdraw);
        Ok(answer)
    }

    /// Waits until the user wants the agent to stop. Finish the step, then return
    /// [`Reply::interrupted`](super::Reply::interrupted).
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn interrupted(&self) {
        loop {
            // Made before the look, so that no wish falls between.
            let interrupt = self.signals.interrupt.notified();
            if self.is_interrupted() {
                return;
            }
            interrupt.await;
        }
    }

    /// Returns whether the user wants the agent to stop.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        self.runtime
            .with(|state, _| state.hub.is_interrupted(self.run))
    }

    /// Returns the mode that the user wants; `None` if it was never set.
    #[must_use]
    pub fn mode(&self) -> Option<Mode> {
        let mode = self.member("mode")?;
        mode.as_str().map(|mode| Str::from(&*mode).into())
    }

    /// Returns how many turns the user allows in the mode `ulw`; `None` if that was not set. The
    /// agent decides what counts as a turn, counts the [used](crate::limits::ULW_TURNS_USED) ones,
    /// and [asks](Self::ulw_turns_reached) when they are used up.
    #[must_use]
    pub fn ulw_turns(&self) -> Option<u64> {
        self.member(ULW_TURNS)?.get().parse().ok()
    }

    /// Changes the mode, and informs the clients.
    ///
    /// # Errors
    /// [`EmitError`].
    pub fn set_mode(&self, mode: Mode) -> Result<(), EmitError> {
        self.runtime
            .with(|state, now| state.hub.set_mode(self.run, mode, now))
    }

    /// Takes the goal that the user last set in this run.
    #[must_use]
    pub fn take_goal(&self) -> Option<Str> {
        let goal = self.signals.goal.lock();
        goal.unwrap_or_else(std::sync::PoisonError::into_inner)
            .take()
    }

    /// Returns the current conversation, with all its members: read it with
    /// [`Session::parse`](crate::frame::Session::parse). Its `messages` end with the prompt and the
    /// messages added since.
    ///
    /// # Errors
    /// [`RunOver`].
    pub fn session(&self) -> Result<Json, RunOver> {
        self.runtime
            .with(|state, now| state.hub.session(self.run, now))
    }

    /// Returns a current member of the session, other than `messages` and `trace`.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<Json> {
        let member = self
            .runtime
            .with(|state, _| state.hub.member(self.run, name));
        member.ok().flatten()
    }

    /// Sets a member of the session, for the agent's next run.
    ///
    /// # Errors
    /// [`EmitError`] if the run is over, or the value is not JSON.
    pub fn set_member(
        &self,
        name: &str,
        value: &(impl Serialize + ?Sized),
    ) -> Result<(), EmitError> {
        let value = to_json(value)?;
        let set = self
            .runtime
            .with(|state, _| state.hub.set_member(self.run, name, value));
        Ok(set?)
    }

    /// Adds a message to the conversation, in the form of the models: the agent's words, its tool
    /// calls, their results. For an agent that adds none, the host adds prompts and replies.
    ///
    /// # Errors
    /// [`EmitError`] if the run is over, or the message is not JSON.
    pub fn push_message(&self, message: &(impl Serialize + ?Sized)) -> Result<(), EmitError> {
        let message = to_json(message)?;
        let pushed = self
            .runtime
            .with(|state, _| state.hub.push_message(self.run, message));
        Ok(pushed?)
    }

    /// Sends the clients the whole current conversation, as `session_sync`. The OUTPUT includes it
    /// anyway.
    ///
    /// # Errors
    /// [`EmitError`].
    pub fn sync(&self) -> Result<(), EmitError> {
        let session = self.session()?;
        let event = EventKind::SessionSync(session);
        self.emit(event).map(drop)
    }
}

/// Withdraws a question when dropped.
struct Withdraw<'t> {
    turn: &'t Turn,
    id: Str,
}

impl Drop for Withdraw<'_> {
    fn drop(&mut self) {
        let Turn { runtime, run, .. } = self.turn;
        runtime.with(|state, _| {
            state.hub.withdraw(*run, &self.id);
            state.forget_question(*run, &self.id);
        });
    }
}

/// Prints the run's number.
impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn")
            .field("run", &self.run)
            .field("session_id", &self.session_id)
            .finish_non_exhaustive()
    }
}
