//! [`respond`]: the agent's chat page, for the browser.

use bytes::Bytes;
use http::{Method, Response, StatusCode};
use rpc_core::net::server::is_read;

use crate::page::{MANIFEST, Skeleton, file};
use crate::web::{Asset, not_allowed, page, text};

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
};

const FILES: [(&str, Asset); 9] = [
    ("/along.js", Asset::script(include_bytes!("along.js"))),
    ("/app.js", Asset::script(include_bytes!("app.js"))),
    ("/ask.js", Asset::script(include_bytes!("ask.js"))),
    ("/events.js", Asset::script(include_bytes!("events.js"))),
    ("/items.js", Asset::script(include_bytes!("items.js"))),
    ("/key.js", Asset::script(include_bytes!("key.js"))),
    ("/line.js", Asset::script(include_bytes!("line.js"))),
    ("/memory.js", Asset::script(include_bytes!("memory.js"))),
    ("/icon.svg", Asset::drawing(include_bytes!("icon.svg"))),
];

/// Returns the answer to a request that the host itself does not handle. `path` is the path alone,
/// without a query.
///
/// - `GET` and `HEAD` of `/` and the page's files: the page and its files.
/// - Any other method for them: 405, with an empty body.
/// - Anything else: 404.
///
/// The answer to `HEAD` is the one to `GET`; an HTTP server leaves its body out.
pub fn respond(method: &Method, path: &str) -> Response<Bytes> {
    let own = FILES.iter().find(|(place, _)| *place == path);
    let found = own.map(|(_, asset)| *asset).or_else(|| file(path));
    match (path, found, is_read(method)) {
        ("/", _, true) => page(PAGE.page(path)),
        (MANIFEST, _, true) => PAGE.manifest(),
        (_, Some(asset), true) => asset.respond(),
        ("/" | MANIFEST, ..) | (_, Some(_), false) => not_allowed("GET, HEAD"),
        _ => text(
            StatusCode::NOT_FOUND,
            "there is nothing here; the page is at /",
        ),
    }
}
