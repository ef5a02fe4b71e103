//! [`Frames`]: descriptions of SmartHole's frames.

use std::sync::{Arc, Mutex, PoisonError};

use rpc_core::Limits;
use rpc_core::net::Direction;
use smarthole_proto::frame::{
    Answer, ClientFrame, InputMethod, Message, RegistrationResponse, ServerFrame,
};
use smarthole_proto::validate;

use super::Describe;
use crate::router::Numbers;

/// A describer of a client's frames. Messages get numbers that are easier to follow than their ids;
/// clones share them, so that a message to several clients has one number for all.
#[derive(Clone, Debug, Default)]
pub struct Frames {
    numbers: Arc<Mutex<Numbers>>,
}

impl Describe for Frames {
    fn describe(&mut self, direction: Direction, text: &str) -> Option<String> {
        let limits = Limits::default();
        match direction {
            Direction::Out => self.said(&ClientFrame::decode(text, &limits).ok()?),
            Direction::In => self.heard(&ServerFrame::decode(text, &limits).ok()?),
        }
    }
}

impl Frames {
    fn number(&self, id: &str) -> u64 {
        let mut numbers = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        numbers.of(id)
    }

    pub(crate) fn said(&self, frame: &ClientFrame) -> Option<String> {
        match frame {
            ClientFrame::Registration(payload) => {
                let registration = validate::payload(payload.get()).ok()?;
                let (name, what) = (&registration.name, &registration.description);
                Some(format!("registers {name}: {what}"))
            }
            ClientFrame::Response(response) => {
                let number = self.number(&response.message_id);
                let what = answer(&response.answer);
                Some(format!("  #{number} {what}"))
            }
            _ => None,
        }
    }

    pub(crate) fn heard(&self, frame: &ServerFrame) -> Option<String> {
        match frame {
            ServerFrame::RegistrationResponse(response) => match response {
                RegistrationResponse::Accepted { message, .. } => {
                    Some(message.as_deref().unwrap_or("registered").to_owned())
                }
                RegistrationResponse::Refused { code, message } => {
                    let code = code.as_ref().map_or("no code", |code| code.name());
                    let message = message.as_deref().unwrap_or_default();
                    Some(format!("refused, {code}: {message}"))
                }
                _ => None,
            },
            ServerFrame::Message(message) => Some(self.message(message)),
            _ => None,
        }
    }

    fn message(&self, message: &Message) -> String {
        let (number, metadata) = (self.number(&message.id), &message.metadata);
        let mut how = Vec::new();
        if !matches!(metadata.input_method, InputMethod::Text) {
            how.push(metadata.input_method.name());
        }
        if metadata.direct_routed {
            how.push("direct");
        }
        how.extend(metadata.routing_reason.as_deref());
        let how = match how.as_slice() {
            [] => String::new(),
            how => format!(" ({})", how.join(", ")),
        };
        format!("#{number} {:?}{how}", message.text)
    }
}

fn answer(answer: &Answer) -> String {
    match answer {
        Answer::Reject(reject) => match &reject.reason {
            Some(reason) => format!("reject: {reason}"),
            None => "reject".to_owned(),
        },
        Answer::Notification(shown) => {
            let parts = [shown.title.as_deref(), shown.body.as_deref()];
            let parts: Vec<_> = parts.into_iter().flatten().collect();
            format!("notification: {}", parts.join(": "))
        }
        other => other.tag().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(frames: &mut Frames, direction: Direction, text: &str) -> String {
        let described = frames.describe(direction, text);
        described.unwrap_or_else(|| format!("raw {text}"))
    }

    #[test]
    fn a_message_and_its_answers_read_like_a_conversation() {
        let mut frames = Frames::default();
        let registration =
            r#"{"type":"registration","payload":{"name":"notes","description":"I keep notes."}}"#;
        let accepted = r#"{"type":"registration_response","payload":{"success":true,"clientId":"c","message":"welcome"}}"#;
        let message = r#"{"type":"message","payload":{"id":"msg-1","text":"milk","timestamp":"2024-01-15T10:30:00.000Z","metadata":{"inputMethod":"voice","directRouted":false,"confidence":0.9,"routingReason":"it is a note"}}}"#;
        let direct = r#"{"type":"message","payload":{"id":"msg-2","text":"a \"b\"","timestamp":"2024-01-15T10:30:00.000Z","metadata":{"inputMethod":"text","directRouted":true}}}"#;
        let response = |id: &str, kind: &str, payload: &str| {
            format!(
                r#"{{"type":"response","payload":{{"messageId":"{id}","type":"{kind}","payload":{payload}}}}}"#
            )
        };
        for (direction, text, expected) in [
            (
                Direction::Out,
                registration,
                "registers notes: I keep notes.",
            ),
            (Direction::In, accepted, "welcome"),
            (Direction::In, message, r#"#1 "milk" (voice, it is a note)"#),
            (Direction::In, direct, r#"#2 "a \"b\"" (direct)"#),
            (Direction::Out, &response("msg-1", "ack", "{}"), "  #1 ack"),
            (
                Direction::Out,
                &response("msg-2", "reject", r#"{"reason":"no"}"#),
                "  #2 reject: no",
            ),
            (
                Direction::Out,
                &response("msg-1", "notification", r#"{"title":"T","body":"b"}"#),
                "  #1 notification: T: b",
            ),
            (Direction::In, "nonsense", "raw nonsense"),
        ] {
            assert_eq!(shown(&mut frames, direction, text), expected);
        }
    }

    #[test]
    fn a_refusal_shows_its_code() {
        let refused = r#"{"type":"registration_response","payload":{"success":false,"code":"DUPLICATE_NAME","message":"taken"}}"#;
        let mut frames = Frames::default();
        let expected = "refused, DUPLICATE_NAME: taken";
        assert_eq!(shown(&mut frames, Direction::In, refused), expected);
    }

    #[test]
    fn clones_share_their_numbers() {
        let frames = Frames::default();
        let other = frames.clone();
        assert_eq!(
            (frames.number("a"), other.number("b"), other.number("a")),
            (1, 2, 1)
        );
    }
}
