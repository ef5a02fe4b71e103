//! [`Body`]: the body of a reply, whole or streamed.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::Stream;
use futures_util::StreamExt as _;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Body as _, Frame, SizeHint};

use super::permits::Slot;

/// Creates the reply to a plain HTTP request, with a body of this `Content-Type`.
#[must_use]
pub fn reply<B: From<Bytes>>(
    status: StatusCode,
    content_type: &'static str,
    body: impl Into<Bytes>,
) -> Response<B> {
    let mut reply = Response::new(B::from(body.into()));
    *reply.status_mut() = status;
    let content_type = HeaderValue::from_static(content_type);
    reply.headers_mut().insert(CONTENT_TYPE, content_type);
    reply
}

/// Returns whether a request reads a page: GET, and HEAD, whose reply is sent without its body.
#[must_use]
pub fn is_read(method: &Method) -> bool {
    [Method::GET, Method::HEAD].contains(method)
}

/// The body of the reply to a plain HTTP request, also an [`http_body::Body`](https://docs.rs/http-body/1/http_body/trait.Body.html).
#[derive(Debug)]
pub struct Body {
    inner: UnsyncBoxBody<Bytes, Infallible>,
    /// What counts until the body is sent.
    _slot: Option<Slot>,
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
        let frames = pieces.map(|piece| Ok(Frame::data(piece)));
        Self {
            inner: StreamBody::new(frames).boxed_unsync(),
            _slot: None,
        }
    }

    pub(super) fn is_streamed(&self) -> bool {
        self.inner.size_hint().exact().is_none()
    }

    /// Keeps the slot until the body is sent or dropped.
    pub(super) fn holding(self, slot: Option<Slot>) -> Self {
        Self {
            _slot: slot,
            ..self
        }
    }
}

impl<T: Into<Bytes>> From<T> for Body {
    fn from(whole: T) -> Self {
        Self {
            inner: Full::new(whole.into()).boxed_unsync(),
            _slot: None,
        }
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.inner).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
