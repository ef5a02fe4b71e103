//! [`respond`]: the gateway's answers over plain HTTP: its chat page and its health.

use bytes::Bytes;
use exoclaw_proto::limits::{HEALTH_PATH, WS_PATH};
use http::{Method, Response, StatusCode};
use rpc_core::net::server::is_read;

use crate::page::Skeleton;
use crate::web::{not_allowed, page, text};

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
    files: files! {
        "/" script "app.js" script "line.js" script "memory.js" drawing "icon.svg"
    },
};
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
    let channel = path.strip_prefix("/webhook/");
    let channel = channel.filter(|it| !it.is_empty() && !it.contains('/'));
    match (path, channel) {
        (_, Some(channel)) if method == Method::POST => text(
            StatusCode::NOT_FOUND,
            format!("no channel adapter for '{channel}'"),
        ),
        (_, Some(_)) => not_allowed("POST"),
        _ if !is_read(method) => not_allowed("GET, HEAD"),
        (HEALTH_PATH, _) => text(StatusCode::OK, "ok"),
        (WS_PATH, _) => {
            let why = "This address speaks WebSocket. The chat page is at /.";
            text(StatusCode::BAD_REQUEST, why)
        }
        // The page in its place would pass for a healthy gateway.
        _ if path.starts_with("/health") || path.starts_with("/ready") => {
            let why = "The checks of this gateway are /health and /ready.";
            text(StatusCode::NOT_FOUND, why)
        }
        _ => {
            let file = PAGE.file(path);
            file.unwrap_or_else(|| page(PAGE.page(path)))
        }
    }
}
