//! [`ClientFrame`]: a request.

use std::borrow::Cow;
use std::fmt;

use rpc_core::Limits;
use rpc_core::decode::{self, DecodeError, Field, Members, RawJson, Slot};
use serde::Serialize;
use serde::ser::SerializeStruct;
use serde_json::value::RawValue;

use super::call::{ArgsError, Call};
use crate::id::WireId;

/// A request of the client: a method, its arguments and the id that the answer will carry.
///
/// Encoding always writes all four members. Decoding takes missing or null `args` and `kwargs`
/// for empty, and a missing `callId` for a request that wants no answer.
#[derive(Clone)]
pub struct ClientFrame<'a> {
    method: Cow<'a, str>,
    args: Option<RawJson<'a>>,
    kwargs: Option<RawJson<'a>>,
    call_id: Option<WireId<'a>>,
    raw: Option<Cow<'a, str>>,
}

#[derive(Default)]
struct Fields<'a> {
    method: Slot<Cow<'a, str>>,
    args: Slot<RawJson<'a>>,
    kwargs: Slot<RawJson<'a>>,
    call_id: Slot<RawJson<'a>>,
}

impl<'a> Members<'a> for Fields<'a> {
    fn member(&mut self, name: &str, field: Field<'_, 'a>) -> Result<(), DecodeError> {
        match name {
            "method" => field.str("method", &mut self.method),
            "args" => field.raw_array("args", &mut self.args),
            "kwargs" => field.raw_object("kwargs", &mut self.kwargs),
            "callId" => field.raw("callId", &mut self.call_id),
            _ => field.skip(),
        }
    }
}

impl<'a> ClientFrame<'a> {
    /// A request with raw arguments. `None` means empty.
    ///
    /// # Errors
    /// [`DecodeError`] if `args` is no array or `kwargs` no object.
    pub fn new(
        method: impl Into<Cow<'a, str>>,
        args: Option<&'a RawValue>,
        kwargs: Option<&'a RawValue>,
        call_id: Option<WireId<'a>>,
    ) -> Result<Self, DecodeError> {
        if args.is_some_and(|args| !args.get().starts_with('[')) {
            return Err(DecodeError::wrong_type("args", "an array"));
        }
        if kwargs.is_some_and(|kwargs| !kwargs.get().starts_with('{')) {
            return Err(DecodeError::wrong_type("kwargs", "an object"));
        }
        Ok(Self {
            method: method.into(),
            args: args.map(RawJson::from),
            kwargs: kwargs.map(RawJson::from),
            call_id,
            raw: None,
        })
    }

    /// Decodes a request. A server ignores a text that is none.
    ///
    /// # Errors
    /// [`DecodeError`] if the text is no object, has no string `method`, or a member has the wrong
    /// type. The arguments' own types are checked by [`call`](Self::call).
    pub fn decode(text: &'a str, limits: &Limits) -> Result<Self, DecodeError> {
        let fields: Fields<'a> = decode::object(text, limits)?;
        Ok(Self {
            method: fields.method.require("method")?,
            args: fields.args.take(),
            kwargs: fields.kwargs.take(),
            call_id: fields.call_id.take().map(WireId::new).transpose()?,
            raw: Some(Cow::Borrowed(text)),
        })
    }

    /// The method's name.
    #[must_use]
    pub fn method(&self) -> &str {
        &self.method
    }

    /// The positional arguments, a JSON array.
    #[must_use]
    pub fn args(&self) -> &str {
        self.args.as_ref().map_or("[]", |args| args.get())
    }

    /// The named arguments, a JSON object.
    #[must_use]
    pub fn kwargs(&self) -> &str {
        self.kwargs.as_ref().map_or("{}", |kwargs| kwargs.get())
    }

    /// The id to answer to; `None` if no answer is wanted.
    #[must_use]
    pub const fn call_id(&self) -> Option<&WireId<'a>> {
        self.call_id.as_ref()
    }

    /// The text that the frame was decoded from, with members that the type does not hold.
    #[must_use]
    pub fn raw(&self) -> Option<&str> {
        self.raw.as_deref()
    }

    /// The call with typed arguments. Arguments may come by position or by name.
    ///
    /// # Errors
    /// [`ArgsError`] if a known method has too many, too few or wrong arguments. Its text is fit
    /// for the answer.
    pub fn call(&self) -> Result<Call<'_>, ArgsError> {
        Call::read(self)
    }

    /// A copy that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> ClientFrame<'static> {
        ClientFrame {
            method: Cow::Owned(self.method.into_owned()),
            args: self.args.map(RawJson::into_owned),
            kwargs: self.kwargs.map(RawJson::into_owned),
            call_id: self.call_id.map(WireId::into_owned),
            raw: self.raw.map(|raw| Cow::Owned(raw.into_owned())),
        }
    }
}

/// Equal if what encoding would write is equal.
impl PartialEq for ClientFrame<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.method == other.method
            && self.args() == other.args()
            && self.kwargs() == other.kwargs()
            && self.call_id == other.call_id
    }
}

/// Prints method and id only: arguments hold passwords and private text.
impl fmt::Debug for ClientFrame<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientFrame")
            .field("method", &self.method)
            .field("call_id", &self.call_id)
            .finish_non_exhaustive()
    }
}

impl Serialize for ClientFrame<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut frame = serializer.serialize_struct("ClientFrame", 4)?;
        frame.serialize_field("method", &self.method)?;
        match &self.args {
            Some(args) => frame.serialize_field("args", args)?,
            None => frame.serialize_field("args", &[(); 0])?,
        }
        match &self.kwargs {
            Some(kwargs) => frame.serialize_field("kwargs", kwargs)?,
            None => frame.serialize_field("kwargs", &crate::codec::NoKwargs {})?,
        }
        if let Some(call_id) = &self.call_id {
            frame.serialize_field("callId", call_id)?;
        }
        frame.end()
    }
}
