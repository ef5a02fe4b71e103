//! Frames of the client: what is handed out, and what is answered here.

use rpc_core::decode::{FrameCopy, SharedStr};
use rpc_core::{CloseFrame, CloseReason};

use super::{Awaited, ServerConn, ServerEvent, Stage, Warning};
use crate::auth::AuthError;
use crate::error::{refusal, unknown_type};
use crate::frame::{ClientFrame, ErrorFrame, Signed};
use crate::limits::{AUTHENTICATE_FIRST, INPUT_REFUSED, PROMPT_REQUIRED};

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
        let is_inside = matches!(self.stage, Stage::Inside);
        if self.signs_commands && is_inside && is_command(&frame) {
            return self.on_signed(text, &frame);
        }
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
                if !is_inside {
                    return self.not_connected("INPUT");
                }
                if has_no_prompt {
                    return self.object(&ErrorFrame::new(PROMPT_REQUIRED), Warning::NoPrompt);
                }
                self.awaited = Some(Awaited::Input);
                let input = input.to_shared(&copy());
                self.events.push(ServerEvent::Input { input }, size);
            }
            command if is_inside => {
                if let Some(event) = event_of(&command, &copy()) {
                    self.events.push(event, size);
                }
            }
            ClientFrame::Response(response) => self.not_connected(response.answer.name()),
            ClientFrame::ModeChange(_) => self.not_connected("mode_change"),
            ClientFrame::PromptUpdate(_) => self.not_connected("prompt_update"),
            ClientFrame::Interrupt => self.not_connected("INTERRUPT"),
        }
    }

    /// A command of a client that signs them: what counts is in the payload, and says for itself
    /// what it is, for whom, and that it is like no other. The signature is for the application to
    /// verify.
    fn on_signed(&mut self, text: &str, frame: &ClientFrame<'_>) {
        let signed = match Signed::of_frame(text, &self.config.limits) {
            Ok(signed) => signed,
            Err(error) => return self.object(&refusal(text, &error), error.into()),
        };
        let has = |name| signed.text(name).is_some_and(|text| !text.is_empty());
        let wrong = match &signed.payload {
            None => Some(AuthError::SignedCommandRequired),
            _ if signed.signature.is_none() => Some(AuthError::SignedCommandRequired),
            _ if !has("to") => Some(AuthError::WrongRecipient),
            _ if signed.text("type").as_deref() != Some(frame.name()) => {
                Some(AuthError::WrongCommand)
            }
            _ if !has("nonce") => Some(AuthError::NonceRequired),
            _ => None,
        };
        let is_input = matches!(frame, ClientFrame::Input(_));
        if let Some(wrong) = wrong {
            let mut error = ErrorFrame::new(wrong.to_string());
            if is_input {
                error = error.with_code(INPUT_REFUSED);
            }
            return self.object(&error, Warning::Unsigned(wrong));
        }
        let size = text.len();
        if let ClientFrame::Admin(request) = frame {
            // Verified in any case.
            let request = request.to_shared(&FrameCopy::of(text));
            return self.events.push(ServerEvent::Admin { request }, size);
        }
        let payload = signed
            .payload
            .as_ref()
            .map_or("{}", |payload| payload.get());
        let command = match ClientFrame::decode(payload, &self.config.limits) {
            Ok(command) => command,
            Err(error) => return self.object(&refusal(payload, &error), error.into()),
        };
        if let ClientFrame::Input(input) = &command
            && input.prompt.as_deref().is_none_or(str::is_empty)
        {
            return self.object(&ErrorFrame::new(PROMPT_REQUIRED), Warning::NoPrompt);
        }
        if let Some(command) = event_of(&command, &FrameCopy::of(payload)) {
            let signed = signed.to_shared(&FrameCopy::of(text));
            let command = Box::new(command);
            self.awaited = is_input.then_some(Awaited::Input);
            self.events
                .push(ServerEvent::Signed { signed, command }, size);
        }
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

/// Whether a frame makes the server do something in somebody's name.
const fn is_command(frame: &ClientFrame<'_>) -> bool {
    matches!(
        frame,
        ClientFrame::Input(_)
            | ClientFrame::Response(_)
            | ClientFrame::ModeChange(_)
            | ClientFrame::PromptUpdate(_)
            | ClientFrame::Interrupt
            | ClientFrame::Admin(_)
    )
}

/// What a command is for the application; `None` for other frames.
fn event_of(command: &ClientFrame<'_>, copy: &FrameCopy<'_>) -> Option<ServerEvent> {
    Some(match command {
        ClientFrame::Input(input) => ServerEvent::Input {
            input: input.to_shared(copy),
        },
        ClientFrame::Response(response) => ServerEvent::Response {
            response: response.to_shared(copy),
        },
        ClientFrame::ModeChange(change) => ServerEvent::ModeChange {
            change: change.to_shared(copy),
        },
        ClientFrame::PromptUpdate(update) => ServerEvent::PromptUpdate {
            update: update.to_shared(copy),
        },
        ClientFrame::Interrupt => ServerEvent::Interrupt,
        _ => return None,
    })
}
