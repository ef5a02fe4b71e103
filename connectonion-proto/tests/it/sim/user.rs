//! A user over all its connections: what it has sent, heard and shown.

use std::collections::{HashMap, HashSet};

use connectonion_proto::client::{
    CallValue, ClientConfig, ClientEvent, ClientSession, Resume, Step, Taken,
};
use connectonion_proto::frame::{Connect, ErrorFrame, Signed};
use connectonion_proto::limits::AUTHENTICATE_FIRST;
use rpc_core::{CallError, CallId, CloseReason, Delivery};
use switchboard_testing::sim::{Outcome, ensure};

use crate::sim::host::{Host, Verdict};

pub(crate) struct User {
    pub(crate) session: &'static str,
    /// No one else is in this session, so that every answer is its own.
    is_alone: bool,
    pub(crate) client: ClientSession,
    shown: HashSet<String>,
    order: Vec<String>,
    ended: HashSet<String>,
    /// Questions of agents that it has not answered.
    pub(crate) questions: Vec<String>,
    /// A prompt was queued behind a run, or was under way when the line was lost. Another run may
    /// begin with it, and the client cannot tell that from the run that a later prompt was to begin.
    has_queued: bool,
    has_lost: bool,
    /// Prompts without an answer, on this connection.
    pub(crate) calls: HashMap<CallId, String>,
    ended_by: Option<CloseReason>,
    /// Every prompt that was handed to a machine.
    pub(crate) prompts: Vec<String>,
    /// Prompts that never left, as its machines say.
    pub(crate) never_sent: Vec<String>,
    pub(crate) ended_calls: u64,
    pub(crate) answered: u64,
}

impl User {
    pub(crate) fn new(session: &'static str, is_alone: bool) -> Self {
        let mut resume = Resume::default();
        resume.session_id.replace(session.into());
        Self {
            session,
            is_alone,
            client: ClientSession::new(ClientConfig::default(), resume),
            shown: HashSet::new(),
            order: Vec::new(),
            ended: HashSet::new(),
            questions: Vec::new(),
            has_queued: false,
            has_lost: false,
            calls: HashMap::new(),
            ended_by: None,
            prompts: Vec::new(),
            never_sent: Vec::new(),
            ended_calls: 0,
            answered: 0,
        }
    }

    /// The CONNECT of the next connection.
    pub(crate) fn connect(&mut self) -> Connect {
        self.ended_by = None;
        self.client.connect(Signed::none())
    }

    pub(crate) fn on_event(&mut self, event: ClientEvent, host: &Host) -> Outcome {
        self.client.handle_event(event);
        while let Some(event) = self.client.poll_event() {
            match event {
                ClientEvent::Connected(frame) => {
                    let right = frame.session_id == *self.session;
                    ensure(right, || {
                        format!("{} instead of {}", frame.session_id, self.session)
                    })?;
                }
                ClientEvent::Step(step) => self.step(&step, host)?,
                ClientEvent::Reply { id, result } => self.reply(id, &result, host)?,
                ClientEvent::RunEnded(result) => self.run_ended(&result, host)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn step(&mut self, step: &Step, host: &Host) -> Outcome {
        let Some(id) = &step.event.id else {
            return Ok(());
        };
        let id = id.as_str();
        if step.event.kind.awaits().is_some() && !step.answered {
            self.questions.push(id.to_owned());
        }
        let is_sent = host
            .runs
            .values()
            .any(|said| said.events.iter().any(|it| it == id));
        if is_sent {
            let first = self.shown.insert(id.to_owned());
            ensure(first, || format!("{id} was shown twice"))?;
            self.order.push(id.to_owned());
        }
        Ok(())
    }

    /// Who hears the end of a run has heard all of it, in its order.
    fn run_ended(
        &mut self,
        result: &Result<connectonion_proto::frame::Output, CallError<ErrorFrame>>,
        host: &Host,
    ) -> Outcome {
        let name = match result {
            Ok(output) => output.result.strip_prefix("result "),
            Err(CallError::Remote(error)) => error.message.strip_prefix("failure "),
            // It has ended meanwhile.
            Err(CallError::Closed { .. }) => return Ok(()),
            Err(error) => return Err(format!("a run ended with {error:?}")),
        };
        let Some(name) = name else {
            return Ok(());
        };
        let first = self.ended.insert(name.to_owned());
        ensure(first, || format!("run {name} ended twice"))?;
        let said = host
            .runs
            .get(name)
            .ok_or_else(|| format!("no run {name}"))?;
        ensure(said.session == self.session, || {
            format!("{name} is another's")
        })?;
        let missing = said.events.iter().find(|id| !self.shown.contains(*id));
        ensure(missing.is_none(), || {
            format!("{missing:?} of {name} was lost")
        })?;
        let events: HashSet<&String> = said.events.iter().collect();
        let mine = self.order.iter().filter(|id| events.contains(id));
        ensure(mine.eq(said.events.iter()), || {
            format!("{name} came in another order")
        })
    }

    /// A prompt is answered once, and as the host has decided.
    fn reply(
        &mut self,
        id: CallId,
        result: &Result<CallValue, CallError<ErrorFrame>>,
        host: &Host,
    ) -> Outcome {
        let prompt = self.calls.remove(&id);
        let prompt = prompt.ok_or_else(|| format!("{id:?} was answered twice: {result:?}"))?;
        self.ended_calls += 1;
        let verdict = host.verdicts.get(&prompt).copied();
        let is_other_run = self.has_lost || (self.has_queued && host.broken + host.kills > 0);
        let is_sure = self.is_alone && !is_other_run;
        let fits = match result {
            Ok(CallValue::Input(taken)) => {
                self.answered += 1;
                let started = *taken == Taken::Started;
                self.has_queued |= !started;
                let ran = !started || host.given.contains_key(&prompt);
                !is_sure || (verdict == Some(Verdict::Taken) && ran)
            }
            // Said to whatever comes first, when the host has forgotten the session.
            Err(CallError::Remote(error)) if error.message == *AUTHENTICATE_FIRST => {
                verdict != Some(Verdict::Taken)
            }
            Err(CallError::Remote(_)) => !is_sure || verdict == Some(Verdict::Refused),
            Err(CallError::Closed { reason, delivery }) => {
                self.closes_with(reason)?;
                if *delivery == Delivery::NotSent {
                    self.never_sent.push(prompt.clone());
                } else {
                    self.has_lost = true;
                }
                true
            }
            _ => false,
        };
        ensure(fits, || {
            format!("{prompt}: {result:?}, and the host: {verdict:?}")
        })
    }

    /// Everything that ends with the connection hears the same reason.
    pub(crate) fn closes_with(&mut self, reason: &CloseReason) -> Outcome {
        let first = self.ended_by.get_or_insert_with(|| reason.clone());
        ensure(first == reason, || format!("{reason:?} after {first:?}"))
    }
}
