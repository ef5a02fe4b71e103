//! The messages between a machine and its transport.

use std::fmt;
use std::hash::{Hash, Hasher};

use bytes::Bytes;
#[cfg(all(feature = "ws", not(target_family = "wasm")))]
use tokio_tungstenite::tungstenite::Utf8Bytes;

use crate::json::{DecodeError, DecodeErrorKind};
use crate::text::beginning;

/// UTF-8 text whose clones share one allocation, so that a broadcast is encoded once.
#[derive(Clone)]
pub struct Text(Contents);

/// The bytes of a text, which are UTF-8.
#[derive(Clone)]
enum Contents {
    Bytes(Bytes),
    /// From a WebSocket, whose library has checked them; they need no second look.
    #[cfg(all(feature = "ws", not(target_family = "wasm")))]
    Checked(Utf8Bytes),
}

impl Text {
    /// Creates a text from bytes that hold UTF-8.
    ///
    /// # Errors
    /// The bytes' [`Utf8Error`](std::str::Utf8Error) if they are not UTF-8.
    pub fn new(bytes: Bytes) -> Result<Self, std::str::Utf8Error> {
        std::str::from_utf8(&bytes)?;
        Ok(Self::from_checked(bytes))
    }

    /// Creates a text from bytes that are known to be UTF-8, without a check.
    pub(crate) const fn from_checked(bytes: Bytes) -> Self {
        Self(Contents::Bytes(bytes))
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match &self.0 {
            // Every constructor checked the bytes, so the empty string is never taken.
            Contents::Bytes(bytes) => std::str::from_utf8(bytes).unwrap_or_default(),
            #[cfg(all(feature = "ws", not(target_family = "wasm")))]
            Contents::Checked(text) => text,
        }
    }

    fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Contents::Bytes(bytes) => bytes,
            #[cfg(all(feature = "ws", not(target_family = "wasm")))]
            Contents::Checked(text) => text.as_bytes(),
        }
    }

    /// Returns the length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.as_bytes().len()
    }

    /// Returns whether the text is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the shared bytes.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        match self.0 {
            Contents::Bytes(bytes) => bytes,
            #[cfg(all(feature = "ws", not(target_family = "wasm")))]
            Contents::Checked(text) => text.into(),
        }
    }
}

impl Default for Text {
    fn default() -> Self {
        Self::from_checked(Bytes::new())
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Text {}

impl Hash for Text {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

#[cfg(all(feature = "ws", not(target_family = "wasm")))]
impl Text {
    /// Creates a text from what a WebSocket has checked.
    pub(crate) const fn from_websocket(text: Utf8Bytes) -> Self {
        Self(Contents::Checked(text))
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self::from_checked(Bytes::from(text))
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::from_checked(Bytes::copy_from_slice(text.as_bytes()))
    }
}

/// Prints the length only: frames carry passwords and private text.
impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Text({} bytes)", self.len())
    }
}

/// One message from the peer, borrowed for the time of the call.
///
/// A WebSocket Close is not here: it reaches a machine as
/// [`handle_disconnect`](crate::Machine::handle_disconnect).
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Incoming<'a> {
    /// A text frame.
    Text(&'a str),
    /// A binary frame.
    Binary(&'a [u8]),
    /// A WebSocket ping. The transport has answered it already.
    Ping(&'a [u8]),
    /// A WebSocket pong.
    Pong(&'a [u8]),
    /// A small part of a message that still goes on, one of many. It counts for the rate limit.
    Fragment,
}

impl<'a> Incoming<'a> {
    /// Returns the payload's length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Binary(bytes) | Self::Ping(bytes) | Self::Pong(bytes) => bytes.len(),
            Self::Fragment => 0,
        }
    }

    /// Returns whether the payload is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the text of a text message, or of a binary one that holds UTF-8, as known servers
    /// read it; an error if it does not. `None` for other messages.
    #[must_use]
    pub fn text(self) -> Option<Result<&'a str, DecodeError>> {
        match self {
            Self::Text(text) => Some(Ok(text)),
            Self::Binary(bytes) => {
                let text = std::str::from_utf8(bytes);
                Some(text.map_err(|_| DecodeError::new(DecodeErrorKind::Binary)))
            }
            _ => None,
        }
    }

    /// Returns whether this is a text or binary message of the application, not a ping or pong.
    #[must_use]
    pub const fn is_data(&self) -> bool {
        matches!(self, Self::Text(_) | Self::Binary(_))
    }
}

/// Prints kind and length only.
impl fmt::Debug for Incoming<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self {
            Self::Text(_) => "Text",
            Self::Binary(_) => "Binary",
            Self::Ping(_) => "Ping",
            Self::Pong(_) => "Pong",
            Self::Fragment => "Fragment",
        };
        write!(f, "{kind}({} bytes)", self.len())
    }
}

/// One message for the peer.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outgoing {
    /// A text frame.
    Text(Text),
    /// A binary frame.
    Binary(Bytes),
    /// A WebSocket ping with its payload (at most 125 bytes).
    Ping(Bytes),
    /// A WebSocket Close. Nothing follows it.
    Close(CloseFrame),
    /// Not a frame: drop the connection now, without a closing handshake. Nothing follows it. The
    /// owner of the transport drops it; this is never passed to a transport.
    Abort,
}

impl Outgoing {
    /// Returns the payload's length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Binary(bytes) | Self::Ping(bytes) => bytes.len(),
            Self::Close(close) => 2 + close.reason.len(),
            Self::Abort => 0,
        }
    }

    /// Returns whether the payload is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Prints kind and length only, and the contents of a Close.
impl fmt::Debug for Outgoing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => text.fmt(f),
            Self::Binary(bytes) => Incoming::Binary(bytes).fmt(f),
            Self::Ping(bytes) => Incoming::Ping(bytes).fmt(f),
            Self::Close(frame) => f.debug_tuple("Close").field(frame).finish(),
            Self::Abort => f.write_str("Abort"),
        }
    }
}

/// Status code and reason of a WebSocket Close (RFC 6455, section 7.4).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CloseFrame {
    /// The status code.
    pub code: u16,
    /// A short human-readable reason, at most 123 bytes on the wire.
    pub reason: String,
}

impl CloseFrame {
    /// 1000: the purpose has been fulfilled.
    pub const NORMAL: u16 = 1000;
    /// 1001: an endpoint goes away (a server shuts down).
    pub const GOING_AWAY: u16 = 1001;
    /// 1002: the peer violated the protocol.
    pub const PROTOCOL_ERROR: u16 = 1002;
    /// 1008: the peer violated a policy.
    pub const POLICY: u16 = 1008;
    /// 1009: a message was too big.
    pub const TOO_BIG: u16 = 1009;
    /// 1011: an unexpected condition.
    pub const INTERNAL: u16 = 1011;
    /// 1013: try again later.
    pub const TRY_AGAIN: u16 = 1013;

    /// Creates a close frame; a reason longer than 123 bytes is cut at a character boundary.
    #[must_use]
    pub fn new(code: u16, reason: impl Into<String>) -> Self {
        let mut reason = reason.into();
        reason.truncate(beginning(&reason, 123).len());
        Self { code, reason }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_close_reason_is_truncated_at_a_char_boundary() {
        let frame = CloseFrame::new(CloseFrame::NORMAL, "é".repeat(100));
        assert_eq!(frame.reason.len(), 122);
    }

    #[test]
    fn debug_output_hides_the_text() {
        let out = Outgoing::Text(Text::from("hunter2"));
        assert_eq!(format!("{out:?}"), "Text(7 bytes)");
        let out = Outgoing::Binary(Bytes::from_static(b"hunter2"));
        assert_eq!(format!("{out:?}"), "Binary(7 bytes)");
        assert_eq!(format!("{:?}", Incoming::Text("hunter2")), "Text(7 bytes)");
    }

    #[test]
    fn clones_of_a_text_share_their_bytes() {
        let text = Text::from(String::from("hello"));
        let copy = text.clone();
        assert_eq!(text.into_bytes().as_ptr(), copy.into_bytes().as_ptr());
    }
}
