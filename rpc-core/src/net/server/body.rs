//! [`Body`]: the body of a reply, whole or streamed.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_core::Stream;
use hyper::body::{Frame, SizeHint};

use super::permits::Slot;

/// The body of the reply to a plain HTTP request, also an [`http_body::Body`](hyper::body::Body).
pub struct Body {
    kind: Kind,
    /// What counts until the body is sent.
    _slot: Option<Slot>,
}

enum Kind {
    Whole(Bytes),
    Streamed(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
}

impl Body {
    /// Creates a body that is sent piece by piece, each as soon as the stream yields it, and ends
    /// with the stream.
    ///
    /// The stream is dropped as soon as the peer disconnects, also while it yields nothing, and
    /// when the peer has [taken nothing for too long](super::ServerLimits::with_write_timeout). It is
    /// polled only as fast as the peer takes data.
    #[must_use]
    pub fn stream(pieces: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Kind::Streamed(Box::pin(pieces)).into()
    }

    pub(super) const fn is_streamed(&self) -> bool {
        matches!(self.kind, Kind::Streamed(_))
    }

    /// Keeps the slot until the body is sent or dropped.
    pub(super) fn holding(self, slot: Option<Slot>) -> Self {
        Self {
            _slot: slot,
            ..self
        }
    }
}

impl From<Kind> for Body {
    fn from(kind: Kind) -> Self {
        Self { kind, _slot: None }
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Kind::Whole(bytes).into()
    }
}

impl From<String> for Body {
    fn from(text: String) -> Self {
        Bytes::from(text).into()
    }
}

impl From<&'static str> for Body {
    fn from(text: &'static str) -> Self {
        Bytes::from_static(text.as_bytes()).into()
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Whole(bytes) => write!(f, "Body({} bytes)", bytes.len()),
            Kind::Streamed(_) => f.write_str("Body(streamed)"),
        }
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = match &mut self.get_mut().kind {
            Kind::Whole(bytes) => {
                let bytes = std::mem::take(bytes);
                (!bytes.is_empty()).then_some(bytes)
            }
            Kind::Streamed(pieces) => ready!(pieces.as_mut().poll_next(cx)),
        };
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Whole(bytes) => bytes.is_empty(),
            Kind::Streamed(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Whole(bytes) => {
                SizeHint::with_exact(u64::try_from(bytes.len()).unwrap_or(u64::MAX))
            }
            Kind::Streamed(_) => SizeHint::default(),
        }
    }
}
