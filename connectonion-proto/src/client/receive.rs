//! Handles the host's frames, depending on the state of the connection.

use bytes::Bytes;
use rpc_core::{CallError, CallId, CloseFrame, CloseReason, Instant, Json, Text};

use super::error_target::{self, ErrorTarget};
use super::event::{CallValue, ClientEvent, Step, Taken, Warning};
use super::pending::Kind;
use super::questions::goes_on;
use super::{ClientConn, ClientState};
use crate::frame::{
    Connected, ErrorFrame, EventKind, OnboardSuccess, Output, ServerFrame, SessionState,
    StreamEvent,
};
use crate::limits::AUTHENTICATE_FIRST;

impl ClientConn {
    pub(super) fn on_text(&mut self, text: &str, now: Instant) {
        let keep = |frame: &ServerFrame| match frame {
            ServerFrame::Event(event) => match event.kind {
                EventKind::SessionSync(_) => self.config.session_sync,
                // It holds its text.
                EventKind::Unknown { .. } => false,
                _ => true,
            },
            _ => false,
        };
        let read = ServerFrame::decode_keeping(text, &self.config.limits, keep);
        let (frame, whole) = match read {
            Ok(read) => read,
            Err(error) => return self.warn(Warning::BadFrame(error)),
        };
        let size = text.len();
        match frame {
            ServerFrame::Ping => {
                // Without room for it, silence is what a host hears that does not read.
                let pong = Text::new(Bytes::from_static(br#"{"type":"PONG"}"#));
                let _ = self.core.send_text(pong.unwrap_or_default());
            }
            ServerFrame::Event(event) => self.on_event(event, whole, size, now),
            ServerFrame::Output(output) => self.on_output(output, size),
            ServerFrame::Connected(frame) => self.on_connected(frame, size, now),
            ServerFrame::Error(error) => self.on_error(error, size),
            ServerFrame::RuntimeInputAck(ack) => {
                let asked = self.pending.prompt_answered(Kind::Interjection);
                let queued = CallValue::Input(Taken::Queued { id: ack.id });
                self.reply("RUNTIME_INPUT_ACK", asked, Ok(queued), size);
                self.settle_state();
            }
            ServerFrame::OnboardRequired(frame) => {
                if matches!(self.state, ClientState::Ready | ClientState::Running) {
                    return self.unexpected("ONBOARD_REQUIRED");
                }
                self.state = ClientState::AwaitOnboarding;
                self.onboarded = false;
                self.core.stop_timer();
                self.push(ClientEvent::OnboardRequired(frame), size);
            }
            ServerFrame::OnboardSuccess(frame) => self.on_onboarded(frame, size, now),
            ServerFrame::SessionStatus(status) => {
                let asked = self.status_answered();
                let reply = CallValue::Status(status);
                self.reply("SESSION_STATUS", asked, Ok(reply), size);
            }
            ServerFrame::AdminResult(result) => {
                let asked = self.pending.answered(Kind::Admin);
                self.reply("ADMIN_RESULT", asked, Ok(CallValue::Admin(result)), size);
            }
            ServerFrame::Unknown { tag, raw } => {
                self.push(ClientEvent::Unknown { tag, raw }, size);
            }
        }
    }

    fn on_connected(&mut self, frame: Connected, bytes: usize, now: Instant) {
        match self.state {
            ClientState::AwaitConnected | ClientState::AwaitOnboarding => {}
            _ => return self.unexpected("CONNECTED"),
        }
        self.core.stop_timer();
        self.onboarded = false;
        self.state = ClientState::Ready;
        self.session_id = Some(frame.session_id.clone());
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
            self.connect_wanted = false;
            let timeout = self.config.onboarded_timeout;
            self.core.start_timer("onboarded", timeout, now);
        }
        let asked = self.pending.answered(Kind::Onboarding);
        let reply = CallValue::Onboarded(frame);
        self.reply("ONBOARD_SUCCESS", asked, Ok(reply), bytes);
    }

    fn on_event(&mut self, event: StreamEvent, whole: Option<Json>, size: usize, now: Instant) {
        if !matches!(self.state, ClientState::Ready | ClientState::Running) {
            return self.unexpected("event");
        }
        if self.begins_run(&event.kind) {
            self.begin_run();
        }
        if self.caught_up_at.is_some() {
            self.await_replay(now);
        }
        if matches!(event.kind, EventKind::SessionSync(_)) && !self.config.session_sync {
            return;
        }
        let frame = match &event.kind {
            EventKind::Unknown { raw, .. } => raw.clone(),
            _ => whole.unwrap_or_default(),
        };
        let step = Step {
            event,
            frame,
            answered: false,
            number: 0,
        };
        self.push(ClientEvent::Step(step), size);
    }

    /// Returns whether this is the first event of a run. Hosts send some events between runs, too.
    fn begins_run(&self, kind: &EventKind) -> bool {
        match kind {
            EventKind::UserInput(input) => !self.run && !input.runtime_input,
            kind => goes_on(kind) && !self.run && self.pending.awaits(Kind::Prompt),
        }
    }

    fn begin_run(&mut self) {
        self.run = true;
        if let Some(asked) = self.pending.prompt_answered(Kind::Prompt) {
            self.reply("", Some(asked), Ok(CallValue::Input(Taken::Started)), 0);
        }
        self.settle_state();
    }

    fn on_output(&mut self, output: Output, bytes: usize) {
        if !matches!(self.state, ClientState::Ready | ClientState::Running) {
            return self.unexpected("OUTPUT");
        }
        if !self.run && self.pending.awaits(Kind::Prompt) {
            // A run whose host shows no steps.
            self.begin_run();
        }
        self.end_run();
        self.push(ClientEvent::RunEnded(Ok(output)), bytes);
    }

    fn on_error(&mut self, error: ErrorFrame, bytes: usize) {
        match self.state {
            ClientState::AwaitConnected => {
                let reason = error_target::refusal(&error);
                self.push(ClientEvent::Refused(error), bytes);
                return self.shut(reason, CloseFrame::NORMAL);
            }
            ClientState::AwaitOnboarding => {
                let asked = self.pending.answered(Kind::Onboarding);
                return self.refuse(asked, error, bytes);
            }
            _ => {}
        }
        let is_out = error.message == AUTHENTICATE_FIRST;
        let asked = match error_target::error_target(&error, self.pending.awaits(Kind::Status)) {
            ErrorTarget::Input => self.pending.prompt_answered(Kind::Interjection),
            ErrorTarget::Status => {
                self.answers_queries = false;
                self.status_answered()
            }
            ErrorTarget::Admin => self.pending.answered(Kind::Admin),
            ErrorTarget::Other => None,
            ErrorTarget::Signed if self.pending.awaits(Kind::Admin) => {
                self.pending.answered(Kind::Admin)
            }
            ErrorTarget::Answer => {
                let request_id = error.request_id.clone();
                return self.push(ClientEvent::AnswerRefused { request_id, error }, bytes);
            }
            ErrorTarget::Signed | ErrorTarget::Run if self.run => {
                self.end_run();
                let failed = CallError::Remote(error);
                return self.push(ClientEvent::RunEnded(Err(failed)), bytes);
            }
            // A prompt is older than the interjections behind it. Or it failed before it showed a step.
            ErrorTarget::OldestInput | ErrorTarget::Signed | ErrorTarget::Run => {
                self.pending.prompt_answered(Kind::Prompt)
            }
        };
        self.refuse(asked, error, bytes);
        self.settle_state();
        if is_out {
            // The host has removed the session, and takes nothing but a CONNECT.
            let message = AUTHENTICATE_FIRST.to_owned();
            let retryable = true;
            let reason = CloseReason::Refused { message, retryable };
            self.shut(reason, CloseFrame::NORMAL);
        }
    }

    /// Handles the reply to a query: the host has everything sent before it.
    fn status_answered(&mut self) -> Option<Option<CallId>> {
        let query = self.pending.first(Kind::Status);
        let is_its =
            |(_, receipt, _): &(_, Option<CallId>, _)| receipt.is_some() && *receipt == query;
        if let Some(at) = self.answers.iter().position(is_its) {
            self.answers.drain(..=at);
        }
        self.pending.answered(Kind::Status)
    }

    /// Refuses a request; without one, reports the error as a complaint.
    fn refuse(&mut self, asked: Option<Option<CallId>>, error: ErrorFrame, bytes: usize) {
        match asked {
            None => self.push(ClientEvent::Complaint(error), bytes),
            asked => self.reply("ERROR", asked, Err(CallError::Remote(error)), bytes),
        }
    }

    /// Answers a request, unless it was cancelled.
    fn reply(
        &mut self,
        name: &'static str,
        asked: Option<Option<CallId>>,
        result: Result<CallValue, CallError<ErrorFrame>>,
        bytes: usize,
    ) {
        match asked {
            None => self.unexpected(name),
            Some(None) => {}
            Some(Some(id)) => self.push(ClientEvent::Reply { id, result }, bytes),
        }
    }

    /// Sets the state to running while an agent is running or may be, otherwise to ready.
    pub(super) fn settle_state(&mut self) {
        if matches!(self.state, ClientState::Ready | ClientState::Running) {
            let awaits = |kind| self.pending.awaits(kind);
            let working = self.run || awaits(Kind::Prompt) || awaits(Kind::Interjection);
            self.state = if working {
                ClientState::Running
            } else {
                ClientState::Ready
            };
        }
    }
}
