//! [`Prompt`]: what a user has said, as a host keeps it from INPUT to the agent and in the storage.

use rpc_core::Str;
use rpc_core::json::lenient::or_default;
use serde::{Deserialize, Serialize};

use super::event::ConnId;
use crate::frame::ReceivedFile;
use crate::id::EventId;

/// A user's prompt, as a host keeps it. ConnectOnion specification, *INPUT*.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Prompt {
    /// The id of its `RUNTIME_INPUT_ACK`, and of the `user_input` event that reports when it was
    /// read, if it came during a run. The host makes it; empty before.
    pub id: EventId,
    /// The text; with files, it ends with a reminder of their paths.
    #[serde(rename = "prompt")]
    pub text: Str,
    /// Images, as data URLs.
    #[serde(default, deserialize_with = "or_default")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Str>,
    /// Attached files, and where they are saved. A storage has only what the text says of them.
    #[serde(skip)]
    pub files: Vec<ReceivedFile>,
    /// The connection that gets the reply; `None` once the prompt is acknowledged.
    #[serde(skip)]
    pub(crate) conn: Option<ConnId>,
}

impl Prompt {
    /// Creates a prompt from a text.
    pub fn new(text: impl Into<Str>) -> Self {
        Self {
            id: "".into(),
            text: text.into(),
            images: Vec::new(),
            files: Vec::new(),
            conn: None,
        }
    }

    /// Returns the bytes of the id, the text and the images.
    pub(crate) fn size(&self) -> usize {
        let images: usize = self.images.iter().map(|image| image.len()).sum();
        self.id.len() + self.text.len() + images
    }
}
