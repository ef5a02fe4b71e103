//! [`Turn`]: one run, from its [`Agent`](super::Agent)'s point of view.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use rpc_core::json::find_member;
use rpc_core::net::time;
use rpc_core::{Json, Refused, Str};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::Notify;

use super::HostRuntime;
use crate::auth::Address;
use crate::frame::{
    Answer, Approval, ApprovalNeeded, AskUser, EventKind, Mode, PlanReview, ToolCall, ToolResult,
    ToolStatus, Ulw, UlwTurnsReached,
};
use crate::hub::{AppError, Hub, Now, Owner, Prompt, RunId};
use crate::id::SessionId;
use crate::limits::ULW_TURNS;

/// A handle to one run, cheap to clone, for its [`Agent`](super::Agent): it sends events, asks questions, returns
/// what the user wants meanwhile, and has the conversation.
///
/// Sending an event never waits: events are kept for all connections and for those that reconnect,
/// within the bounds of the host. A question waits for a human, as long as it takes, also without a
/// connection.
///
/// ```
/// use connectonion_proto::frame::{AskUser, EventKind, Thinking};
/// use connectonion_proto::net::{Agent, AppError, Prompt, Reply, Turn};
///
/// struct Barista;
///
/// impl Agent for Barista {
///     async fn run(&self, turn: &Turn, prompt: Prompt) -> Result<Reply, AppError> {
///         turn.emit(EventKind::Thinking(Thinking::new("milk or not?")))?;
///         let milk = turn.ask_user(AskUser::new("With milk?")).await?;
///         Ok(Reply::new(format!("{}, milk: {}", prompt.text, milk.get())))
///     }
/// }
/// ```
#[derive(Clone)]
pub struct Turn {
    pub(super) runtime: HostRuntime,
    pub(super) run: RunId,
    pub(super) session_id: SessionId,
    pub(super) owner: Owner,
    pub(super) head: Option<Arc<Head>>,
    /// Wakes it when the user has told it something.
    pub(super) changed: Arc<Notify>,
}

/// The head of an upgrade request.
pub(in crate::net) type Head = http::request::Parts;

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
    #[must_use]
    pub fn parts(&self) -> Option<&http::request::Parts> {
        self.head.as_deref()
    }

    fn hub<T>(&self, act: impl FnOnce(&mut Hub, Now) -> T) -> T {
        self.runtime.with_hub(act)
    }

    /// Sends an event. Returns its id.
    ///
    /// # Errors
    /// [`AppError::Over`] if the run has ended: stop the work. [`AppError::Refused`] if the event is too large,
    /// [`AppError::Reserved`] if the kind is the host's own to send. Retrying fails again.
    pub fn emit(&self, event: EventKind) -> Result<Str, AppError> {
        self.hub(|hub, now| hub.emit(self.run, event, None, now))
    }

    /// Like [`emit`](Self::emit), with the id of an earlier event: the end of a model's call has the
    /// id of its start.
    ///
    /// # Errors
    /// As for [`emit`](Self::emit).
    pub fn emit_as(&self, id: &str, event: EventKind) -> Result<(), AppError> {
        self.hub(|hub, now| hub.emit(self.run, event, Some(id), now))
            .map(drop)
    }

    /// Announces the call of a tool, does its work, and reports its result, or the words of its failure,
    /// with the time that it took.
    ///
    /// ```
    /// use connectonion_proto::Json;
    /// use connectonion_proto::frame::ToolCall;
    /// use connectonion_proto::net::{AppError, Turn};
    ///
    /// # async fn doc(turn: &Turn) -> Result<(), AppError> {
    /// let call = ToolCall::new("call-1", "add", Json::of(&[2, 3])?);
    /// let sum = turn.tool(call, async { Ok::<_, AppError>(2 + 3) }).await??;
    /// # let _: i32 = sum;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`AppError`], as for [`emit`](Self::emit). The outcome of the work is inside.
    ///
    /// # Cancel safety
    /// Dropping the future drops the work; the clients get no result then.
    pub async fn tool<T: fmt::Display, E: fmt::Display>(
        &self,
        call: ToolCall,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<Result<T, E>, AppError> {
        let mut result = ToolResult::default();
        result.tool_id.clone_from(&call.tool_id);
        result.name = Some(call.name.clone());
        result.args.clone_from(&call.args);
        self.emit(EventKind::ToolCall(call))?;
        let start = time::now();
        let outcome = work.await;
        let time = time::now().saturating_duration_since(start).as_millis();
        result.timing_ms = u64::try_from(time).ok().map(Into::into);
        let (status, text) = match &outcome {
            Ok(value) => (ToolStatus::Success, value.to_string()),
            Err(error) => (ToolStatus::Error, error.to_string()),
        };
        result.status = Some(status);
        result.result = Some(Str::from(text));
        result.error = result.result.clone().filter(|_| outcome.is_err());
        self.emit(EventKind::ToolResult(result))?;
        Ok(outcome)
    }

    /// Starts a step, and returns what the user has said meanwhile, oldest first. The clients learn
    /// that it was read, and it is part of the conversation now. Call it before each call of a
    /// model; the session's `iteration` counts these calls.
    ///
    /// # Errors
    /// [`AppError::Over`] if the run has ended meanwhile: stop the work; the same call fails again.
    pub fn next_inputs(&self) -> Result<Vec<Prompt>, AppError> {
        self.hub(|hub, now| hub.next_inputs(self.run, now))
    }

    /// Waits until an input of the user can be [read](Self::next_inputs).
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn input_waits(&self) {
        self.until(|hub| hub.has_inputs(self.run).then_some(()))
            .await;
    }

    /// Waits until the hub has something for this agent.
    async fn until<T>(&self, mut look: impl FnMut(&mut Hub) -> Option<T>) -> T {
        loop {
            // Made before the look, so that nothing falls between.
            let changed = self.changed.notified();
            if let Some(found) = self.hub(|hub, _| look(hub)) {
                return found;
            }
            changed.await;
        }
    }

    /// Asks the user, and waits for the answer: any JSON value, usually a text. An interrupt leaves the question
    /// open: an agent that should stop then waits for [`interrupted`](Self::interrupted), too, and drops this future.
    ///
    /// # Errors
    /// [`AppError::Over`] if the run ended before the answer: stop the work. [`AppError::NoRoom`] if too many questions
    /// are open: ask again when one is answered. [`AppError::Refused`] if the question is too large.
    ///
    /// # Cancel safety
    /// Dropping the future withdraws the question: an answer gets an ERROR.
    pub async fn ask_user(&self, question: AskUser) -> Result<Json, AppError> {
        match self.ask(EventKind::AskUser(question)).await? {
            Answer::AskUser(answer) => Ok(answer),
            _ => Err(AppError::Over),
        }
    }

    /// Asks the user whether a tool may run, and waits for the answer.
    ///
    /// # Errors
    /// As for [`ask_user`](Self::ask_user).
    ///
    /// # Cancel safety
    /// As for [`ask_user`](Self::ask_user).
    pub async fn approve(&self, tool: ApprovalNeeded) -> Result<Approval, AppError> {
        match self.ask(EventKind::ApprovalNeeded(tool)).await? {
            Answer::Approval(approval) => Ok(approval),
            _ => Err(AppError::Over),
        }
    }

    /// Shows the user a plan, and waits for the review.
    ///
    /// # Errors
    /// As for [`ask_user`](Self::ask_user).
    ///
    /// # Cancel safety
    /// As for [`ask_user`](Self::ask_user).
    pub async fn plan_review(&self, plan: PlanReview) -> Result<Str, AppError> {
        match self.ask(EventKind::PlanReview(plan)).await? {
            Answer::PlanReview(message) => Ok(message),
            _ => Err(AppError::Over),
        }
    }

    /// Reports that the turns of the mode `ulw` are used up, and waits for the user's decision.
    ///
    /// # Errors
    /// As for [`ask_user`](Self::ask_user).
    ///
    /// # Cancel safety
    /// As for [`ask_user`](Self::ask_user).
    pub async fn ulw_turns_reached(&self, turns: UlwTurnsReached) -> Result<Ulw, AppError> {
        match self.ask(EventKind::UlwTurnsReached(turns)).await? {
            Answer::Ulw(ulw) => Ok(ulw),
            _ => Err(AppError::Over),
        }
    }

    async fn ask(&self, question: EventKind) -> Result<Answer, AppError> {
        let id = self.hub(|hub, now| hub.ask(self.run, question, now))?;
        let question = Withdraw { turn: self, id };
        self.until(|hub| hub.take_answer(self.run, &question.id).transpose())
            .await
    }

    /// Waits until the user wants the agent to stop. Finish the step, then return
    /// [`Reply::interrupted`](super::Reply::interrupted).
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn interrupted(&self) {
        self.until(|hub| hub.is_interrupted(self.run).then_some(()))
            .await;
    }

    /// Returns whether the user wants the agent to stop.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        self.hub(|hub, _| hub.is_interrupted(self.run))
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
    /// [`AppError::Over`] if the run has ended meanwhile: stop the work; the same call fails again.
    pub fn set_mode(&self, mode: Mode) -> Result<(), AppError> {
        self.hub(|hub, now| hub.set_mode(self.run, mode, now))
    }

    /// Takes the goal that the user last set in this run.
    #[must_use]
    pub fn take_goal(&self) -> Option<Str> {
        self.hub(|hub, _| hub.take_goal(self.run))
    }

    /// Returns the current conversation, with all its members: read it with
    /// [`Session::parse`](crate::frame::Session::parse). Its `messages` end with the prompt and the
    /// messages added since.
    ///
    /// # Errors
    /// [`AppError::Over`] if the run has ended meanwhile: stop the work; the same call fails again.
    pub fn session(&self) -> Result<Json, AppError> {
        self.hub(|hub, now| hub.session(self.run, now))
    }

    /// Returns the messages of the current conversation as values, the prompt and the messages added
    /// since at the end.
    ///
    /// ```
    /// use connectonion_proto::net::{AppError, Turn};
    ///
    /// #[derive(serde::Deserialize)]
    /// struct Message {
    ///     role: String,
    /// }
    ///
    /// # fn doc(turn: &Turn) -> Result<(), AppError> {
    /// let messages = turn.messages::<Message>()?;
    /// let prompts = messages.iter().filter(|message| message.role == "user");
    /// # let _ = prompts;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`AppError::Over`]; [`AppError::Refused`] if a message does not fit the type. Other programs may
    /// have added some.
    pub fn messages<T: DeserializeOwned>(&self) -> Result<Vec<T>, AppError> {
        let session = self.session()?;
        let messages = find_member(session.get(), "messages").unwrap_or(Json::EMPTY_ARRAY);
        let read = serde_json::from_str(messages.get());
        read.map_err(|error| Refused::invalid("message", error.to_string()).into())
    }

    /// Returns a current member of the session, other than `messages` and `trace`.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<Json> {
        let run = |hub: &mut Hub, _| Some(hub.run_mut(self.run).ok()?.1.get(name));
        self.hub(run).flatten()
    }

    /// Sets a member of the session, for the agent's next run.
    ///
    /// # Errors
    /// [`AppError`] if the run is over, or the value is not JSON.
    pub fn set_member(
        &self,
        name: &str,
        value: &(impl Serialize + ?Sized),
    ) -> Result<(), AppError> {
        let value = Json::of(value)?;
        self.hub(|hub, _| hub.run_mut(self.run).map(|(_, run)| run.set(name, value)))
    }

    /// Adds a message to the conversation, in the form of the models: the agent's words, its tool
    /// calls, their results. For an agent that adds none, the host adds prompts and replies.
    ///
    /// # Errors
    /// [`AppError`] if the run is over, or the message is not JSON.
    pub fn push_message(&self, message: &(impl Serialize + ?Sized)) -> Result<(), AppError> {
        let message = Json::of(message)?;
        self.hub(|hub, _| {
            hub.run_mut(self.run)
                .map(|(_, run)| run.push_message(message))
        })
    }

    /// Sends the clients the whole current conversation, as `session_sync`. The OUTPUT includes it
    /// anyway.
    ///
    /// # Errors
    /// [`AppError::Over`] if the run has ended meanwhile, [`AppError::Refused`] if the conversation is too large for a
    /// message: the same call fails again.
    pub fn sync(&self) -> Result<(), AppError> {
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
        self.turn
            .hub(|hub, _| hub.withdraw(self.turn.run, &self.id));
    }
}

// Prints the run's number.
rpc_core::debug_fields!([] Turn, this => { run: this.run, session_id: this.session_id });
