//! [`respond`]: the agent's chat page, for the browser.

use bytes::Bytes;
use http::{Method, Response, StatusCode};

use crate::web::{Asset, STYLE, not_allowed, reads, text};

#[cfg(test)]
mod tests;

const FILES: [(&str, Asset); 10] = [
    ("/", Asset::page(include_bytes!("page.html"))),
    ("/along.js", Asset::script(include_bytes!("along.js"))),
    ("/app.js", Asset::script(include_bytes!("app.js"))),
    ("/items.js", Asset::script(include_bytes!("items.js"))),
    ("/key.js", Asset::script(include_bytes!("key.js"))),
    ("/line.js", Asset::script(include_bytes!("line.js"))),
    ("/memory.js", Asset::script(include_bytes!("memory.js"))),
    ("/app.css", STYLE),
    ("/agent.css", Asset::style(include_bytes!("agent.css"))),
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
#[must_use]
pub fn respond(method: &Method, path: &str) -> Response<Bytes> {
    let found = FILES.iter().find(|(place, _)| *place == path);
    match (found, reads(method)) {
        (Some((_, asset)), true) => asset.respond(),
        (Some(_), false) => not_allowed("GET, HEAD"),
        (None, _) => text(
            StatusCode::NOT_FOUND,
            "there is nothing here; the page is at /",
        ),
    }
}
