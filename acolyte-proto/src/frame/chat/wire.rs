//! How a [`ChatRequest`] is read and written.

use std::borrow::Cow;

use rpc_core::Limits;
use rpc_core::decode::{self, DecodeError, DecodeErrorKind, Field, Members, RawJson, Reader, Slot};
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use super::{ChatRequest, RequestFault, Skill};
use crate::id::{Id, Kind};
use crate::limits::{MAX_HISTORY, MAX_ITEMS};
use crate::wire::{again, text};

/// The members of a request. On a WebSocket they are read strictly: no other members, no nulls, ids
/// of their form, no more than allowed. Over HTTP they are not.
#[derive(Default)]
struct Body<'a, const STRICT: bool> {
    message: Slot<Cow<'a, str>>,
    history: Slot<Vec<RawJson<'a>>>,
    model: Slot<Cow<'a, str>>,
    session_id: Slot<Cow<'a, str>>,
    resource_id: Slot<Cow<'a, str>>,
    active_skills: Slot<Vec<Skill<'a>>>,
    suggestions: Slot<Vec<Cow<'a, str>>>,
    workspace: Slot<Cow<'a, str>>,
}

impl<'a, const STRICT: bool> Members<'a> for Body<'a, STRICT> {
    fn member(&mut self, name: &str, field: Field<'_, 'a>) -> Result<(), DecodeError> {
        let id = |reader: &mut Reader<'a>| if STRICT { reader.str() } else { text(reader) };
        let max_history = if STRICT { MAX_HISTORY } else { MAX_ITEMS };
        match name {
            "message" => field.read("message", again(&mut self.message), Reader::str_lossy),
            "history" => field.read("history", again(&mut self.history), |history| {
                items(history, max_history, Reader::raw_or_null)
            }),
            "model" => field.read("model", again(&mut self.model), Reader::str_lossy),
            "sessionId" => field.read("sessionId", again(&mut self.session_id), id),
            "resourceId" => field.read("resourceId", again(&mut self.resource_id), id),
            "activeSkills" => field.read("activeSkills", again(&mut self.active_skills), |list| {
                items(list, MAX_ITEMS, Skill::read_strict)
            }),
            "suggestions" => field.read("suggestions", again(&mut self.suggestions), |list| {
                items(list, MAX_ITEMS, read_str)
            }),
            "workspace" => field.read("workspace", again(&mut self.workspace), Reader::str_lossy),
            _ if STRICT => field.refuse(),
            _ => field.skip(),
        }
    }
}

impl<'a, const STRICT: bool> Body<'a, STRICT> {
    fn request(self) -> Result<ChatRequest<'a>, DecodeError> {
        if STRICT {
            optional("sessionId", &self.session_id)?;
            optional("resourceId", &self.resource_id)?;
            optional("activeSkills", &self.active_skills)?;
            optional("suggestions", &self.suggestions)?;
            optional("workspace", &self.workspace)?;
        }
        let request = ChatRequest {
            message: self.message.require("message")?,
            history: self.history.require("history")?,
            model: self.model.require("model")?,
            session_id: read_id::<_, STRICT>("sessionId", self.session_id)?,
            resource_id: read_id::<_, STRICT>("resourceId", self.resource_id)?,
            active_skills: self.active_skills.take().unwrap_or_default(),
            suggestions: self.suggestions.take().unwrap_or_default(),
            workspace: self.workspace.take(),
        };
        if STRICT {
            request.validate()?;
        }
        Ok(request)
    }
}

/// A member that may be absent, which is not the same as null.
fn optional<T>(member: &'static str, slot: &Slot<T>) -> Result<(), DecodeError> {
    if slot.was_seen() && slot.get().is_none() {
        return Err(DecodeError::wrong_type(member, "a value other than null"));
    }
    Ok(())
}

fn read_id<K: Kind, const STRICT: bool>(
    member: &'static str,
    slot: Slot<Cow<'_, str>>,
) -> Result<Option<Id<K>>, DecodeError> {
    match slot.take().map(|text| Id::parse(&text)).transpose() {
        Ok(id) => Ok(id),
        Err(_) if STRICT => Err(DecodeError::bad_value(member, "an id of its form")),
        Err(_) => Ok(None),
    }
}

/// An array; `None` is null.
fn items<'a, T>(
    reader: &mut Reader<'a>,
    max: usize,
    mut item: impl FnMut(&mut Reader<'a>) -> Result<T, DecodeError>,
) -> Result<Option<Vec<T>>, DecodeError> {
    if reader.first_byte() == Some(b'n') {
        return reader.skip().map(|()| None);
    }
    let mut list = Vec::new();
    reader.items(max, |reader| {
        list.push(item(reader)?);
        Ok(())
    })?;
    Ok(Some(list))
}

fn read_str<'a>(reader: &mut Reader<'a>) -> Result<Cow<'a, str>, DecodeError> {
    match reader.str_lossy()? {
        Some(text) => Ok(text),
        None => Err(reader.fail(DecodeErrorKind::Mismatch)),
    }
}

impl<'a> ChatRequest<'a> {
    /// Decodes a request that stands for itself, as strictly as servers read it on a WebSocket: no
    /// other members, no null, ids of their form, and within the [limits](Self::validate).
    ///
    /// # Errors
    /// [`DecodeError`]; decoding it again fails again.
    pub fn decode(json: &'a str, limits: &Limits) -> Result<Self, DecodeError> {
        decode::object::<Body<'a, true>>(json, limits)?.request()
    }

    /// Decodes the body of a chat over HTTP, where known servers are not strict: other members are
    /// ignored, null counts as absent, an id of another form is left out, and texts may be long.
    ///
    /// # Errors
    /// [`DecodeError`] if `message`, `model` or the array `history` is absent, or a member has
    /// another type. Decoding it again fails again.
    pub fn decode_lax(json: &'a str, limits: &Limits) -> Result<Self, DecodeError> {
        decode::object::<Body<'a, false>>(json, limits)?.request()
    }

    /// As [`decode`](Self::decode), inside of another object; `None` is null.
    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Option<Self>, DecodeError> {
        let body = reader.object::<Body<'a, true>>()?;
        body.map(Body::request).transpose()
    }
}

impl From<RequestFault> for DecodeError {
    fn from(fault: RequestFault) -> Self {
        match fault {
            RequestFault::TooLong { member, .. } => Self::bad_value(member, "short enough"),
            RequestFault::TooMany { max, .. } => Self::new(DecodeErrorKind::TooManyItems { max }),
            RequestFault::EmptySkill { member } => Self::bad_value(member, "a text with contents"),
        }
    }
}

#[derive(Default)]
struct SkillMembers<'a> {
    name: Slot<Cow<'a, str>>,
    instructions: Slot<Cow<'a, str>>,
}

impl<'a> Members<'a> for SkillMembers<'a> {
    fn member(&mut self, name: &str, field: Field<'_, 'a>) -> Result<(), DecodeError> {
        match name {
            "name" => field.read("name", again(&mut self.name), text),
            "instructions" => field.read("instructions", again(&mut self.instructions), text),
            _ => field.skip(),
        }
    }
}

impl<'a> Skill<'a> {
    /// A skill; `None` for what is none.
    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Option<Self>, DecodeError> {
        if reader.first_byte() != Some(b'{') {
            return reader.skip().map(|()| None);
        }
        let members = reader.object::<SkillMembers<'a>>()?.unwrap_or_default();
        let parts = members.name.take().zip(members.instructions.take());
        Ok(parts.map(|(name, instructions)| Self { name, instructions }))
    }

    fn read_strict(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        match Self::read(reader)? {
            Some(skill) => Ok(skill),
            None => Err(reader.fail(DecodeErrorKind::Mismatch)),
        }
    }
}

/// What is absent is left out: servers refuse null.
impl Serialize for ChatRequest<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut to = serializer.serialize_struct("ChatRequest", 8)?;
        to.serialize_field("message", &self.message)?;
        to.serialize_field("history", &self.history)?;
        to.serialize_field("model", &self.model)?;
        if let Some(id) = &self.session_id {
            to.serialize_field("sessionId", id)?;
        }
        if let Some(id) = &self.resource_id {
            to.serialize_field("resourceId", id)?;
        }
        if !self.active_skills.is_empty() {
            to.serialize_field("activeSkills", &self.active_skills)?;
        }
        if !self.suggestions.is_empty() {
            to.serialize_field("suggestions", &self.suggestions)?;
        }
        if let Some(workspace) = &self.workspace {
            to.serialize_field("workspace", workspace)?;
        }
        to.end()
    }
}

impl Serialize for Skill<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut to = serializer.serialize_struct("Skill", 2)?;
        to.serialize_field("name", &self.name)?;
        to.serialize_field("instructions", &self.instructions)?;
        to.end()
    }
}
