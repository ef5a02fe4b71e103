//! What the host says, and what it means where the connection stands.

use std::time::Instant;

use rpc_core::decode::{FrameCopy, SharedStr};
use rpc_core::timers::later;
use rpc_core::{CallError, CallId, CloseFrame, CloseReason};

use super::about::{self, About};
use super::asked::Kind;
use super::event::{ClientEvent, OtherFrame, Reply, Step, Taken, Warning};
use super::{ClientConn, ClientState, Timer};
use crate::frame::{
    BorrowedEvent, Connected, ErrorFrame, EventKind, OnboardSuccess, Output, ServerFrame,
    SessionState,
};
use crate::limits::AUTHENTICATE_FIRST;

impl ClientConn {
    pub(super) fn on_text(&mut self, text: &str, now: Instant) {
        let frame = match ServerFrame::decode(text, &self.config.limits) {
            Ok(frame) => frame,
            Err(error) => return self.warn(Warning::BadFrame(error)),
        };
        match frame {
            ServerFrame::Ping => self.pong(),
            ServerFrame::Event(event) => self.on_event(&event, text, now),
            ServerFrame::Output(output) => {
                let output = output.to_shared(&FrameCopy::of(text));
                self.on_output(output, text.len());
            }
            ServerFrame::Connected(frame) => {
                let frame = frame.to_shared(&FrameCopy::of(text));
                self.on_connected(frame, text.len(), now);
            }
            ServerFrame::Error(error) => {
                let error = error.to_shared(&FrameCopy::of(text));
                self.on_error(error, text.len());
            }
            ServerFrame::RuntimeInputAck(ack) => {
                let id = SharedStr::from(&*ack.id);
                let asked = self.asked.prompt_answered(Kind::Interjection, Kind::Prompt);
                let queued = Reply::Input(Taken::Queued { id });
                self.reply("RUNTIME_INPUT_ACK", asked, Ok(queued), text.len());
                self.settle_state();
            }
            ServerFrame::OnboardRequired(frame) => {
                if matches!(self.state, ClientState::Ready | ClientState::Running) {
                    return self.unexpected("ONBOARD_REQUIRED");
                }
                let frame = frame.to_shared(&FrameCopy::of(text));
                self.state = ClientState::AwaitOnboarding;
                self.onboarded = false;
                self.timers.stop(Timer::Connect);
                self.timers.stop(Timer::Onboarded);
                self.push(ClientEvent::OnboardRequired(frame), text.len());
            }
            ServerFrame::OnboardSuccess(frame) => {
                let frame = frame.to_shared(&FrameCopy::of(text));
                self.on_onboarded(frame, text.len(), now);
            }
            ServerFrame::SessionStatus(status) => {
                let status = status.to_shared(&FrameCopy::of(text));
                let asked = self.status_answered();
                let reply = Reply::Status(status);
                self.reply("SESSION_STATUS", asked, Ok(reply), text.len());
            }
            ServerFrame::AdminResult(result) => {
                let result = result.to_shared(&FrameCopy::of(text));
                let asked = self.asked.answered(Kind::Admin);
                self.reply("ADMIN_RESULT", asked, Ok(Reply::Admin(result)), text.len());
            }
            ServerFrame::Unknown(unknown) => {
                let other = OtherFrame::copied(&unknown, text);
                self.push(ClientEvent::Unknown(other), text.len());
            }
        }
    }

    fn on_connected(&mut self, frame: Connected, bytes: usize, now: Instant) {
        match self.state {
            ClientState::AwaitConnected | ClientState::AwaitOnboarding => {}
            _ => return self.unexpected("CONNECTED"),
        }
        self.timers.stop(Timer::Connect);
        self.timers.stop(Timer::Onboarded);
        self.onboarded = false;
        self.state = ClientState::Ready;
        self.session_id = Some(SharedStr::from(frame.session_id.as_str()));
        self.run = frame.status == SessionState::Running;
        if self.run {
            self.await_replay(now);
        }
        self.settle_state();
        self.push(ClientEvent::Connected(frame), bytes);
    }

    fn on_onboarded(&mut self, frame: OnboardSuccess, bytes: usize, now: Instant) {
        if self.state == ClientState::AwaitOnboarding {
            self.state = ClientState::AwaitConnected;
            self.onboarded = true;
            let patience = self.config.onboarded_timeout;
            self.timers.set(Timer::Onboarded, later(now, patience));
        }
        let asked = self.asked.answered(Kind::Onboarding);
        self.reply("ONBOARD_SUCCESS", asked, Ok(Reply::Onboarded(frame)), bytes);
    }

    fn on_event(&mut self, event: &BorrowedEvent<'_>, text: &str, now: Instant) {
        if !matches!(self.state, ClientState::Ready | ClientState::Running) {
            return self.unexpected("event");
        }
        if self.begins_run(&event.kind) {
            self.begin_run();
        }
        if self.timers.get(Timer::Replay).is_some() {
            self.await_replay(now);
        }
        if matches!(event.kind, EventKind::SessionSync(_)) && !self.config.session_sync {
            return;
        }
        let copy = FrameCopy::of(text);
        let step = Step {
            event: event.to_shared(&copy),
            frame: copy.whole_json(),
        };
        self.push(ClientEvent::Step(step), text.len());
    }

    /// Whether this is the first event of a run. Hosts say some things between two runs, too.
    fn begins_run<S, J>(&self, kind: &EventKind<S, J>) -> bool {
        match kind {
            EventKind::UserInput(input) => !self.run && !input.runtime_input,
            EventKind::ModeChanged(_) | EventKind::SessionSync(_) | EventKind::Other(_) => false,
            _ => !self.run && self.asked.awaits_start(),
        }
    }

    fn begin_run(&mut self) {
        self.run = true;
        if let Some(asked) = self.asked.prompt_answered(Kind::Prompt, Kind::Interjection) {
            self.reply("", Some(asked), Ok(Reply::Input(Taken::Started)), 0);
        }
        self.settle_state();
    }

    fn on_output(&mut self, output: Output, bytes: usize) {
        if !matches!(self.state, ClientState::Ready | ClientState::Running) {
            return self.unexpected("OUTPUT");
        }
        if !self.run && self.asked.awaits_start() {
            // A run whose host shows no steps.
            self.begin_run();
        }
        self.end_run();
        self.push(ClientEvent::RunEnded(Ok(output)), bytes);
    }

    fn on_error(&mut self, error: ErrorFrame, bytes: usize) {
        match self.state {
            ClientState::AwaitConnected => {
                let reason = about::refusal(&error);
                self.push(ClientEvent::Refused(error), bytes);
                return self.shut(reason, CloseFrame::NORMAL);
            }
            ClientState::AwaitOnboarding => {
                let asked = self.asked.answered(Kind::Onboarding);
                return self.refuse(asked, error, bytes);
            }
            _ => {}
        }
        let is_out = error.message == AUTHENTICATE_FIRST;
        let asked = match about::about(&error, self.asked.awaits(Kind::Status)) {
            About::Input => self.asked.prompt_answered(Kind::Interjection, Kind::Prompt),
            // A prompt is older than the interjections behind it.
            About::OldestInput => self.asked.prompt_answered(Kind::Prompt, Kind::Interjection),
            About::Status => {
                self.answers_queries = false;
                self.status_answered()
            }
            About::Admin => self.asked.answered(Kind::Admin),
            About::Other => None,
            About::Signed if self.asked.awaits(Kind::Admin) => self.asked.answered(Kind::Admin),
            About::Answer => {
                let request_id = error.request_id.clone();
                return self.push(ClientEvent::AnswerRefused { request_id, error }, bytes);
            }
            About::Signed | About::Run if self.run => {
                self.end_run();
                let failed = CallError::Remote(error);
                return self.push(ClientEvent::RunEnded(Err(failed)), bytes);
            }
            // It failed before it showed a step.
            About::Signed | About::Run => {
                self.asked.prompt_answered(Kind::Prompt, Kind::Interjection)
            }
        };
        self.refuse(asked, error, bytes);
        self.settle_state();
        if is_out {
            // The host has removed the session, and takes nothing but a CONNECT.
            let message = AUTHENTICATE_FIRST.to_owned();
            let retryable = true;
            self.shut(
                CloseReason::Refused { message, retryable },
                CloseFrame::NORMAL,
            );
        }
    }

    /// A reply to a query has come: the host has what was sent before it.
    fn status_answered(&mut self) -> Option<Option<CallId>> {
        if let Some(query) = self.asked.first(Kind::Status) {
            self.answered.confirm(query);
        }
        self.asked.answered(Kind::Status)
    }

    /// What was asked is refused; if nothing was asked, it is a complaint about something else.
    fn refuse(&mut self, asked: Option<Option<CallId>>, error: ErrorFrame, bytes: usize) {
        match asked {
            None => self.push(ClientEvent::Complaint(error), bytes),
            Some(None) => {}
            Some(Some(id)) => {
                let result = Err(CallError::Remote(error));
                self.push(ClientEvent::Reply { id, result }, bytes);
            }
        }
    }

    /// What was asked is answered, unless whoever asked has gone.
    fn reply(
        &mut self,
        name: &'static str,
        asked: Option<Option<CallId>>,
        result: Result<Reply, CallError<ErrorFrame>>,
        bytes: usize,
    ) {
        match asked {
            None => self.unexpected(name),
            Some(None) => {}
            Some(Some(id)) => self.push(ClientEvent::Reply { id, result }, bytes),
        }
    }

    /// An agent is at work, or may be.
    pub(super) fn settle_state(&mut self) {
        if matches!(self.state, ClientState::Ready | ClientState::Running) {
            let working = self.run || self.asked.awaits_prompt();
            self.state = if working {
                ClientState::Running
            } else {
                ClientState::Ready
            };
        }
    }
}
