//! [`Transport`]: carries messages under a [`Driver`](super::Driver).

use std::error::Error;
use std::{fmt, io};

use bytes::Bytes;
use futures_core::Stream;
use futures_sink::Sink;

use crate::error::Disconnect;
use crate::message::{CloseFrame, Incoming, Outgoing, Text};

/// One message from the peer, owned.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Message {
    /// A text frame.
    Text(Text),
    /// A binary frame.
    Binary(Bytes),
    /// A ping; the transport has queued the pong and sends it with its next flush or read.
    Ping(Bytes),
    /// A pong.
    Pong(Bytes),
    /// A part of a message that still goes on. Reported where a message comes in more than 32 parts
    /// of less than 1 KiB, for each further one: it counts for the
    /// [rate limit](crate::rate::RateLimit), and can be ignored otherwise.
    Fragment,
    /// The peer's Close. The transport answers it.
    Close(Option<CloseFrame>),
}

impl Message {
    /// The payload's length in bytes.
    pub(crate) fn len(&self) -> usize {
        match self.as_incoming() {
            Ok(incoming) => incoming.len(),
            Err(close) => close.map_or(0, |close| 2 + close.reason.len()),
        }
    }

    /// Converts the message for a machine.
    ///
    /// # Errors
    /// Not an error as such: `Err` holds the contents of a Close.
    pub(crate) fn as_incoming(&self) -> Result<Incoming<'_>, Option<&CloseFrame>> {
        match self {
            Self::Text(text) => Ok(Incoming::Text(text.as_str())),
            Self::Binary(bytes) => Ok(Incoming::Binary(bytes)),
            Self::Ping(bytes) => Ok(Incoming::Ping(bytes)),
            Self::Pong(bytes) => Ok(Incoming::Pong(bytes)),
            Self::Fragment => Ok(Incoming::Fragment),
            Self::Close(frame) => Err(frame.as_ref()),
        }
    }
}

/// Prints kind and length only.
impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.as_incoming() {
            Ok(incoming) => incoming.fmt(f),
            Err(close) => f.debug_tuple("Close").field(&close).finish(),
        }
    }
}

/// A message transport: a stream of [`Message`]s and a sink of [`Outgoing`] frames.
///
/// Implemented for everything that has the two halves. Beyond them, a transport promises: it
/// answers pings and flushes the pong even while nothing is sent; it ends the stream with `None`
/// after the closing handshake or the end of the connection; `start_send` of a Close starts the
/// closing handshake. After [`TransportError::TooLarge`], [`TransportError::Overloaded`] and
/// [`TransportError::Protocol`] it tells the peer the reason and is polled until it ends, within
/// [`close_timeout`](super::DriverConfig::close_timeout); every other error is the end. Never pass
/// it [`Outgoing::Abort`]: drop the transport instead.
///
/// Over a stream of bytes, such as a Unix socket, use WebSockets:
/// [`WsDialer::upgrade`](super::ws::WsDialer::upgrade) and
/// [`WsStream::accept`](super::ws::WsStream::accept) take any stream (feature `ws`), and keep these
/// promises.
///
/// ```
/// use futures_util::{SinkExt, StreamExt};
/// use rpc_core::Outgoing;
/// use rpc_core::net::Transport;
///
/// /// Prints what another transport carries.
/// fn printing(transport: impl Transport) -> impl Transport {
///     transport
///         .inspect(|message| println!("<- {message:?}"))
///         .with(|frame: Outgoing| {
///             println!("-> {frame:?}");
///             std::future::ready(Ok(frame))
///         })
/// }
/// ```
pub trait Transport:
    Stream<Item = Result<Message, TransportError>>
    + Sink<Outgoing, Error = TransportError>
    + Unpin
    + Send
    + 'static
{
}

impl<T> Transport for T where
    T: Stream<Item = Result<Message, TransportError>>
        + Sink<Outgoing, Error = TransportError>
        + Unpin
        + Send
        + 'static
{
}

/// Why a transport failed. The connection is gone; a new one may be dialled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// Reading or writing failed.
    #[error("the connection failed: {0}")]
    Io(#[from] io::Error),
    /// A message of the peer is larger than the limit.
    #[error("a message of the peer is larger than {max} bytes")]
    TooLarge {
        /// The limit in bytes.
        max: usize,
    },
    /// A server has no room for a message of the peer at present, which was told to try again later (1013).
    #[error("there is no room for a message of the peer at present")]
    Overloaded,
    /// More came in than was taken, where the peer cannot be held back: in a page.
    #[error("more than {max} bytes of the peer wait to be read")]
    SlowConsumer {
        /// The limit in bytes.
        max: usize,
    },
    /// The peer violated the transport's protocol (bad WebSocket frames, bad UTF-8).
    #[error("the peer broke the transport's rules: {0}")]
    Protocol(String),
    /// The transport is closed already.
    #[error("the transport is closed")]
    Closed,
    /// Anything else, with its source.
    #[error("the transport failed: {0}")]
    Other(#[source] Box<dyn Error + Send + Sync>),
}

impl TransportError {
    /// The error for [`Outgoing::Abort`], which must not be passed to a transport.
    pub(crate) fn is_no_frame() -> Self {
        Self::Other("a transport is aborted by dropping it".into())
    }
}

impl From<&TransportError> for Disconnect {
    fn from(error: &TransportError) -> Self {
        match error {
            TransportError::TooLarge { max } => Self::TooLarge { max: *max },
            TransportError::SlowConsumer { .. } => Self::SlowConsumer,
            TransportError::Closed => Self::Eof,
            TransportError::Io(io)
                if matches!(
                    io.kind(),
                    io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset
                ) =>
            {
                Self::Eof
            }
            other => Self::Failed {
                message: other.to_string(),
            },
        }
    }
}
