//! Handles the client's frames: reports them, or replies to them.

use rpc_core::json::{DecodeErrorKind, decode};
use rpc_core::{CloseFrame, CloseReason, DecodeError, Json};

use super::{Awaited, Phase, ServerConn, ServerEvent, Warning};
use crate::auth::AuthError;
use crate::error::{refusal, unknown_type};
use crate::frame::{AdminRequest, ClientFrame, ErrorFrame, Signed};
use crate::limits::{AUTHENTICATE_FIRST, INPUT_REFUSED, MAX_PAYLOAD_BYTES, PROMPT_REQUIRED};

impl ServerConn {
    pub(super) fn on_text(&mut self, text: &str) {
        if self.awaited.is_some() {
            return self.buffer(text);
        }
        let frame = match ClientFrame::decode(text, &self.config.limits) {
            Ok(frame) => frame,
            Err(error) => return self.object(&refusal(text, &error), error.into()),
        };
        let is_newcomer = self.is_newcomer;
        if !matches!(frame, ClientFrame::Pong) {
            self.is_newcomer = false;
        }
        let size = text.len();
        let payload = small(&frame).and_then(|signed| signed.payload.as_ref());
        let (payload, max) = (payload.map_or(0, |it| it.get().len()), MAX_PAYLOAD_BYTES);
        if payload > max {
            let error = DecodeErrorKind::TooLarge { size: payload, max };
            let error = DecodeError::new(error).under("payload");
            let why = AuthError::InvalidPayload(error.clone()).to_string();
            return self.object(&ErrorFrame::new(why), error.into());
        }
        let is_inside = matches!(self.phase, Phase::Inside);
        if self.signs_commands && is_inside && is_command(&frame) {
            return self.on_signed(text, frame);
        }
        match frame {
            ClientFrame::Pong => self.core.push_event(ServerEvent::Pong, 0),
            ClientFrame::Connect(connect) => {
                self.awaited = Some(Awaited::Connect {
                    connect: Box::new(connect.clone()),
                    size,
                });
                self.core.push_event(ServerEvent::Connect(connect), size);
            }
            ClientFrame::SessionQuery(query) => {
                self.core.push_event(ServerEvent::SessionQuery(query), size);
            }
            ClientFrame::Admin(request) => self.on_admin(request, size),
            ClientFrame::OnboardSubmit(submit) => match &self.phase {
                Phase::Gated { identity, .. } => {
                    let identity = *identity;
                    self.awaited = Some(Awaited::Onboard);
                    self.core
                        .push_event(ServerEvent::Onboard { identity, submit }, size);
                }
                Phase::Outside => self.not_connected("ONBOARD_SUBMIT"),
                _ => {
                    let error = ErrorFrame::new("onboarding is not required");
                    self.object(&error, Warning::NotGated);
                }
            },
            ClientFrame::Unknown { tag, .. } => {
                self.object(&unknown_type(&tag), Warning::UnknownType { tag });
            }
            ClientFrame::Input(input) => {
                let is_empty = |prompt: Option<&str>| prompt.is_none_or(str::is_empty);
                let has_no_prompt = is_empty(input.prompt.as_deref())
                    && is_empty(input.signed.text("prompt").as_deref());
                if has_no_prompt && is_newcomer {
                    let warning = ServerEvent::Warning(Warning::EmptyInput);
                    return self.core.push_event(warning, 0);
                }
                if !is_inside {
                    return self.not_connected("INPUT");
                }
                if has_no_prompt {
                    return self.object(&ErrorFrame::new(PROMPT_REQUIRED), Warning::NoPrompt);
                }
                self.awaited = Some(Awaited::Input);
                self.core.push_event(ServerEvent::Input(input), size);
            }
            command if is_inside => {
                if let Some(event) = event_of(command) {
                    self.core.push_event(event, size);
                }
            }
            command => self.not_connected(command.name()),
        }
    }

    /// Handles a command of a client that signs its commands. Only the payload counts; it must have
    /// a type, a recipient and a nonce. The application verifies the signature.
    fn on_signed(&mut self, text: &str, frame: ClientFrame) {
        let signed = match &frame {
            ClientFrame::Input(input) => Ok(input.signed.clone()),
            ClientFrame::Admin(request) => Ok(request.signed.clone()),
            _ => decode::<Signed>(text, &self.config.limits),
        };
        let signed = match signed {
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
        if let Some(why) = wrong {
            let mut error = ErrorFrame::new(why.to_string());
            if is_input {
                error = error.with_code(INPUT_REFUSED);
            }
            let tag = frame.name().into();
            return self.object(&error, Warning::Unsigned { tag, why });
        }
        let size = text.len();
        if let ClientFrame::Admin(request) = frame {
            // Verified in any case.
            return self.on_admin(request, size);
        }
        let payload = signed.payload.as_ref().map_or("{}", Json::get);
        let command = match ClientFrame::decode(payload, &self.config.limits) {
            Ok(command) => command,
            Err(error) => return self.object(&refusal(payload, &error), error.into()),
        };
        if let ClientFrame::Input(input) = &command
            && input.prompt.as_deref().is_none_or(str::is_empty)
        {
            return self.object(&ErrorFrame::new(PROMPT_REQUIRED), Warning::NoPrompt);
        }
        if let Some(command) = event_of(command) {
            let command = Box::new(command);
            self.awaited = Some(match is_input {
                true => Awaited::Input,
                false => Awaited::Command,
            });
            self.core
                .push_event(ServerEvent::Signed { signed, command }, size);
        }
    }

    fn on_admin(&mut self, request: AdminRequest, size: usize) {
        self.awaited = Some(Awaited::Command);
        self.core.push_event(ServerEvent::Admin(request), size);
    }

    fn not_connected(&mut self, tag: &str) {
        let error = ErrorFrame::new(AUTHENTICATE_FIRST);
        self.object(&error, Warning::NotConnected { tag: tag.into() });
    }

    /// Replies to a frame that is not reported.
    pub(super) fn object(&mut self, error: &ErrorFrame, warning: Warning) {
        let size = match &warning {
            Warning::UnknownType { tag } => tag.len(),
            _ => 0,
        };
        self.core.push_event(ServerEvent::Warning(warning), size);
        if self.core.send_json(error).is_err() {
            // The client asks and does not read the answers.
            self.shut(CloseReason::SlowConsumer, CloseFrame::POLICY);
        }
    }
}

/// Returns the signed part of a frame that has no contents, from whomever.
const fn small(frame: &ClientFrame) -> Option<&Signed> {
    match frame {
        ClientFrame::Connect(connect) => Some(&connect.signed),
        ClientFrame::OnboardSubmit(submit) => Some(&submit.signed),
        ClientFrame::Admin(request) => Some(&request.signed),
        _ => None,
    }
}

/// Returns whether a frame makes the server act on the sender's behalf.
const fn is_command(frame: &ClientFrame) -> bool {
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

/// Returns the event for a command; `None` for other frames.
fn event_of(command: ClientFrame) -> Option<ServerEvent> {
    Some(match command {
        ClientFrame::Input(input) => ServerEvent::Input(input),
        ClientFrame::Response(response) => ServerEvent::Response(response),
        ClientFrame::ModeChange(change) => ServerEvent::ModeChange(change),
        ClientFrame::PromptUpdate(update) => ServerEvent::PromptUpdate(update),
        ClientFrame::Interrupt => ServerEvent::Interrupt,
        _ => return None,
    })
}
