//! [`Input`]: a prompt, with what comes along with it.

use std::borrow::Cow;

use rpc_core::decode::{
    self, DecodeError, Field, FrameCopy, Members, RawJson, SharedJson, SharedStr, Slot,
};
use rpc_core::{Limits, Refused};
use serde::Serialize;

use super::body::Body;
use super::json::{Json, texts};
use super::keep::Keep;
use super::signed::Signed;
use crate::codec;

/// A prompt for the agent. ConnectOnion specification, *INPUT*.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename = "INPUT")]
#[non_exhaustive]
pub struct Input<S = SharedStr, J = SharedJson> {
    /// What the user says. Absent in broken frames only: a server answers `prompt required`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<S>,
    /// Images for the model: an array of data URLs, as it was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<J>,
    /// Files for the agent's tools: an array of [`Attachment`]s, as it was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<J>,
    /// What the client calls it. The known clients send one; it is never answered to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_id: Option<S>,
    /// The conversation, from clients before the specification's version, which hand it over here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<J>,
    /// A signature of its own, which newer clients send; it needs none.
    #[serde(flatten)]
    pub signed: Signed<S, J>,
}

impl Input {
    /// A prompt.
    pub fn new(prompt: impl Into<SharedStr>) -> Self {
        Self {
            prompt: Some(prompt.into()),
            images: None,
            files: None,
            input_id: None,
            session: None,
            signed: Signed::none(),
        }
    }

    /// Sets [`images`](Self::images): data URLs.
    ///
    /// # Errors
    /// None in practice: texts are JSON.
    pub fn with_images<I: AsRef<str>>(mut self, urls: &[I]) -> Result<Self, Refused> {
        let urls: Vec<&str> = urls.iter().map(AsRef::as_ref).collect();
        self.images = Some(codec::to_json(&urls)?);
        Ok(self)
    }

    /// Sets [`files`](Self::files).
    ///
    /// # Errors
    /// None in practice: texts are JSON.
    pub fn with_files<S: Serialize>(mut self, files: &[Attachment<S>]) -> Result<Self, Refused> {
        self.files = Some(codec::to_json(files)?);
        Ok(self)
    }
}

impl<S, J: Json> Input<S, J> {
    /// The images, as data URLs. At most [`Limits::max_items`].
    ///
    /// # Errors
    /// [`DecodeError`] if one is no string, or there are too many.
    pub fn images(&self, limits: &Limits) -> Result<Vec<Cow<'_, str>>, DecodeError> {
        texts(self.images.as_ref(), limits).map_err(|error| error.under("images"))
    }

    /// The files. At most [`Limits::max_items`].
    ///
    /// # Errors
    /// [`DecodeError`] if one has no name or no data, or there are too many.
    pub fn files(&self, limits: &Limits) -> Result<Vec<Attachment<Cow<'_, str>>>, DecodeError> {
        let files = self.files.as_ref().map_or("[]", Json::json);
        decode::parse_objects(files, limits, AttachmentMembers::attachment)
            .map_err(|error| error.under("files"))
    }
}

impl<'a> Input<Cow<'a, str>, RawJson<'a>> {
    pub(super) fn read(body: &Body<'a>) -> Result<Self, DecodeError> {
        Ok(Self {
            prompt: body.text_of("prompt")?,
            images: body.array("images")?,
            files: body.array("files")?,
            input_id: body.id("input_id")?,
            session: body.object("session")?,
            signed: Signed::read(body)?,
        })
    }

    pub(super) fn keep<K: Keep>(&self, how: &K) -> Input<K::Text, K::Json> {
        Input {
            prompt: how.texts(&self.prompt),
            images: how.jsons(&self.images),
            files: how.jsons(&self.files),
            input_id: how.texts(&self.input_id),
            session: how.jsons(&self.session),
            signed: self.signed.keep(how),
        }
    }

    /// A copy whose pieces share one copy of the frame.
    #[must_use]
    pub fn to_shared(&self, copy: &FrameCopy<'_>) -> Input {
        self.keep(copy)
    }
}

/// A file that comes along with a prompt. ConnectOnion specification, *File Upload Protocol*.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Attachment<S = SharedStr> {
    /// What the client calls it. Never a path to write to.
    pub name: S,
    /// What is in it: a base64 data URL, or base64 alone.
    pub data: S,
}

impl<S> Attachment<S> {
    /// A file.
    pub fn new(name: impl Into<S>, data: impl Into<S>) -> Self {
        Self {
            name: name.into(),
            data: data.into(),
        }
    }
}

#[derive(Default)]
struct AttachmentMembers<'a> {
    name: Slot<Cow<'a, str>>,
    data: Slot<Cow<'a, str>>,
}

impl<'a> Members<'a> for AttachmentMembers<'a> {
    fn member(&mut self, name: &str, field: Field<'_, 'a>) -> Result<(), DecodeError> {
        match name {
            "name" => field.str("name", &mut self.name),
            "data" => field.str("data", &mut self.data),
            _ => field.skip(),
        }
    }
}

impl<'a> AttachmentMembers<'a> {
    fn attachment(self) -> Result<Attachment<Cow<'a, str>>, DecodeError> {
        Ok(Attachment {
            name: self.name.require("name")?,
            data: self.data.require("data")?,
        })
    }
}
