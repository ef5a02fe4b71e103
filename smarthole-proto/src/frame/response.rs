//! [`Response`]: a client's answer to a message.

use rpc_core::{Json, Str, tagged, words};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::id::MessageId;

tagged! {
    /// A client's response to a message; there may be several to one message. SmartHole
    /// specification, *Response*.
    #[derive(Clone, Debug, PartialEq, Eq)]
    #[non_exhaustive]
    pub struct Response {
        /// The id of the message.
        "messageId" => pub message_id: MessageId,
        /// The answer.
        .. => pub answer: Answer,
    }
}

tagged! {
    /// A client's answer to a message. A server ignores unknown ones.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub enum Answer by "type" in "payload" {
        /// It accepts the message. The payload does not matter.
        "ack" => Ack = Json::EMPTY_OBJECT,
        /// It rejects the message.
        "reject" => Reject(Reject),
        /// A notification for the user.
        "notification" => Notification(Notification),
    }
}

/// Why a client rejects a message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Reject {
    /// For the router, which uses it to choose another client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Str>,
}

/// A notification for the user. SmartHole specification, *Notification*.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notification {
    /// The title; the client's name if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<Str>,
    /// The text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Str>,
    /// Its priority; normal if absent.
    #[serde(default, deserialize_with = "priority")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
}

words! {
    /// The priority of a notification. Exhaustive: the specification has these three, and any other
    /// makes a response invalid.
    #[derive(Default)]
    pub enum Priority {
        /// `low`.
        "low" => Low,
        /// `normal`.
        #[default]
        "normal" => Normal,
        /// `high`.
        "high" => High,
    }
}

fn priority<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Priority>, D::Error> {
    let word: Option<Str> = Deserialize::deserialize(from)?;
    let read = |word: Str| Priority::parse(&word).ok_or("expected low, normal or high");
    word.map(read).transpose().map_err(D::Error::custom)
}

impl Response {
    /// Creates an answer to this message.
    pub fn new(message_id: impl Into<MessageId>, answer: Answer) -> Self {
        Self {
            message_id: message_id.into(),
            answer,
        }
    }
}

impl Answer {
    /// Creates a rejection with or without a reason.
    #[must_use]
    pub const fn reject(reason: Option<Str>) -> Self {
        Self::Reject(Reject { reason })
    }
}

impl Notification {
    /// Creates a notification with this title and text.
    pub fn titled(title: impl Into<Str>, body: impl Into<Str>) -> Self {
        Self {
            title: Some(title.into()),
            ..Self::new(body)
        }
    }

    /// Creates a notification with this text, and the client's name as its title.
    pub fn new(body: impl Into<Str>) -> Self {
        Self {
            title: None,
            body: Some(body.into()),
            priority: None,
        }
    }

    /// Returns whether there is nothing to show: title and text are absent or empty.
    pub(crate) fn is_blank(&self) -> bool {
        let blank = |text: &Option<Str>| text.as_ref().is_none_or(|text| text.is_empty());
        blank(&self.title) && blank(&self.body)
    }
}
