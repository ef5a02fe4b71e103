//! [`respond`]: the agent's chat page, for the browser.

use bytes::Bytes;
use http::{Method, Response, StatusCode};
use rpc_core::net::server::is_read;

use crate::page::Skeleton;
use crate::web::{not_allowed, page, text};

#[cfg(test)]
mod tests;

const PAGE: Skeleton = Skeleton {
    name: "Agent",
    examples: [
        "What is in this folder, and what is it for?",
        "Find what is left to do in these files",
        "Write a README for this folder",
    ],
    entry: include_str!("entry.html"),
    extras: include_str!("extras.html"),
    attach: include_str!("attach.html"),
    choices: include_str!("choices.html"),
    files: files! {
        "/" script "along.js" script "app.js" script "ask.js" script "events.js" script "items.js"
        script "key.js" script "line.js" script "memory.js" drawing "icon.svg"
    },
};

/// Returns the answer to a request that the host itself does not handle. `path` is the path alone,
/// without a query.
///
/// - `GET` and `HEAD` of `/` and the page's files: the page and its files.
/// - Any other method for them: 405, with an empty body.
/// - Anything else: 404.
///
/// The answer to `HEAD` is the one to `GET`; an HTTP server leaves its body out.
pub fn respond(method: &Method, path: &str) -> Response<Bytes> {
    let found = match path {
        "/" => Some(page(PAGE.page(path))),
        _ => PAGE.file(path),
    };
    match found {
        Some(answer) if is_read(method) => answer,
        Some(_) => not_allowed("GET, HEAD"),
        None => text(
            StatusCode::NOT_FOUND,
            "there is nothing here; the page is at /",
        ),
    }
}
