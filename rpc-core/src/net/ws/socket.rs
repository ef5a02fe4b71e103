//! [`Socket`]: a TCP connection, with TLS or without.

use std::fmt;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// What a [`WsStream`](super::WsStream) runs over on either end: TCP, with TLS or without.
///
/// Who reads less than 4 KiB at once is given it from a larger read, so that a small buffer does not
/// mean many system calls.
pub struct Socket {
    inner: Inner,
    /// What was read already and nobody has asked for.
    ahead: Bytes,
}

/// Bytes read at once for a small buffer, onto the stack: a connection on which nothing comes holds no
/// memory for it.
const READ: usize = 16 * 1024;
/// Buffers from this size on are read into directly.
const SMALL: usize = 4 * 1024;

enum Inner {
    Plain(TcpStream),
    #[cfg(feature = "tls")]
    Tls(Box<tokio_rustls::TlsStream<TcpStream>>),
}

impl Socket {
    /// Whether the connection is encrypted.
    #[must_use]
    pub const fn is_tls(&self) -> bool {
        match &self.inner {
            Inner::Plain(_) => false,
            #[cfg(feature = "tls")]
            Inner::Tls(_) => true,
        }
    }

    /// The TCP connection underneath, for its addresses and options.
    #[must_use]
    pub fn tcp(&self) -> &TcpStream {
        match &self.inner {
            Inner::Plain(tcp) => tcp,
            #[cfg(feature = "tls")]
            Inner::Tls(tls) => tls.get_ref().0,
        }
    }

    #[cfg(feature = "tls")]
    pub(crate) fn from_tls(stream: tokio_rustls::TlsStream<TcpStream>) -> Self {
        Inner::Tls(Box::new(stream)).into()
    }
}

impl From<TcpStream> for Socket {
    fn from(tcp: TcpStream) -> Self {
        Inner::Plain(tcp).into()
    }
}

impl From<Inner> for Socket {
    fn from(inner: Inner) -> Self {
        let ahead = Bytes::new();
        Self { inner, ahead }
    }
}

impl fmt::Debug for Socket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Socket")
            .field("peer", &self.tcp().peer_addr().ok())
            .field("tls", &self.is_tls())
            .finish()
    }
}

impl AsyncRead for Inner {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_read(cx, buf),
            #[cfg(feature = "tls")]
            Self::Tls(tls) => Pin::new(tls.as_mut()).poll_read(cx, buf),
        }
    }
}

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
                return Pin::new(inner).poll_read(cx, buf);
            }
            let mut memory = [MaybeUninit::uninit(); READ];
            let mut read = ReadBuf::uninit(&mut memory);
            ready!(Pin::new(inner).poll_read(cx, &mut read))?;
            let (now, later) = read.filled().split_at(room.min(read.filled().len()));
            buf.put_slice(now);
            *ahead = Bytes::copy_from_slice(later);
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
        match &mut self.get_mut().inner {
            Inner::Plain(tcp) => Pin::new(tcp).poll_write(cx, buf),
            #[cfg(feature = "tls")]
            Inner::Tls(tls) => Pin::new(tls.as_mut()).poll_write(cx, buf),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().inner {
            Inner::Plain(tcp) => Pin::new(tcp).poll_write_vectored(cx, bufs),
            #[cfg(feature = "tls")]
            Inner::Tls(tls) => Pin::new(tls.as_mut()).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match &self.inner {
            Inner::Plain(tcp) => tcp.is_write_vectored(),
            #[cfg(feature = "tls")]
            Inner::Tls(tls) => tls.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().inner {
            Inner::Plain(tcp) => Pin::new(tcp).poll_flush(cx),
            #[cfg(feature = "tls")]
            Inner::Tls(tls) => Pin::new(tls.as_mut()).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().inner {
            Inner::Plain(tcp) => Pin::new(tcp).poll_shutdown(cx),
            #[cfg(feature = "tls")]
            Inner::Tls(tls) => Pin::new(tls.as_mut()).poll_shutdown(cx),
        }
    }
}
