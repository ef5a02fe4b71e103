//! The text of a [`Pair`](super::Pair)'s frames.

use crate::message::{Incoming, Outgoing};

/// Returns the text for a frame to the peer.
#[must_use]
pub(crate) fn show_outgoing(frame: &Outgoing) -> String {
    match frame {
        Outgoing::Text(text) => text.as_str().to_owned(),
        Outgoing::Binary(bytes) => format!("(binary {} bytes)", bytes.len()),
        Outgoing::Ping(_) => "(ping)".to_owned(),
        Outgoing::Close(close) if close.reason.is_empty() => format!("(close {})", close.code),
        Outgoing::Close(close) => format!("(close {} {})", close.code, close.reason),
        Outgoing::Abort => "(abort)".to_owned(),
    }
}

/// Returns the text for a message from the peer.
#[must_use]
pub(crate) fn show_incoming(message: &Incoming<'_>) -> String {
    match message {
        Incoming::Text(text) => (*text).to_owned(),
        Incoming::Binary(bytes) => format!("(binary {} bytes)", bytes.len()),
        Incoming::Ping(_) => "(ping)".to_owned(),
        Incoming::Pong(_) => "(pong)".to_owned(),
        Incoming::Fragment => "(fragment)".to_owned(),
    }
}
