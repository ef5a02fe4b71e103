//! [`Head`]: a request whose parameters are not read, for what is no request in the usual form.
//!
//! The known gateway reads `["1","ping"]` as a request and an array as the parameters of `chat.send`, so
//! programs may rely on it. Read here, never written.

use rpc_core::json::{self, DecodeError, DecodeErrorKind, first_byte};
use rpc_core::{Json, Limits, Str};
use serde::Deserialize;

use super::client::Request;
use crate::id::WireId;

/// Looked at where a request could not be read: to read the unusual forms, and to tell wrong parameters
/// from a wrong request.
#[derive(Deserialize)]
pub(crate) struct Head {
    pub(crate) id: WireId,
    pub(crate) method: Str,
    params: Option<Json>,
}

impl Head {
    pub(crate) fn decode(text: &str, limits: &Limits) -> Result<Self, DecodeError> {
        if first_byte(text) != Some(b'[') {
            return json::decode(text, limits);
        }
        json::check_size(text.len(), limits)?;
        json::parse(&object(text, &["id", "method", "params"], limits)?, limits)
    }

    fn has_list(&self) -> bool {
        let params = self.params.as_ref().map(Json::first_byte);
        self.method == "chat.send" && params == Some(b'[')
    }

    /// Whether this is an object with parameters, and no array is in the place of an object.
    pub(super) fn is_usual(&self, text: &str) -> bool {
        first_byte(text) == Some(b'{') && self.params.is_some() && !self.has_list()
    }

    /// The request, read with an object in place of an array, and of parameters that are absent.
    pub(super) fn request(self, limits: &Limits) -> Result<Request, DecodeError> {
        let has_list = self.has_list();
        let mut params = self.params.unwrap_or(Json::EMPTY_OBJECT);
        if has_list {
            let names = ["channel", "account", "peer", "content", "guild", "team"];
            params = Json::new(&object(params.get(), &names, limits)?)?;
        }
        let method = Json::string(&self.method);
        let call = written(&["method", "params"], &[method, params]);
        Ok(Request::new(self.id, json::parse(&call, limits)?))
    }
}

/// An array as an object whose members are its items.
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
