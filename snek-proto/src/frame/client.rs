//! [`ClientFrame`]: a request.

use rpc_core::{DecodeError, Json, Limits, Str, json};
use serde::{Deserialize, Deserializer, Serialize};

use super::call::Call;
use crate::error::RpcError;
use crate::id::WireId;

/// A request of the client: a method, its arguments and the id that the answer will carry.
///
/// Encoding always writes method and arguments. Decoding treats missing or null `args` and `kwargs`
/// as empty, and a missing `callId` as a request without an answer.
///
/// ```
/// use snek_proto::Limits;
/// use snek_proto::frame::ClientFrame;
///
/// let text = r#"{"method":"send_message","args":["general","hi",true],"kwargs":{},"callId":"1"}"#;
/// let frame = ClientFrame::decode(text, &Limits::default())?;
/// assert_eq!(frame.method, "send_message");
/// assert_eq!(frame.args.get(), r#"["general","hi",true]"#);
/// # Ok::<(), rpc_core::DecodeError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ClientFrame {
    /// The method's name.
    pub method: Str,
    /// The positional arguments, a JSON array.
    #[serde(default = "no_args", deserialize_with = "args")]
    pub args: Json,
    /// The named arguments, a JSON object.
    #[serde(default = "no_kwargs", deserialize_with = "kwargs")]
    pub kwargs: Json,
    /// The id of the answer; `None` if the client wants no answer.
    #[serde(rename = "callId", skip_serializing_if = "Option::is_none")]
    pub call_id: Option<WireId>,
}

const fn no_args() -> Json {
    Json::EMPTY_ARRAY
}

const fn no_kwargs() -> Json {
    Json::EMPTY_OBJECT
}

fn args<'de, D: Deserializer<'de>>(from: D) -> Result<Json, D::Error> {
    Option::deserialize(from).map(|args| args.unwrap_or(Json::EMPTY_ARRAY))
}

fn kwargs<'de, D: Deserializer<'de>>(from: D) -> Result<Json, D::Error> {
    Option::deserialize(from).map(|kwargs| kwargs.unwrap_or(Json::EMPTY_OBJECT))
}

impl ClientFrame {
    /// Creates a request without arguments.
    pub fn new(method: impl Into<Str>, call_id: Option<WireId>) -> Self {
        Self {
            method: method.into(),
            args: Json::EMPTY_ARRAY,
            kwargs: Json::EMPTY_OBJECT,
            call_id,
        }
    }

    /// Decodes a request. A server ignores text that does not decode.
    ///
    /// # Errors
    /// [`DecodeError`] if the text is not an object, has no string `method`, or its `callId` is not
    /// a scalar. [`call`](Self::call) checks the arguments, so that the client gets an answer.
    pub fn decode(text: &str, limits: &Limits) -> Result<Self, DecodeError> {
        Self::in_order(text, limits).map_or_else(|| json::decode(text, limits), Ok)
    }

    /// Reads a request as clients of this crate write it.
    fn in_order(text: &str, limits: &Limits) -> Option<Self> {
        let mut object = json::InOrder::new(text, limits)?;
        let frame = Self {
            method: object.text("method")?.into(),
            args: object
                .json("args")
                .filter(|args| args.first_byte() == b'[')?,
            kwargs: object
                .json("kwargs")
                .filter(|kwargs| kwargs.first_byte() == b'{')?,
            call_id: Some(WireId::new(object.json("callId")?).ok()?),
        };
        object.is_end().then_some(frame)
    }

    /// Returns the call with typed arguments. Arguments may come by position or by name.
    ///
    /// # Errors
    /// [`RpcError`] if `args` is not an array or `kwargs` is not an object, or a known method has
    /// too many, too few or wrong arguments. Use its text as the error text of the answer.
    pub fn call(&self) -> Result<Call, RpcError> {
        Call::read(self.clone())
    }
}

// Prints method and id only: arguments hold passwords and private text.
rpc_core::debug_fields!([] ClientFrame, this => {
    method: this.method,
    call_id: this.call_id,
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_reads_the_same_with_white_space() {
        for text in [
            r#"{"method":"echo","args":[{"text":"a \"b\""}],"kwargs":{},"callId":"1"}"#,
            r#"{"method":"echo","args":["\ud83d"],"kwargs":{"a":[1.50]},"callId":"\ud83d"}"#,
            r#"{"method":"e\u0063ho","args":null,"kwargs":null,"callId":7}"#,
            r#"{"method":"ping","args":[],"kwargs":{},"callId":null}"#,
            r#"{"method":"ping","args":{},"kwargs":[],"callId":true}"#,
            r#"{"method":"ping","args":[],"kwargs":{},"callId":"1","callId":"2"}"#,
            r#"{"method":"ping","args":[],"kwargs":{},"callId":{}}"#,
            r#"{"method":"ping","args":[],"kwargs":{},"callId":"1"} x"#,
        ] {
            let limits = Limits::default();
            let spaced = format!(" {text}");
            let read = ClientFrame::decode(text, &limits);
            match (&read, ClientFrame::decode(&spaced, &limits)) {
                (Err(_), Err(_)) => {}
                (read, spaced) => assert_eq!(*read, spaced, "{text}"),
            }
        }
    }
}
