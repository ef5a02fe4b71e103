//! Frames of the client: what is handed out, and what is answered here.

use rpc_core::decode::{FrameCopy, SharedStr};
use rpc_core::{CloseFrame, CloseReason};

use super::{Awaited, ServerConn, ServerEvent, Stage, Warning};
use crate::error::{refusal, unknown_type};
use crate::frame::{ClientFrame, ErrorFrame};
use crate::limits::{AUTHENTICATE_FIRST, PROMPT_REQUIRED};

impl ServerConn {
    pub(super) fn on_text(&mut self, text: &str) {
        if self.awaited.is_some() {
            return self.hold(text);
        }
        let frame = match ClientFrame::decode(text, &self.config.limits) {
            Ok(frame) => frame,
            Err(error) => return self.object(&refusal(text, &error), error.into()),
        };
        let is_newcomer = self.is_newcomer;
        if !matches!(frame, ClientFrame::Pong) {
            self.is_newcomer = false;
        }
        let copy = || FrameCopy::of(text);
        let size = text.len();
        match frame {
            ClientFrame::Pong => self.events.push(ServerEvent::Pong, 0),
            ClientFrame::Connect(connect) => {
                let connect = connect.to_shared(&copy());
                self.awaited = Some(Awaited::Connect {
                    connect: Box::new(connect.clone()),
                    size,
                });
                self.events.push(ServerEvent::Connect { connect }, size);
            }
            ClientFrame::SessionQuery(query) => {
                let query = query.to_shared(&copy());
                self.events.push(ServerEvent::SessionQuery { query }, size);
            }
            ClientFrame::Admin(request) => {
                let request = request.to_shared(&copy());
                self.events.push(ServerEvent::Admin { request }, size);
            }
            ClientFrame::OnboardSubmit(submit) => match &self.stage {
                Stage::Gated { identity, .. } => {
                    let (identity, submit) = (*identity, submit.to_shared(&copy()));
                    self.awaited = Some(Awaited::Onboard);
                    self.events
                        .push(ServerEvent::Onboard { identity, submit }, size);
                }
                Stage::Outside => self.not_connected("ONBOARD_SUBMIT"),
                _ => {
                    let error = ErrorFrame::new("onboarding is not required");
                    self.object(&error, Warning::NotGated);
                }
            },
            ClientFrame::Unknown(unknown) => {
                let tag = SharedStr::from(&*unknown.tag);
                self.object(&unknown_type(&unknown), Warning::UnknownType { tag });
            }
            ClientFrame::Input(input) => {
                let is_empty = |prompt: Option<&str>| prompt.is_none_or(str::is_empty);
                let has_no_prompt = is_empty(input.prompt.as_deref())
                    && is_empty(input.signed.text("prompt").as_deref());
                if has_no_prompt && is_newcomer {
                    return self
                        .events
                        .push(ServerEvent::Warning(Warning::EmptyInput), 0);
                }
                if !matches!(self.stage, Stage::Inside) {
                    return self.not_connected("INPUT");
                }
                if has_no_prompt {
                    return self.object(&ErrorFrame::new(PROMPT_REQUIRED), Warning::NoPrompt);
                }
                let input = input.to_shared(&copy());
                self.awaited = Some(Awaited::Input);
                self.events.push(ServerEvent::Input { input }, size);
            }
            ClientFrame::Response(response) if self.is_inside(response.answer.name()) => {
                let response = response.to_shared(&copy());
                self.events.push(ServerEvent::Response { response }, size);
            }
            ClientFrame::ModeChange(change) if self.is_inside("mode_change") => {
                let change = change.to_shared(&copy());
                self.events.push(ServerEvent::ModeChange { change }, size);
            }
            ClientFrame::PromptUpdate(update) if self.is_inside("prompt_update") => {
                let update = update.to_shared(&copy());
                self.events.push(ServerEvent::PromptUpdate { update }, size);
            }
            ClientFrame::Interrupt if self.is_inside("INTERRUPT") => {
                self.events.push(ServerEvent::Interrupt, 0);
            }
            // Answered by `is_inside`.
            ClientFrame::Response(_)
            | ClientFrame::ModeChange(_)
            | ClientFrame::PromptUpdate(_)
            | ClientFrame::Interrupt => {}
        }
    }

    /// Whether the client is in; if not, it is told to come in first.
    fn is_inside(&mut self, tag: &'static str) -> bool {
        let is_inside = matches!(self.stage, Stage::Inside);
        if !is_inside {
            self.not_connected(tag);
        }
        is_inside
    }

    fn not_connected(&mut self, tag: &'static str) {
        let error = ErrorFrame::new(AUTHENTICATE_FIRST);
        self.object(&error, Warning::NotConnected { tag });
    }

    /// Answers a frame that is not handed out.
    pub(super) fn object(&mut self, error: &ErrorFrame, warning: Warning) {
        let size = match &warning {
            Warning::UnknownType { tag } => tag.len(),
            _ => 0,
        };
        self.events.push(ServerEvent::Warning(warning), size);
        if self.outbox.json(error).is_err() {
            // The client asks and does not read the answers.
            self.shut(CloseReason::SlowConsumer, CloseFrame::POLICY);
        }
    }
}
