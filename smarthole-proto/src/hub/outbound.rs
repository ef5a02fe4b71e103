//! [`Writer`]: creates the messages of an input, each encoded once.

use std::time::SystemTime;

use rpc_core::{Str, Text};

use super::input::{HubError, Input};
use crate::codec;
use crate::frame::{Message, Metadata, ServerFrame};
use crate::id::MessageId;
use crate::timestamp;
use crate::validate::trim;

/// An upper limit for a frame without text and reason.
const ENVELOPE: usize = 1024;
/// No byte of a text takes more as JSON: `\\u001f`.
const LONGEST_ESCAPE: usize = 6;

/// Writes the messages of an input.
pub(super) struct Writer<'m> {
    id: &'m MessageId,
    input: &'m Input,
    timestamp: Str,
    max: usize,
}

/// A message for a client, and its frame.
#[derive(Clone)]
pub(super) struct OutboundMessage {
    pub(super) message: Message,
    pub(super) frame: Text,
}

impl<'m> Writer<'m> {
    pub(super) fn new(
        id: &'m MessageId,
        input: &'m Input,
        created: SystemTime,
        max: usize,
    ) -> Self {
        Self {
            id,
            input,
            timestamp: timestamp::format(created).into(),
            max,
        }
    }

    /// Checks that the frame with the user's own text is small enough.
    pub(super) fn check(&self) -> Result<(), HubError> {
        let most = self.input.text.len().saturating_mul(LONGEST_ESCAPE) + ENVELOPE;
        if most + self.input.method.name().len() <= self.max {
            return Ok(());
        }
        self.message(&self.input.text, false, None).map(drop)
    }

    /// Creates the message to a client that the user named.
    pub(super) fn direct(&self, text: &str) -> Result<OutboundMessage, HubError> {
        self.message(&text.into(), true, None)
    }

    /// Creates the message to a client that the router chose, with the router's text and reason
    /// unless they are blank or make the frame too large. With the user's own text alone the frame
    /// fits.
    pub(super) fn routed(
        &self,
        text: Option<&Str>,
        reason: Option<&Str>,
    ) -> Option<OutboundMessage> {
        let own = &self.input.text;
        let text = text.filter(|text| !trim(text).is_empty()).unwrap_or(own);
        let reason = reason.filter(|reason| !trim(reason).is_empty());
        let tries = [(text, reason), (text, None), (own, None)];
        tries
            .into_iter()
            .find_map(|(text, reason)| self.message(text, false, reason).ok())
    }

    fn message(
        &self,
        text: &Str,
        direct: bool,
        reason: Option<&Str>,
    ) -> Result<OutboundMessage, HubError> {
        let metadata = Metadata {
            input_method: self.input.method.clone(),
            direct_routed: direct,
            confidence: self.input.shown_confidence(),
            routing_reason: reason.cloned(),
        };
        let message = Message {
            metadata,
            ..Message::new(self.id, text, &self.timestamp)
        };
        let too_large = |size| HubError::TooLarge {
            size,
            max: self.max,
        };
        let frame = ServerFrame::Message(message.clone());
        // Texts and numbers are always JSON.
        let frame = codec::encode(&frame).map_err(|_| too_large(0))?;
        if frame.len() > self.max {
            return Err(too_large(frame.len()));
        }
        Ok(OutboundMessage { message, frame })
    }
}
