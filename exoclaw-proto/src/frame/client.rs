//! [`ClientFrame`]: a [`Token`] or a [`Request`].

use rpc_core::json::{self, TagKind, Tagged as _, check_size, find_member};
use rpc_core::{DecodeError, Limits, Str, tagged};
use serde::{Deserialize, Serialize};

use super::call::Call;
use super::head::Head;
use crate::id::WireId;

/// One frame of the client.
///
/// ```
/// use exoclaw_proto::frame::{Call, ClientFrame};
/// use exoclaw_proto::Limits;
///
/// let text = r#"{"id":"1","method":"status"}"#;
/// let ClientFrame::Request(request) = ClientFrame::decode(text, &Limits::default())? else { panic!() };
/// assert_eq!(request.id.text(), "1");
/// assert_eq!(request.call, Call::Status);
/// # Ok::<(), rpc_core::DecodeError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum ClientFrame {
    /// The token, usually the first frame.
    Token(Token),
    /// A request.
    Request(Request),
}

impl ClientFrame {
    /// Decodes a frame of either kind: one with a `method` is a request; one with a `token`, and
    /// with neither `method` nor `id`, is a token. A server, which knows what it expects, uses
    /// [`Token::decode`] and [`Request::decode`].
    ///
    /// # Errors
    /// [`DecodeError`] if it is neither.
    pub fn decode(text: &str, limits: &Limits) -> Result<Self, DecodeError> {
        let error = match Request::decode(text, limits) {
            Ok(request) => return Ok(Self::Request(request)),
            Err(error) => error,
        };
        let is_token = ["id", "method"].map(|name| find_member(text, name)) == [None, None];
        match Token::decode(text, limits) {
            Ok(token) if is_token => Ok(Self::Token(token)),
            _ => Err(error),
        }
    }
}

/// The frame that logs a client in: `{"token"}`. Exoclaw specification, *Authentication*.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    token: Str,
}

impl Token {
    /// Creates the frame of a token.
    pub fn new(token: impl Into<Str>) -> Self {
        Self {
            token: token.into(),
        }
    }

    /// Decodes any object with a string `token`, and ignores other members.
    ///
    /// # Errors
    /// [`DecodeError`] for anything else.
    pub fn decode(text: &str, limits: &Limits) -> Result<Self, DecodeError> {
        json::decode(text, limits)
    }

    /// Returns the token itself. Compare it with [`Auth::check`](crate::auth::Auth::check).
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.token
    }
}

rpc_core::debug_fields!([] Token, _ => {});

tagged! {
    /// A request: `{"id", "method", "params"}`. Exoclaw specification, *Request Format*.
    #[derive(Clone, PartialEq, Eq)]
    #[non_exhaustive]
    pub struct Request {
        /// The id that the answers carry.
        "id" => pub id: WireId,
        /// The method and its parameters.
        .. => pub call: Call,
    }
}

impl Request {
    /// Creates a request with this id.
    #[must_use]
    pub const fn new(id: WireId, call: Call) -> Self {
        Self { id, call }
    }

    /// Decodes a request. Unknown members, such as `jsonrpc`, are ignored. Also accepts an array
    /// `[id, method, params]`, and an array as the parameters of `chat.send`. A known method with
    /// wrong parameters becomes [`Call::Unknown`]; [`Call::refusal`] says why.
    ///
    /// # Errors
    /// [`DecodeError`]; [`id_of`](Self::id_of) returns the id for the answer.
    pub fn decode(text: &str, limits: &Limits) -> Result<Self, DecodeError> {
        if let Some(request) = Self::in_order(text, limits) {
            return Ok(request);
        }
        json::decode(text, limits).or_else(|_| Ok(Head::decode(text, limits)?.request(limits)))
    }

    /// Reads a request without parameters, as clients of this crate write it.
    fn in_order(text: &str, limits: &Limits) -> Option<Self> {
        let mut object = json::InOrder::new(text, limits)?;
        let id = WireId::new(object.json("id")?).ok()?;
        let method = object
            .text("method")
            .filter(|it| Call::kind(it) == TagKind::Unit)?;
        object.raw("params")?;
        let call = Call::without::<DecodeError>(method, None).ok()?;
        object.is_end().then_some(Self { id, call })
    }

    /// Returns the id of a text that is JSON but not a request, or `None` if it has no usable id.
    #[must_use]
    pub fn id_of(text: &str, limits: &Limits) -> Option<WireId> {
        check_size(text.len(), limits).ok()?;
        WireId::new(find_member(text, "id")?).ok()
    }
}

rpc_core::debug_fields!([] Request, this => { id: this.id, method: this.call.tag() });

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Call;

    fn limits() -> Limits {
        Limits::default()
    }

    fn written(text: &str) -> String {
        let frame = ClientFrame::decode(text, &limits()).unwrap();
        serde_json::to_string(&frame).unwrap()
    }

    #[test]
    fn a_request_matches_the_example_of_the_specification() {
        let text = r#"{"jsonrpc":"2.0","params":{"a":1},"method":"m","id":7}"#;
        assert_eq!(written(text), r#"{"id":"7","method":"m","params":{"a":1}}"#);
        let text = r#"{"id":"1","method":"ping","params":null,"token":"t"}"#;
        assert_eq!(written(text), r#"{"id":"1","method":"ping","params":{}}"#);
        assert_eq!(written(r#"{"x":1,"token":"t"}"#), r#"{"token":"t"}"#);
        let request = |text| Request::decode(text, &limits()).unwrap();
        assert_eq!(
            request(r#"{"id":"1","method":"ping"}"#),
            request(r#"{"id":1,"method":"ping","params":{}}"#)
        );
    }

    #[test]
    fn a_request_reads_the_same_with_white_space() {
        for text in [
            r#"{"id":"1","method":"ping","params":{}}"#,
            r#"{"id":7,"method":"status","params":null}"#,
            r#"{"id":"a\ud83d","method":"ping","params":[1]}"#,
            r#"{"id":"1","method":"chat.send","params":{"content":"x"}}"#,
            r#"{"id":"1","method":"other","params":{"a":1}}"#,
            r#"{"id":true,"method":"ping","params":{}}"#,
            r#"{"id":"1","method":"ping","params":{},"id":"2"}"#,
        ] {
            let read = Request::decode(text, &limits());
            let spaced = Request::decode(&format!("{text} "), &limits());
            assert_eq!(read.ok(), spaced.ok(), "{text}");
        }
    }

    #[test]
    fn an_object_with_an_id_or_method_is_not_a_token() {
        for text in [
            r#"{"id":"1","token":"t"}"#,
            r#"{"method":"ping","token":"t"}"#,
            r#"{"method":7,"token":"t"}"#,
        ] {
            assert!(ClientFrame::decode(text, &limits()).is_err(), "{text}");
        }
    }

    #[test]
    fn an_array_is_accepted_as_a_request() {
        let text = r#"["1","ping"]"#;
        assert_eq!(written(text), r#"{"id":"1","method":"ping","params":{}}"#);
        for text in ["[]", r#"[{"id":"1","method":"ping"}]"#, r#"["1","a",{},0]"#] {
            assert!(ClientFrame::decode(text, &limits()).is_err(), "{text}");
        }
    }

    #[test]
    fn the_id_of_a_bad_request_is_extracted() {
        for (text, id) in [
            (r#"{"id":"5"}"#, Some("5")),
            (r#"{"id":5,"method":7}"#, Some("5")),
            (r#"{"id":null,"method":"ping"}"#, None),
            (r#"{"id":"5","method":"pi"#, None),
            (r#"{"method":"ping"}"#, None),
            ("[1]", None),
        ] {
            assert!(Request::decode(text, &limits()).is_err(), "{text}");
            let found = Request::id_of(text, &limits()).map(|id| id.text().into_owned());
            assert_eq!(found.as_deref(), id, "{text}");
        }
    }

    #[test]
    fn parameters_are_checked_in_the_order_of_the_specification() {
        let error = |params: &str| {
            let text = format!(r#"{{"id":"1","method":"chat.send","params":{params}}}"#);
            let request = Request::decode(&text, &limits()).unwrap();
            let error = request.call.refusal(&limits()).unwrap();
            error.message().to_owned()
        };
        let start = "invalid chat.send params: ";
        for (params, tail) in [
            ("null", "member `channel` is missing"),
            ("{}", "member `channel` is missing"),
            (r#"{"channel":"c"}"#, "member `account` is missing"),
            (
                r#"{"channel":"c","account":"a"}"#,
                "member `content` is missing",
            ),
            (r#"{"channel":5}"#, "member `channel` is not a string"),
            ("7", "not a JSON object"),
        ] {
            assert_eq!(error(params), format!("{start}{tail}"), "{params}");
        }
    }

    #[test]
    fn invalid_parameters_are_passed_on_verbatim() {
        for (text, refusal) in [
            (
                r#"{"id":"1","method":"chat.history","params":{}}"#,
                "invalid chat.history params: member `channel` is missing",
            ),
            (
                r#"{"id":"1","method":"chat.send","params":["c", 7]}"#,
                "invalid chat.send params: member `account` is not a string",
            ),
            (
                r#"{"id":"1","method":"later","params":[1.50]}"#,
                "unknown method: later",
            ),
        ] {
            assert_eq!(written(text), text);
            let call = Request::decode(text, &limits()).unwrap().call;
            assert_eq!(call.method(), None);
            assert_eq!(call.refusal(&limits()).unwrap().message(), refusal);
        }
    }

    #[test]
    fn a_chat_without_a_peer_uses_main() {
        for params in [
            r#"{"channel":"c","account":"a","content":"","peer":null,"team":null,"x":1}"#,
            r#"["c","a",null,""]"#,
        ] {
            let text = format!(r#"{{"id":"1","method":"chat.send","params":{params}}}"#);
            let request = Request::decode(&text, &limits()).unwrap();
            let Call::ChatSend(chat) = request.call else {
                panic!("no chat");
            };
            assert_eq!((chat.session.peer(), &*chat.content), ("main", ""));
            assert_eq!(
                serde_json::to_string(&chat).unwrap(),
                r#"{"channel":"c","account":"a","content":""}"#
            );
        }
    }

    #[test]
    fn guild_and_team_name_a_session() {
        let chat = r#"{"channel":"c","account":"a","content":"","guild":"g","team":"t"}"#;
        let text = format!(r#"{{"id":"1","method":"chat.send","params":{chat}}}"#);
        let Call::ChatSend(read) = Request::decode(&text, &limits()).unwrap().call else {
            panic!("no chat");
        };
        assert_eq!(serde_json::to_string(&read).unwrap(), chat);
        let session = r#"{"channel":"c","account":"a","guild":"g","team":"t"}"#;
        assert_eq!(serde_json::to_string(&read.session).unwrap(), session);
        assert_eq!(serde_json::from_str(session).ok(), Some(read.session));
    }

    #[test]
    fn methods_without_parameters_ignore_them() {
        for params in ["null", "[]", "\"x\"", "{}"] {
            let text = format!(r#"{{"id":"1","method":"ping","params":{params}}}"#);
            let request = Request::decode(&text, &limits()).unwrap();
            assert_eq!(request.call, Call::Ping);
        }
    }
}
