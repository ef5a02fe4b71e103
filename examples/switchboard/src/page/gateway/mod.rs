//! [`respond`]: the gateway's answers over plain HTTP: its chat page and its health.

use bytes::Bytes;
use exoclaw_proto::limits::{HEALTH_PATH, WS_PATH};
use http::{Method, Response, StatusCode};
use rpc_core::net::server::is_read;

use crate::page::{MANIFEST, Skeleton, file};
use crate::web::{Asset, not_allowed, page, text};

#[cfg(test)]
mod tests;

const PAGE: Skeleton = Skeleton {
    name: "Gateway",
    examples: [
        "Show markdown: compare three sorting algorithms in a table, with code for one of them",
        "Count to 12 in French and in German",
        "What can you help me with?",
    ],
    entry: include_str!("entry.html"),
    extras: "",
    attach: "",
    choices: include_str!("choices.html"),
};
const SCRIPT: Asset = Asset::script(include_bytes!("app.js"));
const LINE: Asset = Asset::script(include_bytes!("line.js"));
const MEMORY: Asset = Asset::script(include_bytes!("memory.js"));
const ICON: Asset = Asset::drawing(include_bytes!("icon.svg"));

/// The resource of a path.
enum Resource<'a> {
    Page,
    Asset(Asset),
    Manifest,
    Health,
    /// A check that does not exist: the page in its place would pass for a healthy gateway.
    UnknownCheck,
    WebSocket,
    Webhook(&'a str),
}

impl<'a> Resource<'a> {
    /// Returns the resource of a path. An unknown path belongs to the page.
    fn at(path: &'a str) -> Self {
        match path {
            "/app.js" => Self::Asset(SCRIPT),
            "/line.js" => Self::Asset(LINE),
            "/memory.js" => Self::Asset(MEMORY),
            "/icon.svg" => Self::Asset(ICON),
            MANIFEST => Self::Manifest,
            HEALTH_PATH => Self::Health,
            WS_PATH => Self::WebSocket,
            _ if path.starts_with("/health") || path.starts_with("/ready") => Self::UnknownCheck,
            _ => match path.strip_prefix("/webhook/") {
                Some(channel) if !channel.is_empty() && !channel.contains('/') => {
                    Self::Webhook(channel)
                }
                _ => file(path).map_or(Self::Page, Self::Asset),
            },
        }
    }

    const fn allowed(&self) -> &'static str {
        match self {
            Self::Webhook(_) => "POST",
            _ => "GET, HEAD",
        }
    }
}

/// Returns the answer to a request. `path` is the path alone, without a query.
///
/// - `GET` and `HEAD` of `/health`: `ok`. Of `/ws` without an upgrade: 400, as with the known
///   gateway. Of another path that begins with `/health` or `/ready`: 404. Of anything else: the
///   page or one of its files.
/// - `POST /webhook/{channel}`: 404. Those with a channel adapter are handled before, see
///   [`Site`](crate::gateway::site::Site).
/// - Any other method: 405, with an empty body.
///
/// The answer to `HEAD` is the one to `GET`; an HTTP server leaves its body out.
pub fn respond(method: &Method, path: &str) -> Response<Bytes> {
    let resource = Resource::at(path);
    match (&resource, is_read(method)) {
        (Resource::Page, true) => page(PAGE.page(path)),
        (Resource::Asset(asset), true) => asset.respond(),
        (Resource::Manifest, true) => PAGE.manifest(),
        (Resource::Health, true) => text(StatusCode::OK, "ok"),
        (Resource::UnknownCheck, true) => {
            let why = "The checks of this gateway are /health and /ready.";
            text(StatusCode::NOT_FOUND, why)
        }
        (Resource::WebSocket, true) => {
            let why = "This address speaks WebSocket. The chat page is at /.";
            text(StatusCode::BAD_REQUEST, why)
        }
        (Resource::Webhook(channel), false) if method == Method::POST => text(
            StatusCode::NOT_FOUND,
            format!("no channel adapter for '{channel}'"),
        ),
        _ => not_allowed(resource.allowed()),
    }
}
