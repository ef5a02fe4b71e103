//! [`respond`]: what the gateway answers over plain HTTP: its chat page, its health, nothing else.

use bytes::Bytes;
use exoclaw_proto::limits::{HEALTH_PATH, WS_PATH};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Response, StatusCode};

#[cfg(test)]
mod tests;

const TEXT: &str = "text/plain; charset=utf-8";

const PAGE: Asset = Asset {
    kind: "text/html; charset=utf-8",
    body: include_bytes!("page.html"),
};
const SCRIPT: Asset = Asset {
    kind: "text/javascript; charset=utf-8",
    body: include_bytes!("app.js"),
};
const STYLE: Asset = Asset {
    kind: "text/css; charset=utf-8",
    body: include_bytes!("app.css"),
};
const ICON: Asset = Asset {
    kind: "image/svg+xml",
    body: include_bytes!("icon.svg"),
};

/// What the page may do: load its own files, connect to its own host, nothing else. Text never
/// becomes markup or script, and no other page can frame it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types 'none'";

/// On every answer. The files are small and change with the program, so they are not stored.
const HEADERS: [(HeaderName, &str); 6] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
];

/// A file of the page.
struct Asset {
    kind: &'static str,
    body: &'static [u8],
}

/// What a path stands for.
enum Resource<'a> {
    Asset(Asset),
    Health,
    WebSocket,
    Webhook(&'a str),
}

impl<'a> Resource<'a> {
    /// A path that is not known is one of the page's own.
    fn at(path: &'a str) -> Self {
        match path {
            "/app.js" => Self::Asset(SCRIPT),
            "/app.css" => Self::Asset(STYLE),
            "/icon.svg" => Self::Asset(ICON),
            HEALTH_PATH => Self::Health,
            WS_PATH => Self::WebSocket,
            _ => match path.strip_prefix("/webhook/") {
                Some(channel) if !channel.is_empty() && !channel.contains('/') => {
                    Self::Webhook(channel)
                }
                _ => Self::Asset(PAGE),
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

/// The answer to a request. `path` is the path alone, without a query.
///
/// - `GET` and `HEAD` of `/health`: `ok`. Of `/ws` without an upgrade: 400, as the known gateway
///   has it. Of anything else: the page or one of its files.
/// - `POST /webhook/{channel}`: 404, as there is no channel adapter.
/// - Any other method: 405, with an empty body.
///
/// The answer to `HEAD` is the one to `GET`; an HTTP server leaves its body out.
#[must_use]
pub fn respond(method: &Method, path: &str) -> Response<Bytes> {
    let resource = Resource::at(path);
    let reads = method == Method::GET || method == Method::HEAD;
    match (&resource, reads) {
        (Resource::Asset(asset), true) => {
            answer(StatusCode::OK, asset.kind, Bytes::from_static(asset.body))
        }
        (Resource::Health, true) => text(StatusCode::OK, "ok"),
        (Resource::WebSocket, true) => {
            let why = "This address speaks WebSocket. The chat page is at /.";
            text(StatusCode::BAD_REQUEST, why)
        }
        (Resource::Webhook(channel), false) if method == Method::POST => text(
            StatusCode::NOT_FOUND,
            format!("no channel adapter for '{channel}'"),
        ),
        _ => {
            let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "");
            set(response.headers_mut(), header::ALLOW, resource.allowed());
            response
        }
    }
}

fn text(status: StatusCode, body: impl Into<Bytes>) -> Response<Bytes> {
    answer(status, TEXT, body.into())
}

fn answer(status: StatusCode, kind: &'static str, body: Bytes) -> Response<Bytes> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    set(headers, header::CONTENT_TYPE, kind);
    for (name, value) in HEADERS {
        set(headers, name, value);
    }
    response
}

fn set(headers: &mut HeaderMap, name: HeaderName, value: &'static str) {
    headers.insert(name, HeaderValue::from_static(value));
}
