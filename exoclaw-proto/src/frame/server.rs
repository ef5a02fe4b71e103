//! [`ServerFrame`]: the hello, a refusal, an answer, or one step of a streamed answer.

use std::borrow::Cow;
use std::fmt;

use rpc_core::Limits;
use rpc_core::decode::{self, DecodeError, Field, LooseStr, Members, RawJson, Slot};
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use super::event::{BorrowedEvent, Data, StreamEvent};
use crate::error::readable;
use crate::limits::{AUTH_FAILED, AUTH_FAILED_CODE};

/// One frame of the server. Ids are texts; a number is read as its digits. Exoclaw specification,
/// *Response Format*.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub enum ServerFrame<'a> {
    /// The connection is ready.
    Hello(Hello<'a>),
    /// The token was refused; the server closes next.
    AuthFailed {
        /// The server's words: `auth_failed`.
        error: Cow<'a, str>,
        /// The server's code: 4001.
        code: Option<u64>,
    },
    /// A request has succeeded.
    Result {
        /// The request's id.
        id: Cow<'a, str>,
        /// The value, raw; may be null.
        result: RawJson<'a>,
    },
    /// A request has failed.
    Error {
        /// The request's id; `"0"` or none if it could not be read.
        id: Option<Cow<'a, str>>,
        /// The server's words.
        error: Cow<'a, str>,
    },
    /// One step of a streamed answer.
    Stream {
        /// The request's id.
        id: Cow<'a, str>,
        /// The step.
        event: BorrowedEvent<'a>,
    },
}

#[derive(Default)]
struct Fields<'a> {
    id: Slot<Cow<'a, str>>,
    event: Slot<Cow<'a, str>>,
    data: Slot<Data<'a>>,
    result: Slot<RawJson<'a>>,
    error: Slot<RawJson<'a>>,
    code: Slot<RawJson<'a>>,
    ok: Slot<LooseStr<'a>>,
    version: Slot<LooseStr<'a>>,
    extensions: Slot<RawJson<'a>>,
}

impl<'a> Members<'a> for Fields<'a> {
    fn member(&mut self, name: &str, field: Field<'_, 'a>) -> Result<(), DecodeError> {
        match name {
            "id" => field.id("id", &mut self.id),
            "event" => field.str("event", &mut self.event),
            "data" => {
                let event = self.event.get().map(|event| &**event);
                field.read("data", &mut self.data, |data| Data::read(event, data))
            }
            "result" => field.raw_or_null("result", &mut self.result),
            "error" => field.raw("error", &mut self.error),
            "code" => field.raw("code", &mut self.code),
            "ok" => field.loose_str("ok", &mut self.ok),
            "version" => field.loose_str("version", &mut self.version),
            "extensions" => field.raw("extensions", &mut self.extensions),
            _ => field.skip(),
        }
    }
}

impl<'a> ServerFrame<'a> {
    /// Decodes a frame. Its kind is told by the first of the members `event`, `error`, `result` and
    /// `ok` that is there (null is not, but for `result`).
    ///
    /// # Errors
    /// [`DecodeError`] if the text is no object, has none of these members, or a known event with
    /// wrong data.
    pub fn decode(text: &'a str, limits: &Limits) -> Result<Self, DecodeError> {
        let mut fields = Fields::default();
        decode::object_into(text, limits, &mut fields)?;
        if let Some(event) = fields.event.take() {
            let id = fields.id.require("id")?;
            let event = BorrowedEvent::new(event, fields.data.take(), text)?;
            return Ok(Self::Stream { id, event });
        }
        if let Some(error) = fields.error.take() {
            let id = fields.id.take();
            let error = readable(error);
            let code = fields.code.take().and_then(|code| code.get().parse().ok());
            let refused = error == AUTH_FAILED || code == Some(u64::from(AUTH_FAILED_CODE));
            return Ok(match id {
                None if refused => Self::AuthFailed { error, code },
                id => Self::Error { id, error },
            });
        }
        if let Some(result) = fields.result.take() {
            let id = fields.id.require("id")?;
            return Ok(Self::Result { id, result });
        }
        match fields.ok.get() {
            Some(LooseStr::Bool(true)) => Ok(Self::Hello(Hello {
                version: match fields.version.take() {
                    Some(LooseStr::Str(version)) => Some(version),
                    _ => None,
                },
                extensions: fields.extensions.take(),
                raw: Some(Cow::Borrowed(text)),
            })),
            Some(_) => Err(DecodeError::bad_value("ok", "true")),
            None => Err(DecodeError::missing("event")),
        }
    }

    /// The refusal of a token, as the specification has it.
    #[must_use]
    pub const fn auth_failed() -> ServerFrame<'static> {
        ServerFrame::AuthFailed {
            error: Cow::Borrowed(AUTH_FAILED),
            code: Some(AUTH_FAILED_CODE as u64),
        }
    }

    /// The id of the request that the frame belongs to.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        match self {
            Self::Hello(_) | Self::AuthFailed { .. } => None,
            Self::Result { id, .. } | Self::Stream { id, .. } => Some(id),
            Self::Error { id, .. } => id.as_deref(),
        }
    }

    /// A copy that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> ServerFrame<'static> {
        let text = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        match self {
            Self::Hello(hello) => ServerFrame::Hello(hello.into_owned()),
            Self::AuthFailed { error, code } => ServerFrame::AuthFailed {
                error: text(error),
                code,
            },
            Self::Result { id, result } => ServerFrame::Result {
                id: text(id),
                result: result.into_owned(),
            },
            Self::Error { id, error } => ServerFrame::Error {
                id: id.map(text),
                error: text(error),
            },
            Self::Stream { id, event } => ServerFrame::Stream {
                id: text(id),
                event: event.into_owned(),
            },
        }
    }
}

/// Prints kind and id only: the rest is private text.
impl fmt::Debug for ServerFrame<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, what) = match self {
            Self::Hello(hello) => return hello.fmt(f),
            Self::AuthFailed { .. } => return f.write_str("AuthFailed"),
            Self::Result { .. } => ("Result", None),
            Self::Error { .. } => ("Error", None),
            Self::Stream { event, .. } => ("Stream", Some(event.name())),
        };
        let mut frame = f.debug_struct(kind);
        frame.field("id", &self.id());
        if let Some(event) = what {
            frame.field("event", &event);
        }
        frame.finish_non_exhaustive()
    }
}

impl Serialize for ServerFrame<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Hello(hello) => hello.serialize(serializer),
            Self::AuthFailed { error, code } => {
                let mut frame = serializer.serialize_struct("AuthFailed", 2)?;
                frame.serialize_field("error", error)?;
                if let Some(code) = code {
                    frame.serialize_field("code", code)?;
                }
                frame.end()
            }
            Self::Result { id, result } => {
                let mut frame = serializer.serialize_struct("Result", 2)?;
                frame.serialize_field("id", id)?;
                frame.serialize_field("result", result)?;
                frame.end()
            }
            Self::Error { id, error } => {
                let mut frame = serializer.serialize_struct("Error", 2)?;
                if let Some(id) = id {
                    frame.serialize_field("id", id)?;
                }
                frame.serialize_field("error", error)?;
                frame.end()
            }
            Self::Stream { id, event } => StreamFrame { id, event }.serialize(serializer),
        }
    }
}

/// A step of a streamed answer, for encoding: `{"id", "event", "data"}`.
#[derive(Debug)]
pub(crate) struct StreamFrame<'f, I, S, J> {
    pub(crate) id: &'f I,
    pub(crate) event: &'f StreamEvent<S, J>,
}

impl<I: Serialize, S: AsRef<str>, J: Serialize> Serialize for StreamFrame<'_, I, S, J> {
    fn serialize<W: Serializer>(&self, serializer: W) -> Result<W::Ok, W::Error> {
        let mut frame = serializer.serialize_struct("Stream", 3)?;
        frame.serialize_field("id", self.id)?;
        self.event.write(&mut frame)?;
        frame.end()
    }
}

/// The first frame of a server that lets the client in: `{"ok":true,"version":"0.1.0"}`. Exoclaw
/// specification, *Connection Lifecycle*.
#[derive(Clone)]
pub struct Hello<'a> {
    version: Option<Cow<'a, str>>,
    extensions: Option<RawJson<'a>>,
    raw: Option<Cow<'a, str>>,
}

impl<'a> Hello<'a> {
    /// A hello of this version.
    pub fn new(version: impl Into<Cow<'a, str>>) -> Self {
        Self {
            version: Some(version.into()),
            extensions: None,
            raw: None,
        }
    }

    /// Names the methods that the server has beyond the four of the specification.
    #[must_use]
    pub fn with_extensions(mut self, methods: &[&str]) -> Self {
        // A list of texts is always JSON.
        self.extensions = serde_json::value::to_raw_value(methods)
            .ok()
            .map(RawJson::from);
        self
    }

    /// The version, if it is named.
    #[must_use]
    pub fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// The methods that the server has beyond the four of the specification. Not a part of the
    /// specification: servers of this crate name them when their extensions are switched on.
    #[must_use]
    pub fn extensions(&self) -> Vec<String> {
        let list = self.extensions.as_ref();
        list.and_then(|raw| serde_json::from_str(raw.get()).ok())
            .unwrap_or_default()
    }

    /// The text that the frame was decoded from, with members that the type does not hold.
    #[must_use]
    pub fn raw(&self) -> Option<&str> {
        self.raw.as_deref()
    }

    /// A copy that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> Hello<'static> {
        Hello {
            version: self.version.map(|version| Cow::Owned(version.into_owned())),
            extensions: self.extensions.map(RawJson::into_owned),
            raw: self.raw.map(|raw| Cow::Owned(raw.into_owned())),
        }
    }
}

/// Equal if what encoding would write is equal.
impl PartialEq for Hello<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.version == other.version && self.extensions == other.extensions
    }
}

impl fmt::Debug for Hello<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hello")
            .field("version", &self.version)
            .field("extensions", &self.extensions())
            .finish_non_exhaustive()
    }
}

impl Serialize for Hello<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut frame = serializer.serialize_struct("Hello", 3)?;
        frame.serialize_field("ok", &true)?;
        if let Some(version) = &self.version {
            frame.serialize_field("version", version)?;
        }
        if let Some(extensions) = &self.extensions {
            frame.serialize_field("extensions", extensions)?;
        }
        frame.end()
    }
}

#[cfg(test)]
mod tests {
    use rpc_core::decode::DecodeErrorKind;

    use super::*;

    fn decode(text: &str) -> ServerFrame<'_> {
        ServerFrame::decode(text, &Limits::default()).unwrap_or_else(|e| panic!("{text}: {e}"))
    }

    #[test]
    fn every_frame_of_the_specification_is_written_as_it_stands_there() {
        for text in [
            r#"{"ok":true,"version":"0.1.0"}"#,
            r#"{"error":"auth_failed","code":4001}"#,
            r#"{"id":"1","result":"pong"}"#,
            r#"{"id":"1","result":{"version":"0.1.0","plugins":2,"sessions":5}}"#,
            r#"{"id":"1","result":[{"name":"echo"},{"name":"telegram"}]}"#,
            r#"{"id":"1","error":"human-readable error message"}"#,
            r#"{"id":"2","event":"text","data":"Hello"}"#,
            r#"{"id":"2","event":"tool_use","data":{"id":"call_123","name":"echo","input":{"text":"hi"}}}"#,
            r#"{"id":"2","event":"tool_result","data":{"tool_use_id":"call_123","content":"hi","is_error":false}}"#,
            r#"{"id":"2","event":"usage","data":{"input_tokens":150,"output_tokens":42}}"#,
            r#"{"id":"2","event":"done"}"#,
            r#"{"id":"2","event":"error","data":"error message"}"#,
            r#"{"id":"2","event":"later","data":[1,{"a":null}]}"#,
            r#"{"id":"2","event":"later"}"#,
        ] {
            let frame = decode(text);
            assert_eq!(serde_json::to_string(&frame).unwrap(), text);
            assert_eq!(frame.clone().into_owned(), frame);
        }
    }

    #[test]
    fn nulls_and_numbers_are_accepted() {
        for (text, written) in [
            (
                r#"{"id":7,"result":"pong","error":null}"#,
                r#"{"id":"7","result":"pong"}"#,
            ),
            (
                r#"{"id":"1","result":null,"error":"no"}"#,
                r#"{"id":"1","error":"no"}"#,
            ),
            (
                r#"{"id":"1","result":null,"error":null}"#,
                r#"{"id":"1","result":null}"#,
            ),
            (
                r#"{"id":"1","error":{"code":1,"message":"no"}}"#,
                r#"{"id":"1","error":"no"}"#,
            ),
            (r#"{"error":"no route"}"#, r#"{"error":"no route"}"#),
            (
                r#"{"data":null,"event":"done","id":"1","error":null}"#,
                r#"{"id":"1","event":"done"}"#,
            ),
            (
                r#"{"id":"2","event":"tool_result","data":{"tool_use_id":"c","content":"x","is_error":null}}"#,
                r#"{"id":"2","event":"tool_result","data":{"tool_use_id":"c","content":"x","is_error":false}}"#,
            ),
            (r#"{"ok":true,"version":1,"x":2}"#, r#"{"ok":true}"#),
        ] {
            assert_eq!(serde_json::to_string(&decode(text)).unwrap(), written);
        }
    }

    #[test]
    fn data_before_its_event_is_read_as_data_behind_it() {
        for (event, data) in [
            ("text", r#""Hello""#),
            ("text", r#""a\nb""#),
            ("error", r#""no""#),
            ("tool_use", r#"{"id":"c","name":"echo","input":{"a":[1]}}"#),
            (
                "tool_result",
                r#"{"tool_use_id":"c","content":"x","is_error":true}"#,
            ),
            ("usage", r#"{"input_tokens":150,"output_tokens":42}"#),
            ("done", "[1]"),
            ("later", r#"{"x":1}"#),
        ] {
            let before = format!(r#"{{"data":{data},"event":"{event}","id":"1"}}"#);
            let behind = format!(r#"{{"id":"1","event":"{event}","data":{data}}}"#);
            assert_eq!(decode(&before), decode(&behind));
        }
        for (event, data) in [
            ("text", "7"),
            ("tool_use", r#""x""#),
            ("usage", r#"{"input_tokens":-1}"#),
            ("usage", "{}"),
            ("error", "null"),
        ] {
            let before = format!(r#"{{"data":{data},"event":"{event}","id":"1"}}"#);
            let behind = format!(r#"{{"id":"1","event":"{event}","data":{data}}}"#);
            let error = |text: &str| ServerFrame::decode(text, &Limits::default()).unwrap_err();
            let (before, behind) = (error(&before), error(&behind));
            assert_eq!(before.kind(), behind.kind(), "{event} {data}");
            assert_eq!(before.path(), behind.path(), "{event} {data}");
        }
        for text in [
            r#"{"data":"a","event":"text","data":"b","id":"1"}"#,
            r#"{"event":"text","data":"a","data":"b","id":"1"}"#,
        ] {
            let error = ServerFrame::decode(text, &Limits::default()).unwrap_err();
            assert_eq!(error.kind(), DecodeErrorKind::DuplicateMember("data"));
        }
    }

    #[test]
    fn a_known_event_with_wrong_data_is_a_loud_error() {
        for (text, path) in [
            (r#"{"id":"1","event":"text"}"#, vec![]),
            (r#"{"id":"1","event":"text","data":7}"#, vec!["data"]),
            (r#"{"id":"1","event":"usage","data":{}}"#, vec!["data"]),
            (
                r#"{"id":"1","event":"usage","data":{"input_tokens":-1}}"#,
                vec!["data", "input_tokens"],
            ),
            (r#"{"event":"done"}"#, vec![]),
            (r#"{"id":"1"}"#, vec![]),
            (r#"{"ok":false}"#, vec!["ok"]),
        ] {
            let error = ServerFrame::decode(text, &Limits::default()).unwrap_err();
            assert_eq!(error.path(), path, "{text}");
        }
    }

    #[test]
    fn a_refusal_is_told_by_its_word_or_its_code_and_has_no_id() {
        for text in [
            r#"{"error":"auth_failed"}"#,
            r#"{"error":"no","code":4001}"#,
        ] {
            assert!(matches!(decode(text), ServerFrame::AuthFailed { .. }));
        }
        let text = r#"{"id":"1","error":"auth_failed","code":4001}"#;
        assert!(matches!(decode(text), ServerFrame::Error { .. }));
    }

    #[test]
    fn a_hello_may_name_extensions() {
        let hello = Hello::new("0.1.0").with_extensions(&["session.list"]);
        let text = serde_json::to_string(&hello).unwrap();
        assert_eq!(
            text,
            r#"{"ok":true,"version":"0.1.0","extensions":["session.list"]}"#
        );
        let ServerFrame::Hello(read) = decode(&text) else {
            panic!("no hello");
        };
        assert_eq!(read, hello);
        assert_eq!(read.extensions(), ["session.list"]);
        assert_eq!(read.raw(), Some(&*text));
    }
}
