//! [`Input`]: a prompt with its attachments.

use rpc_core::json::lenient::{
    optional_array, optional_id, optional_object, optional_verbatim_object,
};
use rpc_core::{DecodeError, Json, Limits, Str, members};
use serde::{Deserialize, Serialize};

use super::json::list;
use super::signed::Signed;

use crate::id::EventId;

members! {
    /// A prompt for the agent. ConnectOnion specification, *INPUT*.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(tag = "type", rename = "INPUT", from = "InputMembers")]
    pub struct Input {
        /// The user's words. Absent in malformed frames only: a server replies `prompt required`.
        pub prompt: Option<Str>,
        /// Images for the model: an array of data URLs, as it was sent.
        pub images: Option<Json>,
        /// Files for the agent's tools: an array of [`Attachment`]s, as it was sent.
        pub files: Option<Json>,
        /// The client's id for it. The known clients send one; no reply mentions it.
        pub input_id: Option<EventId>,
        /// The conversation, from clients before the specification's version, which send it here.
        pub session: Option<Json>,
        /// A signature, which newer clients send; it is not required.
        #[serde(flatten)]
        pub signed: Signed,
    }

    /// A file attached to a prompt. ConnectOnion specification, *File Upload Protocol*.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Attachment {
        /// The client's name for it. Never a path to write to.
        pub name: Str,
        /// Its contents: a base64 data URL, or base64 alone.
        pub data: Str,
    }

    /// All members in one object.
    #[derive(Deserialize)]
    struct InputMembers {
        prompt: Option<Str>,
        images: Option<Json> as "optional_array",
        files: Option<Json> as "optional_array",
        input_id: Option<EventId> as "optional_id",
        session: Option<Json> as "optional_object",
        payload: Option<Json> as "optional_verbatim_object",
        from: Option<Str>,
        signature: Option<Str>,
    }
}

impl From<InputMembers> for Input {
    fn from(read: InputMembers) -> Self {
        Self {
            prompt: read.prompt,
            images: read.images,
            files: read.files,
            input_id: read.input_id,
            session: read.session,
            signed: Signed {
                payload: read.payload,
                from: read.from,
                signature: read.signature,
            },
        }
    }
}

impl Input {
    /// Creates a prompt.
    pub fn new(prompt: impl Into<Str>) -> Self {
        Self {
            prompt: Some(prompt.into()),
            ..Self::default()
        }
    }

    /// Returns the images, as data URLs. At most [`Limits::max_items`].
    ///
    /// # Errors
    /// [`DecodeError`] if one is not a base64 data URL, or there are too many.
    pub fn images(&self, limits: &Limits) -> Result<Vec<Str>, DecodeError> {
        let images: Result<Vec<Str>, _> = list(self.images.as_ref(), limits);
        let images = images.map_err(|error| error.under("images"))?;
        match images.iter().all(|image| is_data_url(image)) {
            true => Ok(images),
            false => Err(DecodeError::bad_value(
                "images",
                "a list of base64 data URLs",
            )),
        }
    }

    /// Returns the files. At most [`Limits::max_items`].
    ///
    /// # Errors
    /// [`DecodeError`] if one has no name or no data, or there are too many.
    pub fn files(&self, limits: &Limits) -> Result<Vec<Attachment>, DecodeError> {
        list(self.files.as_ref(), limits).map_err(|error| error.under("files"))
    }
}

fn is_data_url(text: &str) -> bool {
    let head = text
        .split_once(',')
        .map(|(head, _)| head.to_ascii_lowercase());
    head.is_some_and(|head| head.starts_with("data:") && head.ends_with(";base64"))
}

impl Attachment {
    /// Creates an attachment.
    pub fn new(name: impl Into<Str>, data: impl Into<Str>) -> Self {
        Self {
            name: name.into(),
            data: data.into(),
        }
    }
}
