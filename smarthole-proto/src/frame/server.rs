//! [`ServerFrame`]: the answer to a registration, or a message.

use std::borrow::Cow;
use std::fmt;

use rpc_core::Limits;
use rpc_core::decode::{self, DecodeError, Field, Members, RawJson, Reader, Slot};
use serde::{Serialize, Serializer};

use super::Unknown;
use super::message::{Message, MessageMembers};
use super::registration::{RegistrationResponse, ResponseMembers};

/// One frame of the server, as a client reads it. SmartHole specification, *Messages*.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub enum ServerFrame<'a> {
    /// The answer to a registration.
    RegistrationResponse(RegistrationResponse<Cow<'a, str>>),
    /// A message for the client.
    Message(Message<Cow<'a, str>>),
    /// Anything else. A client ignores it.
    Unknown(Unknown<'a>),
}

/// The member `payload`: read if the type was known by then and is that of the hot frame, else raw.
enum Payload<'a> {
    Message(MessageMembers<'a>),
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
                let is_message = self.tag.get().is_some_and(|tag| tag == "message");
                field.read("payload", &mut self.payload, |payload| {
                    if is_message {
                        Ok(payload.object()?.map(Payload::Message))
                    } else {
                        Ok(Some(Payload::Raw(payload.raw_or_null()?)))
                    }
                })
            }
            _ => field.skip(),
        }
    }
}

impl<'a> ServerFrame<'a> {
    /// Decodes a frame.
    ///
    /// # Errors
    /// [`DecodeError`] if the text is no object, has no string `type`, or is of a known type with a
    /// wrong `payload`.
    pub fn decode(text: &'a str, limits: &Limits) -> Result<Self, DecodeError> {
        let mut fields = Fields::default();
        decode::object_into(text, limits, &mut fields)?;
        let tag = fields.tag.require("type")?;
        match &*tag {
            "message" => {
                let members = match fields.payload.require("payload")? {
                    Payload::Message(members) => members,
                    Payload::Raw(raw) => object(&raw, text)?,
                };
                let message = members.read().map_err(|error| error.under("payload"))?;
                Ok(Self::Message(message))
            }
            "registration_response" => {
                let members: ResponseMembers<'a> = match fields.payload.require("payload")? {
                    Payload::Raw(raw) => object(&raw, text)?,
                    // A payload is read as a message only behind that type.
                    Payload::Message(_) => return Err(DecodeError::missing("payload")),
                };
                let response = members.read().map_err(|error| error.under("payload"))?;
                Ok(Self::RegistrationResponse(response))
            }
            _ => Ok(Self::Unknown(Unknown::new(tag, RawJson::new(text)?))),
        }
    }

    /// A copy that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> ServerFrame<'static> {
        match self {
            Self::RegistrationResponse(response) => {
                ServerFrame::RegistrationResponse(response.into_owned())
            }
            Self::Message(message) => ServerFrame::Message(message.into_owned()),
            Self::Unknown(unknown) => ServerFrame::Unknown(unknown.into_owned()),
        }
    }
}

/// A payload of the frame `text` that must be an object.
fn object<'a, M: Members<'a> + Default>(
    raw: &RawJson<'a>,
    text: &'a str,
) -> Result<M, DecodeError> {
    let members = Reader::back_to(raw, text).object();
    members
        .map_err(|error| error.under("payload"))?
        .ok_or_else(|| DecodeError::missing("payload"))
}

/// Prints kind and id only: the rest is private text.
impl fmt::Debug for ServerFrame<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RegistrationResponse(response) => response.fmt(f),
            Self::Message(message) => f
                .debug_struct("Message")
                .field("id", &message.id)
                .finish_non_exhaustive(),
            Self::Unknown(unknown) => unknown.fmt(f),
        }
    }
}

impl Serialize for ServerFrame<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::RegistrationResponse(response) => response.serialize(serializer),
            Self::Message(message) => message.serialize(serializer),
            Self::Unknown(unknown) => unknown.serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{InputMethod, Metadata};

    fn decode(text: &str) -> Result<ServerFrame<'_>, DecodeError> {
        ServerFrame::decode(text, &Limits::default())
    }

    #[test]
    fn every_frame_of_the_specification_is_written_as_it_stands_there() {
        for text in [
            r#"{"type":"registration_response","payload":{"success":true,"clientId":"550e8400-e29b-41d4-a716-446655440000","message":"Client 'my-client' registered successfully"}}"#,
            r#"{"type":"registration_response","payload":{"success":false,"code":"DUPLICATE_NAME","message":"A client with name 'my-client' is already registered"}}"#,
            r#"{"type":"message","payload":{"id":"msg-550e8400-e29b-41d4-a716-446655440000","text":"Remember to buy groceries tomorrow","timestamp":"2024-01-15T10:30:00.000Z","metadata":{"inputMethod":"voice","directRouted":false,"confidence":0.95,"routingReason":"User wants to remember something"}}}"#,
            r#"{"type":"message","payload":{"id":"msg-1","text":"buy milk","timestamp":"2024-01-15T10:30:00.000Z","metadata":{"inputMethod":"text","directRouted":true}}}"#,
            r#"{"type":"later","payload":null}"#,
        ] {
            let frame = decode(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(serde_json::to_string(&frame).unwrap(), text);
            assert_eq!(frame.clone().into_owned(), frame);
        }
    }

    #[test]
    fn what_other_servers_send_or_leave_out_is_accepted() {
        for (text, written) in [
            (
                r#"{"type":"registration_response","payload":{"success":true,"clientId":null}}"#,
                r#"{"type":"registration_response","payload":{"success":true}}"#,
            ),
            (
                r#"{"payload":{"code":"LATER","success":false,"x":1},"type":"registration_response"}"#,
                r#"{"type":"registration_response","payload":{"success":false,"code":"LATER"}}"#,
            ),
            (
                r#"{"payload":{"id":7,"text":"a\nb","timestamp":"t","metadata":null},"type":"message"}"#,
                r#"{"type":"message","payload":{"id":"7","text":"a\nb","timestamp":"t","metadata":{"inputMethod":"text","directRouted":false}}}"#,
            ),
            (
                r#"{"type":"message","payload":{"id":"1","text":"","timestamp":"t","metadata":{"inputMethod":"touch","confidence":null,"routingReason":null,"source":"x"}}}"#,
                r#"{"type":"message","payload":{"id":"1","text":"","timestamp":"t","metadata":{"inputMethod":"touch","directRouted":false}}}"#,
            ),
        ] {
            let frame = decode(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(serde_json::to_string(&frame).unwrap(), written);
        }
    }

    #[test]
    fn a_known_frame_with_a_wrong_body_is_a_loud_error() {
        for (text, path) in [
            (r#"{"type":"message"}"#, &[][..]),
            (r#"{"type":"message","payload":null}"#, &[]),
            (r#"{"type":"message","payload":7}"#, &["payload"]),
            (
                r#"{"type":"message","payload":{"text":"a","timestamp":"t"}}"#,
                &["payload"],
            ),
            (
                r#"{"type":"message","payload":{"id":"1","text":7}}"#,
                &["payload", "text"],
            ),
            (
                r#"{"type":"message","payload":{"metadata":{"confidence":"x"}}}"#,
                &["payload", "metadata", "confidence"],
            ),
            (
                r#"{"type":"registration_response","payload":{}}"#,
                &["payload"],
            ),
            (
                r#"{"type":"registration_response","payload":{"success":"yes"}}"#,
                &["payload", "success"],
            ),
            (r#"{"type":7}"#, &["type"]),
        ] {
            assert_eq!(decode(text).unwrap_err().path(), path, "{text}");
        }
    }

    #[test]
    fn a_confidence_that_is_no_number_is_left_out() {
        let metadata = Metadata::<&str>::default()
            .with_input_method(InputMethod::Voice)
            .with_confidence(Some(f64::NAN));
        assert_eq!(
            serde_json::to_string(&metadata).unwrap(),
            r#"{"inputMethod":"voice","directRouted":false}"#
        );
    }
}
