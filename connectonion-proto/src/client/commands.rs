//! The commands of [`ClientConn`]: each is carried out whole, or refused with nothing changed.

use rpc_core::timers::later;
use rpc_core::{CallId, Instant, Refused};
use serde::Serialize;

use super::pending::Kind;
use super::{ClientConn, ClientState};
use crate::frame::{
    AdminRequest, ClientFrame, Connect, Input, ModeChange, OnboardSubmit, PromptUpdate, Response,
    SessionQuery,
};
use crate::id::SessionId;

/// The number of answers remembered; the oldest are forgotten first. Agents ask one at a time.
const MAX_ANSWERS: usize = 64;

impl ClientConn {
    /// Sends another CONNECT, freshly signed: after [`ConnectWanted`](super::ClientEvent), or
    /// during onboarding, where it replaces the waiting one.
    ///
    /// # Errors
    /// [`Refused::Invalid`] if the client is already admitted, or its CONNECT has no answer yet;
    /// [`Refused::Closed`], [`Refused::QueueFull`], [`Refused::TooLarge`].
    pub fn connect(&mut self, connect: &Connect, now: Instant) -> Result<(), Refused> {
        match self.state() {
            ClientState::Closed => return Err(Refused::Closed),
            ClientState::AwaitConnected if self.onboarded => {}
            ClientState::AwaitOnboarding => {}
            _ => {
                let why = "there was one on this connection; open a new one";
                return Err(Refused::invalid("CONNECT", why));
            }
        }
        self.core.send_json(connect)?;
        self.onboarded = false;
        self.state = ClientState::AwaitConnected;
        self.await_connected(now);
        Ok(())
    }

    /// Submits a stranger's onboarding. A [`Reply`](super::ClientEvent::Reply) follows; after a
    /// refusal another try is allowed, and after a success CONNECTED follows by itself.
    ///
    /// # Errors
    /// [`Refused::NotReady`] unless the host has asked for it, [`Refused::Closed`],
    /// [`Refused::TooManyCalls`], [`Refused::QueueFull`], [`Refused::TooLarge`].
    pub fn onboard(&mut self, submit: &OnboardSubmit, now: Instant) -> Result<CallId, Refused> {
        match self.state() {
            ClientState::Closed => return Err(Refused::Closed),
            ClientState::AwaitOnboarding => {}
            _ => return Err(Refused::NotReady),
        }
        self.ask(submit, Kind::Onboarding, self.answer_deadline(now))
    }

    /// Sends a prompt. If no agent is running, it starts a run: its steps follow and then
    /// [`RunEnded`](super::ClientEvent::RunEnded). While an agent runs, the prompt is an
    /// interjection: it is queued, and known hosts drop its images and files. The
    /// [`Reply`](super::ClientEvent::Reply) says which of the two it was; that can differ from what
    /// was intended, because both sides act at the same time.
    ///
    /// # Errors
    /// [`Refused::Invalid`] for an empty prompt, [`Refused::TooLarge`] beyond
    /// [`max_sent_bytes`](super::ClientConfig::max_sent_bytes), [`Refused::NotReady`] before
    /// CONNECTED, [`Refused::Closed`], [`Refused::TooManyCalls`], [`Refused::QueueFull`]. A prompt
    /// that may have reached the host must not be sent again: it would run twice.
    pub fn input(&mut self, input: &Input, _: Instant) -> Result<CallId, Refused> {
        self.check_ready()?;
        if input.prompt.as_deref().is_none_or(str::is_empty) {
            return Err(Refused::invalid("prompt", "it is empty"));
        }
        let kind = match self.state() {
            ClientState::Running => Kind::Interjection,
            _ => Kind::Prompt,
        };
        let id = self.ask(input, kind, None)?;
        self.settle_state();
        Ok(id)
    }

    /// Answers a question of the agent. Hosts confirm no answer, so a `SESSION_STATUS` query
    /// follows, whose reply shows that the answer has arrived; if the connection is lost before it,
    /// the answer comes back as [`Unsent`](super::ClientEvent::Unsent) or
    /// [`Unconfirmed`](super::ClientEvent::Unconfirmed), unless its run has ended meanwhile. Newer
    /// hosts refuse a late answer with [`AnswerRefused`](super::ClientEvent::AnswerRefused). The
    /// question may be one of an earlier connection.
    ///
    /// # Errors
    /// [`Refused::NotReady`] before CONNECTED, [`Refused::Closed`], [`Refused::QueueFull`],
    /// [`Refused::TooLarge`]. Old hosts take a second answer as the answer to their next question.
    pub fn respond(&mut self, response: &Response, _: Instant) -> Result<(), Refused> {
        self.check_ready()?;
        let frame = self.core.send_json(response)?;
        let receipt = self.ask_for_receipt();
        if self.answers.len() == MAX_ANSWERS {
            self.answers.pop_front();
        }
        self.answers.push_back((frame, receipt, response.clone()));
        Ok(())
    }

    /// Sends a query after an answer. Returns `None` if there is no room, or if this host answers no
    /// queries.
    fn ask_for_receipt(&mut self) -> Option<CallId> {
        if !self.answers_queries || self.pending.count(Kind::Status) >= MAX_ANSWERS {
            return None;
        }
        let query = SessionQuery::new(self.session_id.clone()?);
        let id = self.ask(&query, Kind::Status, None).ok()?;
        self.pending.cancel(id);
        Some(id)
    }

    /// Changes the agent's mode. Newer hosts confirm with an event `mode_changed`.
    ///
    /// # Errors
    /// As for [`respond`](Self::respond). Safe to repeat.
    pub fn set_mode(&mut self, change: &ModeChange, _: Instant) -> Result<(), Refused> {
        self.send_ready(change)
    }

    /// Changes the goal of the mode `ulw`.
    ///
    /// # Errors
    /// As for [`respond`](Self::respond). Safe to repeat.
    pub fn update_prompt(&mut self, update: &PromptUpdate, _: Instant) -> Result<(), Refused> {
        self.send_ready(update)
    }

    /// Stops the agent after its current step; the run ends with an OUTPUT.
    ///
    /// # Errors
    /// As for [`respond`](Self::respond). Safe to repeat.
    pub fn interrupt(&mut self, _: Instant) -> Result<(), Refused> {
        self.send_ready(&ClientFrame::Interrupt)
    }

    /// Requests the status of a session. A [`Reply`](super::ClientEvent::Reply) follows.
    ///
    /// # Errors
    /// As for [`respond`](Self::respond), and [`Refused::TooManyCalls`]. Safe to repeat.
    pub fn query(
        &mut self,
        session_id: impl Into<SessionId>,
        now: Instant,
    ) -> Result<CallId, Refused> {
        self.check_ready()?;
        let query = SessionQuery::new(session_id);
        self.ask(&query, Kind::Status, self.answer_deadline(now))
    }

    /// Sends an administrator's command. A [`Reply`](super::ClientEvent::Reply) follows.
    ///
    /// # Errors
    /// As for [`query`](Self::query). Safe to repeat.
    pub fn admin(&mut self, request: &AdminRequest, now: Instant) -> Result<CallId, Refused> {
        self.check_ready()?;
        self.ask(request, Kind::Admin, self.answer_deadline(now))
    }

    /// Forgets a request: no [`Reply`](super::ClientEvent::Reply) to it follows. The host is not
    /// informed, because the protocol has no way to. Returns `false` if the request was already
    /// answered.
    pub fn cancel(&mut self, id: CallId) -> bool {
        self.pending.cancel(id)
    }

    const fn check_ready(&self) -> Result<(), Refused> {
        match self.state() {
            ClientState::Ready | ClientState::Running => Ok(()),
            ClientState::Closed => Err(Refused::Closed),
            ClientState::AwaitConnected | ClientState::AwaitOnboarding => Err(Refused::NotReady),
        }
    }

    fn send_ready(&mut self, frame: &impl Serialize) -> Result<(), Refused> {
        self.check_ready()?;
        self.core.send_json(frame)?;
        Ok(())
    }

    fn ask(
        &mut self,
        frame: &impl Serialize,
        kind: Kind,
        deadline: Option<Instant>,
    ) -> Result<CallId, Refused> {
        self.pending.check_room()?;
        let frame = self.core.send_json(frame)?;
        self.pending.insert(kind, frame, deadline)
    }

    fn answer_deadline(&self, now: Instant) -> Option<Instant> {
        let timeout = self.config.answer_timeout?;
        Some(later(now, timeout))
    }
}
