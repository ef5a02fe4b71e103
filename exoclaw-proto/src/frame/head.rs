//! [`Head`]: a request with undecoded parameters, for requests in an unusual form.
//!
//! The known gateway reads `["1","ping"]` as a request and an array as the parameters of
//! `chat.send`, so programs may rely on it. These forms are decoded, but never encoded.

use rpc_core::json::{self, DecodeErrorKind, first_byte};
use rpc_core::{DecodeError, Json, Limits, Str};
use serde::Deserialize;

use super::client::Request;
use super::{Call, no_object};
use crate::id::WireId;

/// A request in an unusual form, tried when the usual decoding fails.
#[derive(Deserialize)]
pub(super) struct Head {
    id: WireId,
    method: Str,
    params: Option<Json>,
}

impl Head {
    pub(super) fn decode(text: &str, limits: &Limits) -> Result<Self, DecodeError> {
        if first_byte(text) != Some(b'[') {
            return json::decode(text, limits);
        }
        json::check_size(text.len(), limits)?;
        json::parse(&object(text, &["id", "method", "params"], limits)?, limits)
    }

    /// Returns the request; parameters that do not decode stay raw.
    pub(super) fn request(self, limits: &Limits) -> Request {
        let call = read(&self.method, self.params.as_ref(), limits);
        let call = call.unwrap_or(Call::Unknown {
            tag: self.method,
            content: self.params,
        });
        Request::new(self.id, call)
    }
}

/// Decodes parameters. An array becomes an object, and so do absent parameters.
pub(super) fn read(
    method: &str,
    params: Option<&Json>,
    limits: &Limits,
) -> Result<Call, DecodeError> {
    let mut params = params.cloned().unwrap_or(Json::EMPTY_OBJECT);
    if method == "chat.send" && params.first_byte() == b'[' {
        let names = ["channel", "account", "peer", "content", "guild", "team"];
        params = Json::new(&object(params.get(), &names, limits)?)?;
    }
    let call = written(&["method", "params"], &[Json::string(method), params]);
    json::parse(&call, limits).map_err(no_object)
}

/// Turns an array into an object whose members are its items.
fn object(array: &str, names: &[&str], limits: &Limits) -> Result<String, DecodeError> {
    let items: Vec<Json> = json::parse(array, limits)?;
    if items.len() > names.len() {
        return Err(DecodeError::new(DecodeErrorKind::NotAnObject));
    }
    Ok(written(names, &items))
}

fn written(names: &[&str], items: &[Json]) -> String {
    let members = names.iter().zip(items);
    let members = members.map(|(name, item)| format!("\"{name}\":{}", item.get()));
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}
