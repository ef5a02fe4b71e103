//! [`ClientFrame`]: a [`Token`] or a [`Request`].

use std::borrow::Cow;
use std::fmt;

use rpc_core::Limits;
use rpc_core::decode::{self, DecodeError, Field, LooseStr, Members, RawJson, Slot, find_member};
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::call::BorrowedCall;
use super::positional;
use crate::error::RpcError;
use crate::id::WireId;

/// One frame of the client.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ClientFrame<'a> {
    /// The token, as a rule the first frame.
    Token(Token<'a>),
    /// A request.
    Request(Request<'a>),
}

impl<'a> ClientFrame<'a> {
    /// Decodes a frame of either kind: one with a `method` is a request, one without it and without
    /// an `id` but with a `token` is a token. A server, which knows what it waits for, uses
    /// [`Token::decode`] and [`Request::decode`].
    ///
    /// # Errors
    /// [`DecodeError`] if it is neither.
    pub fn decode(text: &'a str, limits: &Limits) -> Result<Self, DecodeError> {
        if decode::first_byte(text) == Some(b'[') {
            return positional::request(text, limits).map(Self::Request);
        }
        let members: RequestMembers<'a> = decode::object(text, limits)?;
        let token = members.id.get().is_none() && members.method.get().is_none();
        match members.token.get() {
            Some(LooseStr::Str(token_text)) if token => Ok(Self::Token(Token {
                token: token_text.clone(),
            })),
            _ => members.request(text).map(Self::Request),
        }
    }

    /// A copy that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> ClientFrame<'static> {
        match self {
            Self::Token(token) => ClientFrame::Token(token.into_owned()),
            Self::Request(request) => ClientFrame::Request(request.into_owned()),
        }
    }
}

impl Serialize for ClientFrame<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Token(token) => token.serialize(serializer),
            Self::Request(request) => request.serialize(serializer),
        }
    }
}

/// The frame that logs a client in: `{"token"}`. Exoclaw specification, *Authentication*.
#[derive(Clone, PartialEq, Eq)]
pub struct Token<'a> {
    token: Cow<'a, str>,
}

#[derive(Default)]
struct TokenMembers<'a> {
    token: Slot<Cow<'a, str>>,
}

impl<'a> Members<'a> for TokenMembers<'a> {
    fn member(&mut self, name: &str, field: Field<'_, 'a>) -> Result<(), DecodeError> {
        match name {
            "token" => field.str("token", &mut self.token),
            _ => field.skip(),
        }
    }
}

impl<'a> Token<'a> {
    /// This token.
    pub fn new(token: impl Into<Cow<'a, str>>) -> Self {
        Self {
            token: token.into(),
        }
    }

    /// Decodes any object with a string `token`; other members are ignored.
    ///
    /// # Errors
    /// [`DecodeError`] for anything else.
    pub fn decode(text: &'a str, limits: &Limits) -> Result<Self, DecodeError> {
        let members: TokenMembers<'a> = decode::object(text, limits)?;
        let token = members.token.require("token")?;
        Ok(Self { token })
    }

    /// The token itself. Compare it with [`Auth::check`](crate::auth::Auth::check).
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.token
    }

    /// A copy that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> Token<'static> {
        Token {
            token: Cow::Owned(self.token.into_owned()),
        }
    }
}

/// Prints nothing of the token.
impl fmt::Debug for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(***)")
    }
}

impl Serialize for Token<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut frame = serializer.serialize_struct("Token", 1)?;
        frame.serialize_field("token", &self.token)?;
        frame.end()
    }
}

/// A request: `{"id", "method", "params"}`. Exoclaw specification, *Request Format*.
#[derive(Clone)]
pub struct Request<'a> {
    id: WireId<'a>,
    method: Cow<'a, str>,
    params: Option<RawJson<'a>>,
    raw: Option<Cow<'a, str>>,
}

#[derive(Default)]
struct RequestMembers<'a> {
    id: Slot<RawJson<'a>>,
    method: Slot<Cow<'a, str>>,
    params: Slot<RawJson<'a>>,
    token: Slot<LooseStr<'a>>,
}

impl<'a> Members<'a> for RequestMembers<'a> {
    fn member(&mut self, name: &str, field: Field<'_, 'a>) -> Result<(), DecodeError> {
        match name {
            "id" => field.raw("id", &mut self.id),
            "method" => field.str("method", &mut self.method),
            "params" => field.raw("params", &mut self.params),
            "token" => field.loose_str("token", &mut self.token),
            _ => field.skip(),
        }
    }
}

impl<'a> RequestMembers<'a> {
    fn request(self, text: &'a str) -> Result<Request<'a>, DecodeError> {
        let id = WireId::new(self.id.require("id")?)?;
        let method = self.method.require("method")?;
        let params = self.params.take();
        Ok(Request::decoded(id, method, params, text))
    }
}

impl<'a> Request<'a> {
    /// A request with raw parameters; `None` is `{}`.
    pub fn new(
        id: WireId<'a>,
        method: impl Into<Cow<'a, str>>,
        params: Option<&'a RawValue>,
    ) -> Self {
        Self {
            id,
            method: method.into(),
            params: params.map(RawJson::from),
            raw: None,
        }
    }

    pub(super) fn decoded(
        id: WireId<'a>,
        method: Cow<'a, str>,
        params: Option<RawJson<'a>>,
        text: &'a str,
    ) -> Self {
        Self {
            id,
            method,
            params,
            raw: Some(Cow::Borrowed(text)),
        }
    }

    /// Decodes a request. Unknown members (`jsonrpc` for one) are ignored, and an array
    /// `[id, method, params]` is read too.
    ///
    /// # Errors
    /// [`DecodeError`]; [`id_of`](Self::id_of) says whom to tell.
    pub fn decode(text: &'a str, limits: &Limits) -> Result<Self, DecodeError> {
        if decode::first_byte(text) == Some(b'[') {
            return positional::request(text, limits);
        }
        decode::object::<RequestMembers<'a>>(text, limits)?.request(text)
    }

    /// The id of a text that is JSON but no request; `None` if there is none that can be answered.
    #[must_use]
    pub fn id_of(text: &'a str, limits: &Limits) -> Option<WireId<'a>> {
        decode::check_size(text.len(), limits).ok()?;
        // A piece of a text that is no JSON would answer a request that nobody finished.
        RawJson::new(text).ok()?;
        WireId::new(find_member(text, "id")?).ok()
    }

    /// The id that the answers carry.
    #[must_use]
    pub const fn id(&self) -> &WireId<'a> {
        &self.id
    }

    /// The method's name.
    #[must_use]
    pub fn method(&self) -> &str {
        &self.method
    }

    /// The parameters, raw: any JSON value but null.
    #[must_use]
    pub const fn params(&self) -> Option<&RawJson<'a>> {
        self.params.as_ref()
    }

    /// The text that the request was decoded from, with members that the type does not hold.
    #[must_use]
    pub fn raw(&self) -> Option<&str> {
        self.raw.as_deref()
    }

    /// The method with typed parameters.
    ///
    /// # Errors
    /// The answer that the client should get, if the parameters of a known method are wrong.
    pub fn call(&self, limits: &Limits) -> Result<BorrowedCall<'_>, RpcError> {
        BorrowedCall::read(&self.method, self.params.as_ref(), limits)
    }

    /// A copy that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> Request<'static> {
        Request {
            id: self.id.into_owned(),
            method: Cow::Owned(self.method.into_owned()),
            params: self.params.map(RawJson::into_owned),
            raw: self.raw.map(|raw| Cow::Owned(raw.into_owned())),
        }
    }
}

/// Equal if what encoding would write is equal.
impl PartialEq for Request<'_> {
    fn eq(&self, other: &Self) -> bool {
        // No parameters are written as `{}`.
        self.id == other.id
            && self.method == other.method
            && self.params().map_or("{}", RawJson::get) == other.params().map_or("{}", RawJson::get)
    }
}

/// Prints id and method only: parameters hold private text.
impl fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("id", &self.id)
            .field("method", &self.method)
            .finish_non_exhaustive()
    }
}

impl Serialize for Request<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut frame = serializer.serialize_struct("Request", 3)?;
        frame.serialize_field("id", &self.id)?;
        frame.serialize_field("method", &self.method)?;
        match &self.params {
            Some(params) => frame.serialize_field("params", params)?,
            None => frame.serialize_field("params", &crate::codec::NoParams {})?,
        }
        frame.end()
    }
}

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
    fn a_request_is_written_as_the_specification_shows_it() {
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
    fn an_array_passes_for_a_request() {
        let text = r#"["1","ping"]"#;
        assert_eq!(written(text), r#"{"id":"1","method":"ping","params":{}}"#);
        for text in ["[]", r#"[{"id":"1","method":"ping"}]"#, r#"["1","a",{},0]"#] {
            assert!(ClientFrame::decode(text, &limits()).is_err(), "{text}");
        }
    }

    #[test]
    fn the_id_of_a_bad_request_is_found_where_there_is_one() {
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
            request.call(&limits()).unwrap_err().message().to_owned()
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
    fn a_chat_without_a_peer_has_the_peer_main() {
        for params in [
            r#"{"channel":"c","account":"a","content":"","peer":null,"team":null,"x":1}"#,
            r#"["c","a",null,""]"#,
        ] {
            let text = format!(r#"{{"id":"1","method":"chat.send","params":{params}}}"#);
            let request = Request::decode(&text, &limits()).unwrap();
            let Call::ChatSend(chat) = request.call(&limits()).unwrap() else {
                panic!("no chat");
            };
            assert_eq!((chat.peer(), &*chat.content), ("main", ""));
            assert_eq!(
                serde_json::to_string(&chat).unwrap(),
                r#"{"channel":"c","account":"a","content":""}"#
            );
        }
    }

    #[test]
    fn methods_without_parameters_do_not_look_at_them() {
        for params in ["null", "[]", "\"x\"", "{}"] {
            let text = format!(r#"{{"id":"1","method":"ping","params":{params}}}"#);
            let request = Request::decode(&text, &limits()).unwrap();
            assert_eq!(request.call(&limits()), Ok(Call::Ping));
        }
    }
}
