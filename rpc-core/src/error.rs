//! Errors, as enums to match on: refusals, call errors, close reasons.

use std::time::Duration;

use crate::message::CloseFrame;

/// Why a machine lost its transport, as the driver saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Disconnect {
    /// The peer sent a Close; `None` if it carried no code.
    PeerClosed(Option<CloseFrame>),
    /// The stream ended without a Close (the connection was cut).
    Eof,
    /// The transport failed.
    Failed {
        /// The error text of the transport.
        message: String,
    },
    /// The peer sent a message over the size limit.
    TooLarge {
        /// The limit in bytes.
        max: usize,
    },
    /// The peer took no data for longer than the write timeout.
    WriteStalled,
    /// More came in than this side took, and the transport cannot hold the peer back.
    SlowConsumer,
    /// This side dropped the transport.
    Local,
}

/// What stopped a connection from being established, for programs that suggest what to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectErrorKind {
    /// The URL cannot be dialled.
    BadUrl,
    /// The host name has no address.
    UnknownHost,
    /// Nothing listens at the address.
    Refused,
    /// The server hung up before it answered.
    HungUp,
    /// No answer came in time.
    TimedOut,
    /// The system reports another error.
    Unreachable,
    /// The proxy was not reached, or opened no tunnel.
    Proxy,
    /// The server's certificate is not trusted.
    Certificate,
    /// The URL asks for TLS, and the server does not speak it.
    PlainServer,
    /// The server speaks TLS, and the URL does not ask for it.
    TlsServer,
    /// TLS failed otherwise.
    Tls,
    /// The server answered over HTTP, with this status, in place of the protocol.
    Status(u16),
    /// What the server answered is neither HTTP nor WebSocket.
    Handshake,
}

/// Why a connection ended. [`retry`](Self::retry) says for every variant whether a new connection
/// may help.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CloseReason {
    /// The application closed it.
    #[error("closed by this side")]
    Local,
    /// The application drained the connection.
    #[error("drained by this side")]
    Drained,
    /// The peer sent a Close.
    #[error("closed by the peer ({}{}{})", .0.code, if .0.reason.is_empty() { "" } else { ": " }, .0.reason)]
    Peer(CloseFrame),
    /// The peer sent a Close without a code, or the connection was cut.
    #[error("the connection was lost")]
    Lost,
    /// The transport failed.
    #[error("the transport failed: {message}")]
    Transport {
        /// The error text of the transport.
        message: String,
    },
    /// No connection could be established.
    #[error("could not connect: {message}")]
    Connect {
        /// What stopped it.
        kind: ConnectErrorKind,
        /// The error text of the dialer.
        message: String,
        /// Whether another attempt may succeed.
        retryable: bool,
    },
    /// The peer did not answer a ping in time.
    #[error("the peer answered no ping for {after:?}")]
    KeepAlive {
        /// How long the pong was awaited.
        after: Duration,
    },
    /// The opening handshake did not finish in time.
    #[error("the handshake did not finish within {after:?}")]
    HandshakeTimeout {
        /// The deadline that passed.
        after: Duration,
    },
    /// The peer refused the credentials.
    #[error("authentication failed: {message}")]
    Authentication {
        /// The message of the peer.
        message: String,
    },
    /// The peer refused this side for a reason other than its credentials: a name that is taken, or
    /// a registration that breaks a rule.
    #[error("refused by the peer: {message}")]
    Refused {
        /// The message of the peer.
        message: String,
        /// Whether another attempt may succeed.
        retryable: bool,
    },
    /// The peer violated the protocol in a way that cannot be skipped.
    #[error("the peer violated the protocol: {message}")]
    Violation {
        /// A description of the violation.
        message: String,
    },
    /// A message of the peer was larger than the limit.
    #[error("a message of the peer was larger than {max} bytes")]
    TooLarge {
        /// The limit in bytes.
        max: usize,
    },
    /// The peer sent more than the rate limit allows.
    #[error("the peer sent too many messages")]
    RateLimited,
    /// One side did not take data as fast as the other sent it.
    #[error("the receiver was too slow")]
    SlowConsumer,
    /// The task that owned the connection was dropped or panicked.
    #[error("the connection's task is gone")]
    TaskGone,
}

impl CloseReason {
    /// Returns whether and how a new connection may help. This says nothing about repeating a call:
    /// see [`CallError::is_retryable`].
    #[must_use]
    pub const fn retry(&self) -> Retry {
        match self {
            Self::Local
            | Self::Drained
            | Self::Authentication { .. }
            | Self::TaskGone
            | Self::Refused {
                retryable: false, ..
            }
            | Self::Connect {
                retryable: false, ..
            } => Retry::Never,
            _ => Retry::Backoff,
        }
    }

    /// Returns whether the peer closed because a message of this side was too large. Sending it
    /// again would end the next connection too.
    #[must_use]
    pub const fn is_our_message_too_large(&self) -> bool {
        matches!(self, Self::Peer(frame) if frame.code == CloseFrame::TOO_BIG)
    }
}

impl From<Disconnect> for CloseReason {
    fn from(why: Disconnect) -> Self {
        match why {
            Disconnect::PeerClosed(Some(frame)) => Self::Peer(frame),
            Disconnect::PeerClosed(None) | Disconnect::Eof => Self::Lost,
            Disconnect::Failed { message } => Self::Transport { message },
            Disconnect::TooLarge { max } => Self::TooLarge { max },
            Disconnect::WriteStalled | Disconnect::SlowConsumer => Self::SlowConsumer,
            Disconnect::Local => Self::Local,
        }
    }
}

/// Whether a new connection is worth an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Retry {
    /// Never: it would end the same way.
    Never,
    /// After the next delay of the backoff.
    Backoff,
    /// After this long, as the peer asked.
    After(Duration),
}

/// Whether a failed call may have reached the peer. Repeat a side effect only on
/// [`NotSent`](Self::NotSent). Exhaustive on purpose: there is no fourth case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// No byte of it left this machine.
    NotSent,
    /// It was handed to the transport, and may or may not have arrived.
    Unknown,
    /// The peer answered it.
    Delivered,
}

/// A command that was refused at once. Nothing was changed or sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The connection is closed or closing.
    #[error("the connection is closed")]
    Closed,
    /// There is no connection at the moment. It may come back.
    #[error("not connected")]
    NotConnected,
    /// The handshake has not finished.
    #[error("the handshake has not finished")]
    NotReady,
    /// The client is draining and accepts nothing new.
    #[error("the connection is draining: no new calls")]
    Draining,
    /// The message is larger than the limit; it would be refused again.
    #[error("a message of {size} bytes is larger than the limit of {max}")]
    TooLarge {
        /// The message's size in bytes.
        size: usize,
        /// The limit in bytes.
        max: usize,
    },
    /// Too many calls are in flight.
    #[error("{max} calls are in flight already")]
    TooManyCalls {
        /// The limit.
        max: usize,
    },
    /// The peer does not take frames as fast as they are queued.
    #[error("the send queue is full")]
    QueueFull,
    /// An argument breaks a rule of the protocol.
    #[error("invalid {what}: {why}")]
    Invalid {
        /// Which argument.
        what: &'static str,
        /// Which rule.
        why: String,
    },
    /// A value could not be written as JSON.
    #[error("could not be encoded: {message}")]
    Encode {
        /// The error text of the encoder.
        message: String,
    },
    /// No open request on this connection has this id.
    #[error("no such request is open")]
    UnknownId,
}

impl Refused {
    /// Creates the refusal of an argument that breaks a rule of the protocol.
    pub fn invalid(what: &'static str, why: impl Into<String>) -> Self {
        let why = why.into();
        Self::Invalid { what, why }
    }

    /// Returns whether the same command may succeed later without a change.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        matches!(
            self,
            Self::NotConnected | Self::NotReady | Self::TooManyCalls { .. } | Self::QueueFull
        )
    }
}

/// Why a call ended without its value. `R` is the peer's error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError<R> {
    /// The peer answered with an error.
    #[error("the peer answered with an error: {0}")]
    Remote(R),
    /// No answer came in time. A late answer is dropped.
    #[error("no answer came in time")]
    TimedOut {
        /// Whether the call may have reached the peer.
        delivery: Delivery,
    },
    /// The connection ended first.
    #[error("{reason}")]
    Closed {
        /// Why it ended.
        reason: CloseReason,
        /// Whether the call may have reached the peer.
        delivery: Delivery,
    },
    /// The call was refused at once and never sent.
    #[error("refused: {0}")]
    Refused(Refused),
    /// The caller cancelled the call.
    #[error("the call was cancelled")]
    Cancelled {
        /// Whether the call may have reached the peer.
        delivery: Delivery,
    },
}

impl<R> CallError<R> {
    /// Returns whether the call may have reached the peer.
    #[must_use]
    pub const fn delivery(&self) -> Delivery {
        match self {
            Self::Remote(_) => Delivery::Delivered,
            Self::TimedOut { delivery }
            | Self::Closed { delivery, .. }
            | Self::Cancelled { delivery } => *delivery,
            Self::Refused(_) => Delivery::NotSent,
        }
    }

    /// Returns whether the same call may succeed later. Check [`delivery`](Self::delivery) first if
    /// a second execution would do harm.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::Remote(_) | Self::Cancelled { .. } => false,
            Self::TimedOut { .. } => true,
            Self::Closed { reason, .. } => {
                // An answer that was too large once will be again.
                !matches!(reason, CloseReason::TooLarge { .. })
                    && !matches!(reason.retry(), Retry::Never)
                    && !reason.is_our_message_too_large()
            }
            Self::Refused(refused) => refused.is_retryable(),
        }
    }
}

impl<R> From<Refused> for CallError<R> {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_oversized_message_is_never_retried() {
        let reason = CloseReason::Peer(CloseFrame::new(CloseFrame::TOO_BIG, ""));
        // The connection may come back, the message must not.
        assert_eq!(reason.retry(), Retry::Backoff);
        let delivery = Delivery::Delivered;
        assert!(!CallError::<()>::Closed { reason, delivery }.is_retryable());
        let reason = CloseReason::TooLarge { max: 1 };
        assert_eq!(reason.retry(), Retry::Backoff);
        assert!(!CallError::<()>::Closed { reason, delivery }.is_retryable());
        assert!(!Refused::TooLarge { size: 2, max: 1 }.is_retryable());
    }

    #[test]
    fn a_refusal_says_whether_to_retry() {
        let refused = |retryable| CloseReason::Refused {
            message: "the name is taken".to_owned(),
            retryable,
        };
        assert_eq!(refused(true).retry(), Retry::Backoff);
        assert_eq!(refused(false).retry(), Retry::Never);
        assert_eq!(
            refused(true).to_string(),
            "refused by the peer: the name is taken"
        );
    }

    #[test]
    fn a_refused_call_was_not_sent() {
        let error = CallError::<String>::from(Refused::QueueFull);
        assert_eq!(error.delivery(), Delivery::NotSent);
        assert!(error.is_retryable());
        let invalid = CallError::<String>::from(Refused::UnknownId);
        assert!(!invalid.is_retryable());
    }

    #[test]
    fn a_close_reason_displays_as_one_sentence() {
        let reason = CloseReason::Peer(CloseFrame::new(1001, "restart"));
        assert_eq!(reason.to_string(), "closed by the peer (1001: restart)");
    }
}
