//! [`Writer`] and [`Letter`]: the frames of one message, each encoded once.

use std::time::SystemTime;

use rpc_core::Text;
use rpc_core::decode::SharedStr;

use super::input::{HubError, Input};
use crate::codec;
use crate::frame::{InputMethod, Message, Metadata};
use crate::id::MessageId;
use crate::timestamp;
use crate::validate::trim;

/// More than everything but the text takes in a frame without a reason.
const ENVELOPE: usize = 1024;
/// No byte of a text takes more as JSON: `\\u001f`.
const LONGEST_ESCAPE: usize = 6;

/// Writes the frames of a message at one moment.
pub(super) struct Writer<'m> {
    id: &'m MessageId,
    input: &'m Input,
    timestamp: String,
    max: usize,
}

/// What a client gets.
#[derive(Clone)]
pub(super) struct Letter {
    pub(super) text: SharedStr,
    pub(super) direct: bool,
    pub(super) reason: Option<SharedStr>,
    pub(super) frame: Text,
}

impl<'m> Writer<'m> {
    pub(super) fn new(id: &'m MessageId, input: &'m Input, wall: SystemTime, max: usize) -> Self {
        Self {
            id,
            input,
            timestamp: timestamp::format(wall),
            max,
        }
    }

    /// Whether a frame with this text and without a reason is small enough.
    pub(super) fn check(&self, text: &str) -> Result<(), HubError> {
        let most = text.len().saturating_mul(LONGEST_ESCAPE) + ENVELOPE;
        if most + self.input.method.as_str().len() <= self.max {
            return Ok(());
        }
        self.frame(text, false, None).map(drop)
    }

    /// The letter to a client that the user named.
    pub(super) fn direct(&self, text: &str) -> Result<Letter, HubError> {
        Ok(Letter {
            frame: self.frame(text, true, None)?,
            text: text.into(),
            direct: true,
            reason: None,
        })
    }

    /// The letter to a client that the router chose: with its text and reason, as far as they say
    /// something and the frame gets not too large. With the user's own text alone it is not.
    pub(super) fn routed(
        &self,
        text: Option<&SharedStr>,
        reason: Option<&SharedStr>,
    ) -> Option<Letter> {
        let own = &self.input.text;
        let text = text.filter(|text| !trim(text).is_empty()).unwrap_or(own);
        let reason = reason.filter(|reason| !trim(reason).is_empty());
        let tries = [(text, reason), (text, None), (own, None)];
        tries.into_iter().find_map(|(text, reason)| {
            Some(Letter {
                frame: self.frame(text, false, reason).ok()?,
                text: text.clone(),
                direct: false,
                reason: reason.cloned(),
            })
        })
    }

    fn frame(
        &self,
        text: &str,
        direct: bool,
        reason: Option<&SharedStr>,
    ) -> Result<Text, HubError> {
        let method = match &self.input.method {
            InputMethod::Voice => InputMethod::Voice,
            InputMethod::Text => InputMethod::Text,
            InputMethod::Other(word) => InputMethod::Other(word.as_str()),
        };
        let metadata = Metadata::default()
            .with_input_method(method)
            .with_direct_routed(direct)
            .with_confidence(self.input.shown_confidence())
            .with_routing_reason(reason.map(SharedStr::as_str));
        let message = Message::<&str>::new(self.id.as_str(), text, self.timestamp.as_str());
        let too_large = |size| HubError::TooLarge {
            size,
            max: self.max,
        };
        // Texts and numbers are always JSON.
        let frame = codec::encode(&message.with_metadata(metadata)).map_err(|_| too_large(0))?;
        if frame.len() > self.max {
            return Err(too_large(frame.len()));
        }
        Ok(frame)
    }
}
