//! [`Run`]: one INPUT in progress, with what was said in it.

use std::collections::VecDeque;

use rpc_core::json::find_member;
use rpc_core::{Instant, Json, Limits, Refused, Str, Text};

use super::conversation::{Event, agent_message, agents_text, user_message};
use super::event::{Now, RunId};
use super::{Entry, Prompt};
use crate::frame::{Answer, ErrorFrame, Session};
use crate::limits::{STALE_ANSWER, ULW_TURNS, ULW_TURNS_USED};
use crate::merge::turn_of;

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Its prompt is being stored.
    Beginning,
    /// Its agent is at work.
    Running,
    /// Its result is being stored.
    Ending,
}

/// One INPUT in progress, and its additions to the session. They stay separate until the whole session
/// is needed, so that adding a message or an event costs the same in long and short conversations.
///
/// Every acknowledged prompt is read: one that comes during the run waits in the session until the agent
/// takes it at its next step, and a run with waiting prompts does not finish.
pub(crate) struct Run {
    pub(super) id: RunId,
    pub(super) phase: Phase,
    pub(super) prompt: Prompt,
    /// The wall time of its start.
    pub(super) began: f64,
    pub(super) started: Instant,
    /// The session before the run.
    base: Option<Json>,
    pub(super) turn: u64,
    pub(super) iteration: u64,
    messages: Vec<Json>,
    pub(super) message_bytes: usize,
    /// The last message, if it is a text of the agent.
    last_text: Option<String>,
    trace: VecDeque<Text>,
    pub(super) trace_bytes: usize,
    /// Members set by the agent or a change of mode.
    members: Vec<(Str, Json)>,
    /// How many times the run was begun again.
    pub(super) reruns: u32,
    /// The user wants the agent to stop after its current step.
    pub(super) is_interrupted: bool,
    /// The open questions and the types of their answers, in the order of asking.
    pub(super) requests: Vec<(Str, &'static str)>,
    /// The answers that the agent has not taken, and their questions.
    pub(super) answers: Vec<(Str, Answer)>,
    /// The goal that the user has set last.
    pub(super) goal: Option<Str>,
    /// Storing the start of this run has failed, and possibly the end of the one before: the next
    /// record must include the session before it.
    pub(super) is_base_unstored: bool,
    /// Events that wait to be stored.
    pub(super) unstored: Vec<Entry>,
    /// Events are being stored.
    pub(super) is_storing: bool,
    /// The number and size of the events that were to be stored so far.
    pub(super) kept: usize,
    pub(super) kept_bytes: usize,
}

impl Run {
    /// Creates a run, or begins one again so often, with a prompt that is the last message of `base`
    /// already.
    pub(super) fn new(
        id: RunId,
        base: Option<Json>,
        prompt: Prompt,
        reruns: Option<u32>,
        now: Now,
    ) -> Self {
        let turn = base.as_ref().and_then(turn_of);
        let mut run = Self {
            id,
            phase: Phase::Beginning,
            began: now.unix,
            started: now.instant,
            base,
            turn: turn.unwrap_or_default(),
            reruns: reruns.unwrap_or_default(),
            iteration: 0,
            messages: Vec::new(),
            message_bytes: 0,
            last_text: None,
            trace: VecDeque::new(),
            trace_bytes: 0,
            members: Vec::new(),
            is_interrupted: false,
            requests: Vec::new(),
            answers: Vec::new(),
            goal: None,
            is_base_unstored: false,
            unstored: Vec::new(),
            is_storing: false,
            kept: 0,
            kept_bytes: 0,
            prompt,
        };
        if reruns.is_none() {
            run.turn = run.turn.saturating_add(1);
            run.push_message(user_message(&run.prompt));
        }
        run
    }

    /// Returns the session before this run.
    pub(super) const fn base(&self) -> Option<&Json> {
        self.base.as_ref()
    }

    /// Whether its agent is at work.
    pub(super) fn is_running(&self) -> bool {
        self.phase == Phase::Running
    }

    /// Closes the question that an answer is for, and keeps the answer for the agent. One of an old client
    /// names no question: it is for the only one of its kind.
    pub(super) fn answer(
        &mut self,
        answer: Answer,
        request_id: Option<&str>,
    ) -> Result<(), Box<ErrorFrame>> {
        let is_it = |(id, asked): &(Str, &str)| {
            *asked == answer.tag() && request_id.is_none_or(|wanted| id == wanted)
        };
        let mut places = (0..).zip(&self.requests).filter(|(_, it)| is_it(it));
        let (place, _) = places.next().ok_or_else(|| stale(request_id))?;
        if places.next().is_some() {
            let words = "several questions are open: request_id is required";
            return Err(no_question(words, "request_id_required", request_id));
        }
        let (id, _) = self.requests.remove(place);
        self.answers.push((id, answer));
        Ok(())
    }

    pub(crate) fn push_message(&mut self, message: Json) {
        self.last_text = agents_text(message.get());
        self.message_bytes += message.get().len();
        self.messages.push(message);
    }

    /// Adds the agent's answer, unless it is already the agent's last message.
    pub(super) fn add_answer(&mut self, text: &str) {
        if !text.is_empty() && self.last_text.as_deref() != Some(text) {
            self.push_message(agent_message(text));
        }
    }

    pub(super) fn push_trace(&mut self, event: Text, max_bytes: usize) {
        self.trace_bytes += event.len();
        self.trace.push_back(event);
        while self.trace_bytes > max_bytes
            && let Some(oldest) = self.trace.pop_front()
        {
            self.trace_bytes -= oldest.len();
        }
    }

    pub(crate) fn set(&mut self, name: &str, value: Json) {
        match self.members.iter_mut().find(|(known, _)| *known == *name) {
            Some((_, place)) => *place = value,
            None => self.members.push((name.into(), value)),
        }
    }

    /// Sets the mode, and how many turns the user allows in it.
    pub(super) fn set_mode(&mut self, mode: Json, turns: Option<Json>) {
        self.set("mode", mode);
        for (name, value) in [(ULW_TURNS, turns), (ULW_TURNS_USED, None)] {
            if value.is_some() || self.get(name).is_some() {
                // Null is absent.
                self.set(name, value.unwrap_or_default());
            }
        }
    }

    /// Returns a current member.
    pub(crate) fn get(&self, name: &str) -> Option<Json> {
        let set = self.members.iter().find(|(known, _)| *known == *name);
        set.map(|(_, value)| value.clone()).or_else(|| {
            let base = self.base.as_ref()?;
            find_member(base.get(), name)
        })
    }

    /// Returns the current session.
    pub(super) fn render(&self, session_id: &str, result: Option<&str>, updated: f64) -> Json {
        let whole = self.build(session_id, result, updated);
        // Everything in it is JSON already.
        whole.unwrap_or_default()
    }

    fn build(&self, session_id: &str, result: Option<&str>, updated: f64) -> Result<Json, Refused> {
        let limits = Limits::unlimited();
        let base = self.base.as_ref();
        let base = base.and_then(|base| Session::parse(base.get(), &limits).ok());
        let mut session = base.unwrap_or_default();
        session.set("session_id", session_id)?;
        session.append("messages", &self.messages)?;
        session.append("trace", self.trace.iter().map(Event))?;
        session.set("turn", &self.turn)?;
        session.set("user_prompt", &self.prompt.text)?;
        for (name, value) in &self.members {
            session.set(name, value)?;
        }
        session.set("iteration", &self.iteration)?;
        match result {
            Some(result) => session.set("result", result)?,
            None => session.remove("result"),
        }
        session.set("updated", &updated)?;
        Json::of(&session)
    }
}

/// Returns the ERROR for an answer to a question that was answered, whose run is over, or that never
/// existed.
pub(super) fn stale(request_id: Option<&str>) -> Box<ErrorFrame> {
    let words = "that request is no longer waiting for an answer";
    no_question(words, "stale", request_id)
}

fn no_question(
    words: &'static str,
    reason: &'static str,
    request_id: Option<&str>,
) -> Box<ErrorFrame> {
    let mut frame = ErrorFrame::new(words).with_code(STALE_ANSWER);
    frame.reason = Some(Str::from_static(reason));
    frame.request_id = request_id.map(Into::into);
    frame.into()
}
