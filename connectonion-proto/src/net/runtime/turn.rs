//! [`Turn`]: one run, as its [`Agent`](super::Agent) sees it.

use std::fmt;
use std::sync::Arc;

use rpc_core::{Json, Str};
use serde::Serialize;
use tokio::sync::{Notify, oneshot};

use super::HostRuntime;
use super::agent::Prompt;
use crate::auth::Address;
use crate::codec::to_json;
use crate::frame::{
    Answer, Approval, ApprovalNeeded, AskUser, EventKind, Mode, PlanReview, Ulw, UlwTurnsReached,
};
use crate::hub::{AskError, EmitError};
use crate::id::SessionId;
use crate::limits::ULW_TURNS;
use crate::session::{Owner, RunId, RunOver};

/// One run, as its [`Agent`](super::Agent) sees it: what to tell, what to ask, what the user wants
/// meanwhile, and the conversation.
///
/// Telling waits for nobody: events are kept for everybody who watches and for those who come back,
/// within the bounds of the host. What is asked waits for a human, as long as it takes, also while
/// nobody is connected.
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
    pub(super) signals: Arc<Signals>,
}

/// What wakes an agent.
#[derive(Debug, Default)]
pub(super) struct Signals {
    /// The user wants it to stop.
    pub(super) interrupt: Notify,
    /// The user has said something.
    pub(super) input: Notify,
    /// The user wants another goal.
    pub(super) goal: std::sync::Mutex<Option<Str>>,
}

impl Turn {
    /// The session.
    #[must_use]
    pub const fn session_id(&self) -> &SessionId {
        &self.session_id
    }

    /// Who talks to the agent: the address that the client proved; `None` if it proved none.
    #[must_use]
    pub const fn caller(&self) -> Option<&Address> {
        match &self.owner {
            Owner::Key(address) => Some(address),
            Owner::Unsigned => None,
        }
    }

    /// Tells what the agent does. Returns the event's id.
    ///
    /// # Errors
    /// [`EmitError`]. Retrying fails again.
    pub fn emit(&self, event: EventKind) -> Result<Str, EmitError> {
        self.runtime
            .with(|state, now| state.hub.emit(self.run, event, None, now))
    }

    /// As [`emit`](Self::emit), with the id of an earlier event: the end of a model's call has that
    /// of its start.
    ///
    /// # Errors
    /// As for [`emit`](Self::emit).
    pub fn emit_as(&self, id: &str, event: EventKind) -> Result<(), EmitError> {
        let emit =
            |state: &mut super::state::State, now| state.hub.emit(self.run, event, Some(id), now);
        self.runtime.with(emit).map(drop)
    }

    /// Begins a step, and takes what the user has said meanwhile, oldest first. The clients are told
    /// that it was read, and it is in the conversation now. Call it before each question to a model;
    /// the session's `iteration` counts the calls.
    ///
    /// # Errors
    /// [`RunOver`].
    pub fn next_inputs(&self) -> Result<Vec<Prompt>, RunOver> {
        let inputs = self
            .runtime
            .with(|state, now| state.hub.next_inputs(self.run, now))?;
        Ok(inputs.into_iter().map(Prompt::from).collect())
    }

    /// Waits until the user has said something that waits to be [read](Self::next_inputs).
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

    /// Asks the user, and waits for the answer: any JSON value, a text as a rule.
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

    /// Shows the user a plan, and waits for what is said about it.
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

    /// Tells the user that the turns of the mode `ulw` are used up, and waits for what to do.
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

    /// Waits until the user wants the agent to stop. Finish the step, then answer
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

    /// Whether the user wants the agent to stop.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        self.runtime
            .with(|state, _| state.hub.is_interrupted(self.run))
    }

    /// The mode that the user wants the agent to work in; `None` if there was never a word about it.
    #[must_use]
    pub fn mode(&self) -> Option<Mode> {
        let mode = self.member("mode")?;
        mode.as_str().map(|mode| Str::from(&*mode).into())
    }

    /// How many turns the user allows in the mode `ulw`; `None` if that was not said. What counts as a
    /// turn, and how many are [used](crate::limits::ULW_TURNS_USED), is the agent's to know: when they
    /// are used up it [asks](Self::ulw_turns_reached).
    #[must_use]
    pub fn ulw_turns(&self) -> Option<u64> {
        self.member(ULW_TURNS)?.get().parse().ok()
    }

    /// Changes the mode, and tells the clients.
    ///
    /// # Errors
    /// [`EmitError`].
    pub fn set_mode(&self, mode: Mode) -> Result<(), EmitError> {
        self.runtime
            .with(|state, now| state.hub.set_mode(self.run, mode, now))
    }

    /// The goal that the user has set last in this run, once.
    #[must_use]
    pub fn take_goal(&self) -> Option<Str> {
        let goal = self.signals.goal.lock();
        goal.unwrap_or_else(std::sync::PoisonError::into_inner)
            .take()
    }

    /// The conversation as it is now, with every member that anybody put into it: read it with
    /// [`Session::parse`](crate::frame::Session::parse). Its `messages` end with the prompt, and what was
    /// added since.
    ///
    /// # Errors
    /// [`RunOver`].
    pub fn session(&self) -> Result<Json, RunOver> {
        self.runtime
            .with(|state, now| state.hub.session(self.run, now))
    }

    /// A member of the session as it is now, other than `messages` and `trace`.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<Json> {
        let member = self
            .runtime
            .with(|state, _| state.hub.member(self.run, name));
        member.ok().flatten()
    }

    /// Sets a member of the session: what the agent wants to know again in the next run.
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

    /// Adds a message to the conversation, in the form of the models: what the agent said, which
    /// tools it called, what they returned. An agent that does not gets its prompts and replies
    /// added by the host.
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

    /// Sends the clients the whole conversation as it is now, as `session_sync`. They get it with
    /// the OUTPUT anyway.
    ///
    /// # Errors
    /// [`EmitError`].
    pub fn sync(&self) -> Result<(), EmitError> {
        let session = self.session()?;
        let event = EventKind::SessionSync(session);
        self.emit(event).map(drop)
    }
}

/// Takes a question back that nobody waits for any more.
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

/// Prints which run it is.
impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn")
            .field("run", &self.run)
            .field("session_id", &self.session_id)
            .finish_non_exhaustive()
    }
}
