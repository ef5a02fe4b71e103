//! [`Socket`]: a TCP connection, with TLS or without, or an upgraded one.

use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
#[cfg(feature = "server")]
use hyper::upgrade::Upgraded;
#[cfg(feature = "server")]
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// The connection under a [`WsStream`](super::WsStream) on either end: TCP, with TLS or without, or
/// what an HTTP server of another crate has upgraded.
///
/// Reads of less than 4 KiB are served from a larger read, so that a small buffer does not cause
/// many system calls.
pub struct Socket {
    inner: Inner,
    /// Bytes that were read ahead.
    ahead: Bytes,
}

/// Bytes read at once for a small buffer, onto the stack: an idle connection holds no memory for
/// it.
const READ: usize = 16 * 1024;
/// Buffers from this size on are read into directly.
const SMALL: usize = 4 * 1024;

enum Inner {
    Plain(TcpStream),
    #[cfg(feature = "tls")]
    Tls(Box<tokio_rustls::TlsStream<TcpStream>>),
    #[cfg(feature = "server")]
    Upgraded(Box<TokioIo<Upgraded>>),
}

/// Either kind of connection.
trait ByteStream: AsyncRead + AsyncWrite + Unpin {}
impl<S: AsyncRead + AsyncWrite + Unpin> ByteStream for S {}

impl Inner {
    fn line(&mut self) -> Pin<&mut dyn ByteStream> {
        match self {
            Self::Plain(tcp) => Pin::new(tcp),
            #[cfg(feature = "tls")]
            Self::Tls(tls) => Pin::new(tls.as_mut()),
            #[cfg(feature = "server")]
            Self::Upgraded(upgraded) => Pin::new(upgraded.as_mut()),
        }
    }
}

impl Socket {
    /// Returns the TCP connection underneath, for its addresses and options; `None` if it belongs to
    /// a server of another crate.
    #[must_use]
    #[allow(
        clippy::unnecessary_wraps,
        reason = "feature `server` has connections without"
    )]
    pub fn tcp(&self) -> Option<&TcpStream> {
        match &self.inner {
            Inner::Plain(tcp) => Some(tcp),
            #[cfg(feature = "tls")]
            Inner::Tls(tls) => Some(tls.get_ref().0),
            #[cfg(feature = "server")]
            Inner::Upgraded(_) => None,
        }
    }

    const fn over(inner: Inner) -> Self {
        let ahead = Bytes::new();
        Self { inner, ahead }
    }

    #[cfg(feature = "tls")]
    pub(crate) fn from_tls(stream: tokio_rustls::TlsStream<TcpStream>) -> Self {
        Self::over(Inner::Tls(Box::new(stream)))
    }

    #[cfg(feature = "server")]
    pub(crate) fn from_upgraded(upgraded: Upgraded) -> Self {
        Self::over(Inner::Upgraded(Box::new(TokioIo::new(upgraded))))
    }
}

impl From<TcpStream> for Socket {
    fn from(tcp: TcpStream) -> Self {
        Self::over(Inner::Plain(tcp))
    }
}

crate::debug::debug_fields!([] Socket, this => {
    peer: this.tcp().and_then(|tcp| tcp.peer_addr().ok()),
});

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { inner, ahead } = self.get_mut();
        let room = buf.remaining();
        if ahead.is_empty() {
            if room >= SMALL {
                return inner.line().poll_read(cx, buf);
            }
            let mut memory = [MaybeUninit::uninit(); READ];
            let mut read = ReadBuf::uninit(&mut memory);
            ready!(inner.line().poll_read(cx, &mut read))?;
            let (now, later) = read.filled().split_at(room.min(read.filled().len()));
            buf.put_slice(now);
            if !later.is_empty() {
                *ahead = Bytes::copy_from_slice(later);
            }
        } else {
            buf.put_slice(&ahead.split_to(room.min(ahead.len())));
            if ahead.is_empty() {
                *ahead = Bytes::new();
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().inner.line().poll_write(cx, buf)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().inner.line().poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().inner.line().poll_shutdown(cx)
    }
}
