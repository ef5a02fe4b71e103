//! Arrays in place of objects: the known gateway reads `["1","ping"]` as a request and an array as
//! the parameters of `chat.send`, so programs may rely on it. Read here, never written.

use std::borrow::Cow;

use rpc_core::Limits;
use rpc_core::decode::{self, DecodeError, RawJson};

use super::call::ChatSend;
use super::client::Request;
use crate::id::WireId;

/// The items of an array, null as absent.
struct Items<'a> {
    items: std::vec::IntoIter<RawJson<'a>>,
}

impl<'a> Items<'a> {
    fn new(json: &'a str, limits: &Limits) -> Result<Self, DecodeError> {
        decode::check_size(json.len(), limits)?;
        let items = decode::raw_list(json, limits)?.into_iter();
        Ok(Self { items })
    }

    fn value(&mut self) -> Option<RawJson<'a>> {
        self.items.next().filter(|raw| !raw.is_null())
    }

    fn text(&mut self, member: &'static str) -> Result<Option<Cow<'a, str>>, DecodeError> {
        let Some(raw) = self.value() else {
            return Ok(None);
        };
        match raw.into_str() {
            Some(text) => Ok(Some(text)),
            None => Err(DecodeError::wrong_type(member, "a string")),
        }
    }

    fn need(&mut self, member: &'static str) -> Result<Cow<'a, str>, DecodeError> {
        self.text(member)?
            .ok_or_else(|| DecodeError::missing(member))
    }

    fn end(mut self) -> Result<(), DecodeError> {
        match self.items.next() {
            None => Ok(()),
            Some(_) => Err(DecodeError::new(decode::DecodeErrorKind::NotAnObject)),
        }
    }
}

/// `[id, method, params]`; `params` may be left out.
pub(super) fn request<'a>(text: &'a str, limits: &Limits) -> Result<Request<'a>, DecodeError> {
    let mut items = Items::new(text, limits)?;
    let id = items.value().ok_or_else(|| DecodeError::missing("id"))?;
    let id = WireId::new(id)?;
    let method = items.need("method")?;
    let params = items.value();
    items.end()?;
    Ok(Request::decoded(id, method, params, text))
}

/// `[channel, account, peer, content, guild, team]`; the last two may be left out.
pub(super) fn chat_send<'a>(
    params: &'a str,
    limits: &Limits,
) -> Result<ChatSend<Cow<'a, str>>, DecodeError> {
    let mut items = Items::new(params, limits)?;
    let chat = ChatSend {
        channel: items.need("channel")?,
        account: items.need("account")?,
        peer: items.text("peer")?,
        content: items.need("content")?,
        guild: items.text("guild")?,
        team: items.text("team")?,
    };
    items.end()?;
    Ok(chat)
}
