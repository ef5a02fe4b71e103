//! [`Socket`]: a TCP connection, with TLS or without, or an upgraded one.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

#[cfg(feature = "server")]
use hyper::upgrade::Upgraded;
#[cfg(feature = "server")]
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// The connection under a [`WsStream`](super::WsStream) on either end: TCP, with TLS or without, or
/// what an HTTP server of another crate has upgraded.
pub struct Socket(Inner);

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
        match &self.0 {
            Inner::Plain(tcp) => Some(tcp),
            #[cfg(feature = "tls")]
            Inner::Tls(tls) => Some(tls.get_ref().0),
            #[cfg(feature = "server")]
            Inner::Upgraded(_) => None,
        }
    }

    #[cfg(feature = "tls")]
    pub(crate) fn from_tls(stream: tokio_rustls::TlsStream<TcpStream>) -> Self {
        Self(Inner::Tls(Box::new(stream)))
    }

    #[cfg(feature = "server")]
    pub(crate) fn from_upgraded(upgraded: Upgraded) -> Self {
        Self(Inner::Upgraded(Box::new(TokioIo::new(upgraded))))
    }
}

impl From<TcpStream> for Socket {
    fn from(tcp: TcpStream) -> Self {
        Self(Inner::Plain(tcp))
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
        self.get_mut().0.line().poll_read(cx, buf)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().0.line().poll_write(cx, buf)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().0.line().poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().0.line().poll_shutdown(cx)
    }
}
