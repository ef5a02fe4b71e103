//! [`ClientFrame`]: a registration or a response.

use std::borrow::Cow;
use std::fmt;

use rpc_core::Limits;
use rpc_core::decode::{self, DecodeError, Field, Members, RawJson, Reader, SharedStr, Slot};
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use super::Unknown;
use super::registration::Registration;
use super::response::{Response, ResponseMembers};

/// One frame of the client, as a server reads it. SmartHole specification, *Messages*.
///
/// A registration's payload is kept raw, because what is wrong with it has to be answered with a
/// code: [`validate::payload`](crate::validate::payload) reads it.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub enum ClientFrame<'a> {
    /// The client introduces itself.
    Registration {
        /// The payload, of whatever type.
        payload: RawJson<'a>,
    },
    /// The client responds to a message.
    Response(Response<Cow<'a, str>>),
    /// Anything else, a `message` too. A server ignores it.
    Unknown(Unknown<'a>),
}

/// The member `payload`: read if the type was known by then and is that of the hot frame, else raw.
enum Payload<'a> {
    Response(ResponseMembers<'a>),
    Raw(RawJson<'a>),
}

#[derive(Default)]
struct Fields<'a> {
    tag: Slot<Cow<'a, str>>,
    payload: Slot<Payload<'a>>,
}

impl<'a> Members<'a> for Fields<'a> {
    fn member(&mut self, name: &str, field: Field<'_, 'a>) -> Result<(), DecodeError> {
        match name {
            "type" => field.str("type", &mut self.tag),
            "payload" => {
                let is_response = self.tag.get().is_some_and(|tag| tag == "response");
                field.read("payload", &mut self.payload, |payload| {
                    if is_response {
                        Ok(payload.object()?.map(Payload::Response))
                    } else {
                        Ok(Some(Payload::Raw(payload.raw_or_null()?)))
                    }
                })
            }
            _ => field.skip(),
        }
    }
}

impl<'a> ClientFrame<'a> {
    /// Decodes a frame. A server ignores a text that is none.
    ///
    /// # Errors
    /// [`DecodeError`] if the text is no object, has no string `type`, is a registration without a
    /// `payload`, or a response with a wrong one.
    pub fn decode(text: &'a str, limits: &Limits) -> Result<Self, DecodeError> {
        let mut fields = Fields::default();
        decode::object_into(text, limits, &mut fields)?;
        let tag = fields.tag.require("type")?;
        match &*tag {
            "registration" => match fields.payload.require("payload")? {
                Payload::Raw(payload) => Ok(Self::Registration { payload }),
                // A payload is read as a response only behind that type.
                Payload::Response(_) => Err(DecodeError::missing("payload")),
            },
            "response" => {
                let members = match fields.payload.require("payload")? {
                    Payload::Response(members) => members,
                    Payload::Raw(raw) => {
                        let members = Reader::back_to(&raw, text).object();
                        members
                            .map_err(|error| error.under("payload"))?
                            .ok_or_else(|| DecodeError::missing("payload"))?
                    }
                };
                let response = members.read(text).map_err(|error| error.under("payload"))?;
                Ok(Self::Response(response))
            }
            _ => Ok(Self::Unknown(Unknown::new(tag, RawJson::new(text)?))),
        }
    }

    /// A copy that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> ClientFrame<'static> {
        match self {
            Self::Registration { payload } => ClientFrame::Registration {
                payload: payload.into_owned(),
            },
            Self::Response(response) => ClientFrame::Response(response.into_owned()),
            Self::Unknown(unknown) => ClientFrame::Unknown(unknown.into_owned()),
        }
    }
}

/// Prints the kind only: the rest is private text.
impl fmt::Debug for ClientFrame<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Registration { .. } => f.write_str("Registration"),
            Self::Response(response) => f
                .debug_struct("Response")
                .field("message_id", &response.message_id)
                .field("type", &response.answer.name())
                .finish_non_exhaustive(),
            Self::Unknown(unknown) => unknown.fmt(f),
        }
    }
}

impl Serialize for ClientFrame<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Registration { payload } => {
                Envelope::new("registration", payload).serialize(serializer)
            }
            Self::Response(response) => response.serialize(serializer),
            Self::Unknown(unknown) => unknown.serialize(serializer),
        }
    }
}

impl Registration<SharedStr> {
    /// The whole frame, for encoding.
    pub fn frame(&self) -> impl Serialize {
        Envelope::new("registration", self)
    }
}

/// A frame, for encoding: `{"type", "payload"}`.
pub(super) struct Envelope<P> {
    tag: &'static str,
    payload: P,
}

impl<P> Envelope<P> {
    pub(super) const fn new(tag: &'static str, payload: P) -> Self {
        Self { tag, payload }
    }
}

impl<P: Serialize> Serialize for Envelope<P> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut frame = serializer.serialize_struct("Frame", 2)?;
        frame.serialize_field("type", self.tag)?;
        frame.serialize_field("payload", &self.payload)?;
        frame.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Answer;

    fn decode(text: &str) -> Result<ClientFrame<'_>, DecodeError> {
        ClientFrame::decode(text, &Limits::default())
    }

    #[test]
    fn every_frame_of_the_specification_is_written_as_it_stands_there() {
        for text in [
            r#"{"type":"registration","payload":{"name":"my-client","description":"I handle task management and to-do lists.","version":"1.0.0","capabilities":["tasks","reminders"]}}"#,
            r#"{"type":"response","payload":{"messageId":"msg-1","type":"ack","payload":{}}}"#,
            r#"{"type":"response","payload":{"messageId":"msg-1","type":"reject","payload":{"reason":"I only handle notes, not calendar events"}}}"#,
            r#"{"type":"response","payload":{"messageId":"msg-1","type":"reject","payload":{}}}"#,
            r#"{"type":"response","payload":{"messageId":"msg-1","type":"notification","payload":{"title":"Note Saved","body":"Your note has been saved to the daily journal.","priority":"normal"}}}"#,
            r#"{"type":"response","payload":{"messageId":"msg-1","type":"notification","payload":{}}}"#,
            r#"{"type":"response","payload":{"messageId":"msg-1","type":"later","payload":[1,{"a":null}]}}"#,
            r#"{"type":"later","payload":{"x":[1.50]},"more":null}"#,
        ] {
            let frame = decode(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(serde_json::to_string(&frame).unwrap(), text);
            assert_eq!(frame.clone().into_owned(), frame);
        }
    }

    #[test]
    fn a_registration_leaves_out_what_it_does_not_say() {
        let registration = Registration::new("a", "d");
        assert_eq!(
            serde_json::to_string(&registration.frame()).unwrap(),
            r#"{"type":"registration","payload":{"name":"a","description":"d"}}"#
        );
        let registration = registration.with_version("1").with_capability("x");
        assert_eq!(
            serde_json::to_string(&registration.frame()).unwrap(),
            r#"{"type":"registration","payload":{"name":"a","description":"d","version":"1","capabilities":["x"]}}"#
        );
    }

    #[test]
    fn the_payload_may_come_before_its_type() {
        for payload in [
            r#"{"messageId":"m","type":"ack","payload":{}}"#,
            r#"{"payload":{"reason":"no"},"messageId":"m","type":"reject"}"#,
            r#"{"type":"notification","messageId":"m","payload":{"body":"a\nb","x":1}}"#,
        ] {
            let before = format!(r#"{{"payload":{payload},"type":"response"}}"#);
            let behind = format!(r#"{{"type":"response","payload":{payload},"x":[1]}}"#);
            let (before, behind) = (decode(&before).unwrap(), decode(&behind).unwrap());
            assert_eq!(before, behind);
        }
    }

    #[test]
    fn what_original_clients_send_is_accepted() {
        for (payload, answer) in [
            (r#"{"messageId":"m","type":"ack"}"#, Answer::Ack),
            (
                r#"{"messageId":"m","type":"ack","payload":null}"#,
                Answer::Ack,
            ),
            (
                r#"{"messageId":"m","type":"ack","payload":[]}"#,
                Answer::Ack,
            ),
            (
                r#"{"messageId":"m","type":"ack","payload":{"a":1}}"#,
                Answer::Ack,
            ),
            (r#"{"messageId":"m","type":"ack","payload":7}"#, Answer::Ack),
            (
                r#"{"messageId":"m","type":"reject","payload":{"reason":null}}"#,
                Answer::reject(None),
            ),
        ] {
            let text = format!(r#"{{"type":"response","payload":{payload}}}"#);
            let ClientFrame::Response(response) = decode(&text).unwrap() else {
                panic!("no response");
            };
            assert_eq!((&*response.message_id, response.answer), ("m", answer));
        }
    }

    #[test]
    fn a_response_with_a_wrong_body_is_a_loud_error() {
        for (payload, path) in [
            ("null", &[][..]),
            ("7", &["payload"]),
            ("[]", &["payload"]),
            ("{}", &["payload"]),
            (r#"{"messageId":"m"}"#, &["payload"]),
            (r#"{"type":"ack"}"#, &["payload"]),
            (
                r#"{"messageId":["m"],"type":"ack"}"#,
                &["payload", "messageId"],
            ),
            (r#"{"messageId":"m","type":"reject"}"#, &["payload"]),
            (
                r#"{"messageId":"m","type":"reject","payload":null}"#,
                &["payload"],
            ),
            (
                r#"{"messageId":"m","type":"reject","payload":[]}"#,
                &["payload", "payload"],
            ),
            (
                r#"{"messageId":"m","type":"reject","payload":{"reason":7}}"#,
                &["payload", "payload", "reason"],
            ),
            (
                r#"{"messageId":"m","type":"notification","payload":{"title":7}}"#,
                &["payload", "payload", "title"],
            ),
            (
                r#"{"messageId":"m","type":"notification","payload":{"priority":"urgent"}}"#,
                &["payload", "payload", "priority"],
            ),
            (
                r#"{"messageId":"m","type":"notification","payload":{"priority":1}}"#,
                &["payload", "payload", "priority"],
            ),
        ] {
            let text = format!(r#"{{"type":"response","payload":{payload}}}"#);
            let error = decode(&text).unwrap_err();
            assert_eq!(error.path(), path, "{text}");
        }
    }

    #[test]
    fn a_text_without_a_type_or_payload_is_no_frame() {
        for text in [
            "",
            "null",
            "7",
            "[]",
            r#"["registration"]"#,
            "{}",
            r#"{"payload":{}}"#,
            r#"{"type":7,"payload":{}}"#,
            r#"{"type":"registration"}"#,
            r#"{"type":"response"}"#,
            r#"{"type":"ack","type":"ack"}"#,
            r#"{"type":"registration","payload":{}"#,
        ] {
            assert!(decode(text).is_err(), "{text}");
        }
        for payload in ["null", "7", r#""x""#, "[]"] {
            let text = format!(r#"{{"type":"registration","payload":{payload}}}"#);
            assert!(matches!(
                decode(&text),
                Ok(ClientFrame::Registration { .. })
            ));
        }
    }
}
