//! [`ServerFrame`]: the hello, a refusal, an answer, or one step of a streamed answer.

use std::fmt;

use rpc_core::json::{self, LooseStr, lenient};
use rpc_core::{DecodeError, Json, Limits, Str, tagged};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::event::StreamEvent;
use super::no_object;
use crate::error::readable;
use crate::limits::{AUTH_FAILED, AUTH_FAILED_CODE};

/// One frame of the server. Ids are texts; a number becomes its digits. Exoclaw specification,
/// *Response Format*.
///
/// ```
/// use exoclaw_proto::frame::{ServerFrame, StreamEvent};
/// use exoclaw_proto::Limits;
///
/// let text = r#"{"id":"1","event":"text","data":"Hello"}"#;
/// let frame = ServerFrame::decode(text, &Limits::default())?;
/// let event = StreamEvent::Text("Hello".into());
/// assert_eq!(frame, ServerFrame::Stream { id: "1".into(), event });
/// # Ok::<(), rpc_core::DecodeError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum ServerFrame {
    /// The connection is ready.
    Hello(Hello),
    /// The token was refused; the server closes next.
    AuthFailed {
        /// The server's error text: `auth_failed`.
        error: Str,
        /// The server's code: 4001.
        #[serde(skip_serializing_if = "Option::is_none")]
        code: Option<u64>,
    },
    /// A request has succeeded.
    Result {
        /// The request's id.
        id: Str,
        /// The raw value; may be null.
        result: Json,
    },
    /// A request has failed.
    Error {
        /// The request's id; `"0"` or `None` if the server could not read it.
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<Str>,
        /// The server's error text.
        error: Str,
    },
    /// One step of a streamed answer.
    Stream {
        /// The request's id.
        id: Str,
        /// The step.
        #[serde(flatten)]
        event: StreamEvent,
    },
}

tagged! {
    /// The members of all frames.
    struct Members {
        "id" => id: Option<Str> as lenient::optional_id,
        .. => event: Option<StreamEvent>,
        "result" => result: Option<Json> as lenient::present,
        "error" => error: Option<Json>,
        "code" => code: Option<Json>,
        "ok" => ok: Option<LooseStr>,
        "version" => version: Option<LooseStr>,
        "extensions" => extensions: Option<Json>,
    }
}

impl Members {
    fn frame(self) -> Result<ServerFrame, DecodeError> {
        let need = |id: Option<Str>| id.ok_or_else(|| DecodeError::missing("id"));
        if let Some(event) = self.event {
            let id = need(self.id)?;
            return Ok(ServerFrame::Stream { id, event });
        }
        if let Some(error) = self.error {
            let error = readable(error);
            let code = self.code.and_then(|code| code.get().parse().ok());
            let refused = error == AUTH_FAILED || code == Some(u64::from(AUTH_FAILED_CODE));
            return Ok(match self.id {
                None if refused => ServerFrame::AuthFailed { error, code },
                id => ServerFrame::Error { id, error },
            });
        }
        if let Some(result) = self.result {
            let id = need(self.id)?;
            return Ok(ServerFrame::Result { id, result });
        }
        match self.ok {
            Some(LooseStr::Bool(true)) => Ok(ServerFrame::Hello(Hello {
                ok: true,
                version: self.version.and_then(LooseStr::text),
                extensions: self.extensions,
            })),
            Some(_) => Err(DecodeError::bad_value("ok", "true")),
            None => Err(DecodeError::missing("event")),
        }
    }
}

impl<'de> Deserialize<'de> for ServerFrame {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Members::deserialize(from)?
            .frame()
            .map_err(D::Error::custom)
    }
}

/// The most frequent frames, as servers of this crate write them.
pub(crate) enum Frequent {
    Result(Json),
    Text(Str),
}

impl Frequent {
    /// Reads such a frame, and the id in it.
    pub(crate) fn decode<'t>(text: &'t str, limits: &Limits) -> Option<(&'t str, Self)> {
        let mut object = json::InOrder::new(text, limits)?;
        let id = object.text("id")?;
        let frame = match object.text("event") {
            Some("text") => Self::Text(object.text("data")?.into()),
            Some(_) => return None,
            None => Self::Result(object.json("result")?),
        };
        object.is_end().then_some((id, frame))
    }
}

impl ServerFrame {
    /// Decodes a frame. The first of the members `event`, `error`, `result` and `ok` that is
    /// present determines its kind (null counts as absent, except for `result`).
    ///
    /// # Errors
    /// [`DecodeError`] if the text is not an object, has none of these members, or has a known
    /// event with wrong data.
    pub fn decode(text: &str, limits: &Limits) -> Result<Self, DecodeError> {
        match Frequent::decode(text, limits) {
            Some((id, Frequent::Text(text))) => Ok(Self::Stream {
                id: id.into(),
                event: StreamEvent::Text(text),
            }),
            Some((id, Frequent::Result(result))) => Ok(Self::Result {
                id: id.into(),
                result,
            }),
            None => Self::decode_other(text, limits),
        }
    }

    /// Decodes a frame in any form.
    pub(crate) fn decode_other(text: &str, limits: &Limits) -> Result<Self, DecodeError> {
        let members: Members = json::decode(text, limits).map_err(no_object)?;
        members.frame()
    }

    /// Creates the specification's refusal of a token.
    #[must_use]
    pub const fn auth_failed() -> Self {
        Self::AuthFailed {
            error: Str::from_static(AUTH_FAILED),
            code: Some(AUTH_FAILED_CODE as u64),
        }
    }

    /// Returns the id of the request that the frame belongs to.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        match self {
            Self::Hello(_) | Self::AuthFailed { .. } => None,
            Self::Result { id, .. } | Self::Stream { id, .. } => Some(id),
            Self::Error { id, .. } => id.as_deref(),
        }
    }
}

/// Prints only kind and id: the rest is private.
impl fmt::Debug for ServerFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, what) = match self {
            Self::Hello(hello) => return hello.fmt(f),
            Self::AuthFailed { .. } => return f.write_str("AuthFailed"),
            Self::Result { .. } => ("Result", None),
            Self::Error { .. } => ("Error", None),
            Self::Stream { event, .. } => ("Stream", Some(event.tag())),
        };
        let mut frame = f.debug_struct(kind);
        frame.field("id", &self.id());
        if let Some(event) = what {
            frame.field("event", &event);
        }
        frame.finish_non_exhaustive()
    }
}

/// The first frame of a server that admits the client: `{"ok":true,"version":"0.1.0"}`. Exoclaw
/// specification, *Connection Lifecycle*.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct Hello {
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<Str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extensions: Option<Json>,
}

impl Hello {
    /// Creates a hello with this version.
    pub fn new(version: impl Into<Str>) -> Self {
        Self {
            ok: true,
            version: Some(version.into()),
            extensions: None,
        }
    }

    /// Sets the methods that the server has beyond the four of the specification.
    #[must_use]
    pub(crate) fn with_extensions(mut self, methods: &[&str]) -> Self {
        // A list of texts is always JSON.
        self.extensions = Json::of(methods).ok();
        self
    }

    /// Returns the version, if the hello has one.
    #[must_use]
    pub fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// Returns the methods that the server has beyond the four of the specification. Not part of
    /// the specification: servers of this crate list them when their extensions are switched on.
    #[must_use]
    pub fn extensions(&self) -> Vec<Str> {
        let list = self.extensions.as_ref();
        list.and_then(|list| list.parse().ok()).unwrap_or_default()
    }
}

rpc_core::debug_fields!([] Hello, this => {
    version: this.version,
    extensions: this.extensions(),
});

#[cfg(test)]
mod tests {
    use rpc_core::json::DecodeErrorKind;

    use super::*;

    fn decode(text: &str) -> ServerFrame {
        ServerFrame::decode(text, &Limits::default()).unwrap_or_else(|e| panic!("{text}: {e}"))
    }

    #[test]
    fn every_frame_matches_the_specification() {
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
        }
    }

    #[test]
    fn a_frame_reads_the_same_with_white_space() {
        for text in [
            r#"{"id":"1","result":null}"#,
            r#"{"id":"1","result":["\ud83d",1.50]}"#,
            r#"{"id":"\u0031","result":"pong"}"#,
            r#"{"id":"1","result":"pong","error":"no"}"#,
            r#"{"id":"2","event":"text","data":"Hello"}"#,
            r#"{"id":"2","event":"text","data":"a\n\ud83d"}"#,
            r#"{"id":"2","event":"done"}"#,
        ] {
            assert_eq!(decode(text), decode(&format!("{text} ")), "{text}");
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
    fn data_may_come_before_its_event() {
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
    fn a_refusal_is_recognized_by_its_error_or_code() {
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
    }
}
