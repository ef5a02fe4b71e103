//! [`Asset`] and [`text`]: answers over HTTP, of pages and of health, with security headers.

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Request, Response, StatusCode};
use rpc_core::net::server::is_read;

/// The type of a plain text.
pub const TEXT: &str = "text/plain; charset=utf-8";

/// The type of a page.
const HTML: &str = "text/html; charset=utf-8";

/// The content security policy: a page may load its own files and connect to its own host, nothing
/// else. Only HTML that the page's sanitiser has cleaned becomes markup, nothing becomes script, and no
/// other page can frame it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types dompurify";

/// The headers of every answer. The files are small and change with the program, so they are not
/// cached.
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

/// A file of a page.
#[derive(Clone, Copy, Debug)]
pub struct Asset {
    /// Its content type.
    pub kind: &'static str,
    /// Its contents.
    pub body: &'static [u8],
}

impl Asset {
    /// Creates a script.
    #[must_use]
    pub const fn script(body: &'static [u8]) -> Self {
        let kind = "text/javascript; charset=utf-8";
        Self { kind, body }
    }

    /// Creates a style sheet.
    #[must_use]
    pub const fn style(body: &'static [u8]) -> Self {
        let kind = "text/css; charset=utf-8";
        Self { kind, body }
    }

    /// Creates a drawing.
    #[must_use]
    pub const fn drawing(body: &'static [u8]) -> Self {
        let kind = "image/svg+xml";
        Self { kind, body }
    }

    /// Returns the answer with this file.
    #[must_use]
    pub fn respond(&self) -> Response<Bytes> {
        answer(StatusCode::OK, self.kind, Bytes::from_static(self.body))
    }
}

/// Returns a page.
#[must_use]
pub fn page(body: Bytes) -> Response<Bytes> {
    answer(StatusCode::OK, HTML, body)
}

/// Returns an answer in plain text.
pub fn text(status: StatusCode, body: impl Into<Bytes>) -> Response<Bytes> {
    answer(status, TEXT, body.into())
}

/// Returns an answer in JSON.
pub fn json(body: impl Into<Bytes>) -> Response<Bytes> {
    answer(StatusCode::OK, "application/json", body.into())
}

/// Answers a request for the health of a program: `/health` as long as it runs, and [`ready`]; `None` if
/// the request is for something else.
#[must_use]
pub fn health<B>(request: &Request<B>, state: Result<(), &str>) -> Option<Response<Bytes>> {
    let is_it = request.uri().path() == "/health" && is_read(request.method());
    let health = is_it.then(|| json(r#"{"status":"ok"}"#));
    health.or_else(|| ready(request, state))
}

/// Answers a request for `/ready`, whether a program serves now: 503 with the reason while it does not; `None` if it is
/// for something else.
#[must_use]
pub fn ready<B>(request: &Request<B>, state: Result<(), &str>) -> Option<Response<Bytes>> {
    let is_it = request.uri().path() == "/ready" && is_read(request.method());
    is_it.then(|| match state {
        Ok(()) => json(r#"{"status":"ready"}"#),
        Err(why) => text(StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
    })
}

/// Returns the answer of a server for WebSockets to any other request.
#[must_use]
pub fn upgrade_required(why: &'static str) -> Response<Bytes> {
    let mut response = text(StatusCode::UPGRADE_REQUIRED, why);
    set(response.headers_mut(), header::UPGRADE, "websocket");
    response
}

/// Returns the answer to a method that a path does not have.
#[must_use]
pub fn not_allowed(allowed: &'static str) -> Response<Bytes> {
    let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "");
    set(response.headers_mut(), header::ALLOW, allowed);
    response
}

/// Returns the tokens that a request shows as `Authorization: Bearer`.
pub fn bearer(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let values = headers.get_all(header::AUTHORIZATION).into_iter();
    values.filter_map(|value| {
        let (scheme, offered) = value.to_str().ok()?.split_once(' ')?;
        scheme
            .eq_ignore_ascii_case("bearer")
            .then(|| offered.trim())
    })
}

/// Returns an answer of this type.
#[must_use]
pub fn answer(status: StatusCode, kind: &'static str, body: Bytes) -> Response<Bytes> {
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
