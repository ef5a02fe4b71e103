//! [`Message`]: what the user said, routed to a client.

use std::borrow::Cow;

use rpc_core::decode::{DecodeError, Field, FrameCopy, Members, SharedStr, Slot};
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use super::client::Envelope;

/// What the user said, routed to a client. SmartHole specification, *Routed Message*.
///
/// As JSON it is the whole frame.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Message<S = SharedStr> {
    /// Names the message in responses. Opaque.
    pub id: S,
    /// What the user said, without the prefix of direct routing.
    pub text: S,
    /// When the server made the message: ISO 8601, see [`timestamp::parse`](crate::timestamp::parse).
    pub timestamp: S,
    /// How it came here.
    pub metadata: Metadata<S>,
}

/// How a message came to a client.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Metadata<S = SharedStr> {
    /// How the user said it.
    pub input_method: InputMethod<S>,
    /// Whether the user named the client.
    pub direct_routed: bool,
    /// How sure the speech recognition is, from 0 to 1; for voice only.
    pub confidence: Option<f64>,
    /// Why the router chose this client.
    pub routing_reason: Option<S>,
}

/// How the user said something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum InputMethod<S = SharedStr> {
    /// Spoken.
    Voice,
    /// Typed. Also where a server does not say.
    #[default]
    Text,
    /// A way that this crate does not know.
    Other(S),
}

impl<S: AsRef<str>> InputMethod<S> {
    /// The word on the wire.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Voice => "voice",
            Self::Text => "text",
            Self::Other(word) => word.as_ref(),
        }
    }
}

impl<S> Message<S> {
    /// A typed message that a router chose this client for.
    pub fn new(id: impl Into<S>, text: impl Into<S>, timestamp: impl Into<S>) -> Self {
        Self {
            id: id.into(),
            text: text.into(),
            timestamp: timestamp.into(),
            metadata: Metadata::default(),
        }
    }

    /// Sets [`metadata`](Self::metadata).
    #[must_use]
    pub fn with_metadata(mut self, metadata: Metadata<S>) -> Self {
        self.metadata = metadata;
        self
    }
}

/// Typed, and not direct.
impl<S> Default for Metadata<S> {
    fn default() -> Self {
        Self {
            input_method: InputMethod::Text,
            direct_routed: false,
            confidence: None,
            routing_reason: None,
        }
    }
}

impl<S> Metadata<S> {
    /// Sets [`input_method`](Self::input_method).
    #[must_use]
    pub fn with_input_method(mut self, method: InputMethod<S>) -> Self {
        self.input_method = method;
        self
    }

    /// Sets [`direct_routed`](Self::direct_routed).
    #[must_use]
    pub fn with_direct_routed(mut self, direct: bool) -> Self {
        self.direct_routed = direct;
        self
    }

    /// Sets [`confidence`](Self::confidence).
    #[must_use]
    pub fn with_confidence(mut self, confidence: Option<f64>) -> Self {
        self.confidence = confidence;
        self
    }

    /// Sets [`routing_reason`](Self::routing_reason).
    #[must_use]
    pub fn with_routing_reason(mut self, reason: Option<S>) -> Self {
        self.routing_reason = reason;
        self
    }
}

impl Message<Cow<'_, str>> {
    /// A copy whose texts are pieces of one copy of the frame.
    #[must_use]
    pub fn to_shared(&self, copy: &FrameCopy<'_>) -> Message {
        let metadata = &self.metadata;
        Message {
            id: copy.str(&self.id),
            text: copy.str(&self.text),
            timestamp: copy.str(&self.timestamp),
            metadata: Metadata {
                input_method: match &metadata.input_method {
                    InputMethod::Voice => InputMethod::Voice,
                    InputMethod::Text => InputMethod::Text,
                    InputMethod::Other(word) => InputMethod::Other(copy.str(word)),
                },
                direct_routed: metadata.direct_routed,
                confidence: metadata.confidence,
                routing_reason: metadata.routing_reason.as_deref().map(|why| copy.str(why)),
            },
        }
    }

    /// A copy that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> Message<Cow<'static, str>> {
        fn own(text: Cow<'_, str>) -> Cow<'static, str> {
            Cow::Owned(text.into_owned())
        }
        let metadata = self.metadata;
        Message {
            id: own(self.id),
            text: own(self.text),
            timestamp: own(self.timestamp),
            metadata: Metadata {
                input_method: match metadata.input_method {
                    InputMethod::Voice => InputMethod::Voice,
                    InputMethod::Text => InputMethod::Text,
                    InputMethod::Other(word) => InputMethod::Other(own(word)),
                },
                direct_routed: metadata.direct_routed,
                confidence: metadata.confidence,
                routing_reason: metadata.routing_reason.map(own),
            },
        }
    }
}

#[derive(Default)]
pub(super) struct MessageMembers<'a> {
    id: Slot<Cow<'a, str>>,
    text: Slot<Cow<'a, str>>,
    timestamp: Slot<Cow<'a, str>>,
    metadata: Slot<MetadataMembers<'a>>,
}

impl<'a> Members<'a> for MessageMembers<'a> {
    fn member(&mut self, name: &str, field: Field<'_, 'a>) -> Result<(), DecodeError> {
        match name {
            "id" => field.id("id", &mut self.id),
            "text" => field.str("text", &mut self.text),
            "timestamp" => field.id("timestamp", &mut self.timestamp),
            "metadata" => field.object("metadata", &mut self.metadata),
            _ => field.skip(),
        }
    }
}

impl<'a> MessageMembers<'a> {
    pub(super) fn read(self) -> Result<Message<Cow<'a, str>>, DecodeError> {
        let metadata = self.metadata.take().unwrap_or_default();
        Ok(Message {
            id: self.id.require("id")?,
            text: self.text.require("text")?,
            timestamp: self.timestamp.require("timestamp")?,
            metadata: Metadata {
                input_method: match metadata.input_method.take() {
                    None => InputMethod::Text,
                    Some(word) if word == "text" => InputMethod::Text,
                    Some(word) if word == "voice" => InputMethod::Voice,
                    Some(word) => InputMethod::Other(word),
                },
                direct_routed: metadata.direct_routed.take().unwrap_or(false),
                confidence: metadata.confidence.take(),
                routing_reason: metadata.routing_reason.take(),
            },
        })
    }
}

#[derive(Default)]
struct MetadataMembers<'a> {
    input_method: Slot<Cow<'a, str>>,
    direct_routed: Slot<bool>,
    confidence: Slot<f64>,
    routing_reason: Slot<Cow<'a, str>>,
}

impl<'a> Members<'a> for MetadataMembers<'a> {
    fn member(&mut self, name: &str, field: Field<'_, 'a>) -> Result<(), DecodeError> {
        match name {
            "inputMethod" => field.str("inputMethod", &mut self.input_method),
            "directRouted" => field.bool("directRouted", &mut self.direct_routed),
            "confidence" => field.f64("confidence", &mut self.confidence),
            "routingReason" => field.str("routingReason", &mut self.routing_reason),
            _ => field.skip(),
        }
    }
}

/// The payload, for encoding.
struct Payload<'f, S>(&'f Message<S>);

impl<S: AsRef<str>> Serialize for Payload<'_, S> {
    fn serialize<W: Serializer>(&self, serializer: W) -> Result<W::Ok, W::Error> {
        let mut payload = serializer.serialize_struct("Message", 4)?;
        payload.serialize_field("id", self.0.id.as_ref())?;
        payload.serialize_field("text", self.0.text.as_ref())?;
        payload.serialize_field("timestamp", self.0.timestamp.as_ref())?;
        payload.serialize_field("metadata", &self.0.metadata)?;
        payload.end()
    }
}

impl<S: AsRef<str>> Serialize for Metadata<S> {
    fn serialize<W: Serializer>(&self, serializer: W) -> Result<W::Ok, W::Error> {
        let mut metadata = serializer.serialize_struct("Metadata", 4)?;
        metadata.serialize_field("inputMethod", self.input_method.as_str())?;
        metadata.serialize_field("directRouted", &self.direct_routed)?;
        // What is no number cannot be written as one.
        if let Some(confidence) = self.confidence.filter(|number| number.is_finite()) {
            metadata.serialize_field("confidence", &confidence)?;
        }
        if let Some(reason) = &self.routing_reason {
            metadata.serialize_field("routingReason", reason.as_ref())?;
        }
        metadata.end()
    }
}

/// Writes the whole frame.
impl<S: AsRef<str>> Serialize for Message<S> {
    fn serialize<W: Serializer>(&self, serializer: W) -> Result<W::Ok, W::Error> {
        Envelope::new("message", Payload(self)).serialize(serializer)
    }
}
