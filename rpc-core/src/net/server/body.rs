//! [`Body`]: the body of a reply, whole or streamed.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_core::Stream;
use hyper::body::{Frame, SizeHint};

/// The body of the reply to a plain HTTP request.
pub struct Body(Kind);

enum Kind {
    Whole(Bytes),
    Streamed(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
}

impl Body {
    /// Creates a body that is sent piece by piece, each as soon as the stream yields it, and ends
    /// with the stream.
    ///
    /// The stream is dropped as soon as the peer disconnects, also while it yields nothing, and
    /// when the peer has [taken nothing for too long](super::ServerLimits::write_timeout). It is
    /// polled only as fast as the peer takes data.
    #[must_use]
    pub fn stream(pieces: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self(Kind::Streamed(Box::pin(pieces)))
    }

    pub(super) const fn is_streamed(&self) -> bool {
        matches!(self.0, Kind::Streamed(_))
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self(Kind::Whole(bytes))
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
        match &self.0 {
            Kind::Whole(bytes) => write!(f, "Body({} bytes)", bytes.len()),
            Kind::Streamed(_) => f.write_str("Body(streamed)"),
        }
    }
}

/// The pieces of the body, to send through another HTTP server.
impl Stream for Body {
    type Item = Bytes;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        match &mut self.get_mut().0 {
            Kind::Whole(bytes) => {
                let bytes = std::mem::take(bytes);
                Poll::Ready((!bytes.is_empty()).then_some(bytes))
            }
            Kind::Streamed(pieces) => pieces.as_mut().poll_next(cx),
        }
    }
}

/// A [`Body`] in the form that hyper takes.
pub(super) struct Sent(pub(super) Body);

impl hyper::body::Body for Sent {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = ready!(Pin::new(&mut self.get_mut().0).poll_next(cx));
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        match &self.0.0 {
            Kind::Whole(bytes) => bytes.is_empty(),
            Kind::Streamed(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0.0 {
            Kind::Whole(bytes) => {
                SizeHint::with_exact(u64::try_from(bytes.len()).unwrap_or(u64::MAX))
            }
            Kind::Streamed(_) => SizeHint::default(),
        }
    }
}
