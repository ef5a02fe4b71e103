//! The opening handshake (RFC 6455, section 4).
//!
//! Our own, over `httparse`, as tungstenite's is. That one takes the first of two keys, versions or
//! accepts, reads a body behind a request as frames, ends at a 1xx, answers no bad request, and
//! selects no subprotocol: what would be left of it is the parser.

mod client;
mod get;
mod head;
mod server;

use http::header::{self, HeaderMap, HeaderName};

#[cfg(feature = "proxy")]
pub(super) use client::read_answer;
pub(super) use client::{UpgradeError, upgrade};
pub(super) use get::get;
pub(super) use head::{LINE_ENDED, SPEAKS_TLS};
pub(super) use server::accept;
#[cfg(feature = "server")]
pub(crate) use server::{
    EXPLANATION, accept_key, is_meant, is_upgrade, offers, select_subprotocol,
};

/// Returns whether both headers request a WebSocket, or agree to one.
fn switches(headers: &HeaderMap) -> bool {
    has_token(headers, &header::CONNECTION, "upgrade")
        && has_token(headers, &header::UPGRADE, "websocket")
}

fn has_token(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    list(headers, name).any(|value| value.eq_ignore_ascii_case(token.as_bytes()))
}

fn list<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a [u8]> {
    headers
        .get_all(name)
        .iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .map(<[u8]>::trim_ascii)
}

/// Returns the value of a header; `None` if it is missing or has different values.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a [u8]> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?;
    values.all(|value| value == first).then(|| first.as_bytes())
}
