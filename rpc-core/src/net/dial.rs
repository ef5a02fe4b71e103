//! [`Dialer`]: how a [`Link`](super::Link) gets its next transport, and from which [`Node`].

use std::error::Error;
use std::fmt;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use super::transport::Transport;
use crate::error::{CloseReason, ConnectErrorKind};

/// Opens connections. A [`Link`](super::Link) dials once per attempt, with its own deadline around
/// the whole attempt.
///
/// ```
/// use rpc_core::net::{DialError, Dialer, mem};
/// use tokio::sync::mpsc;
///
/// /// Makes each connection in memory, and hands its other end to a server.
/// struct InProcess(mpsc::Sender<mem::MemTransport>);
///
/// impl Dialer for InProcess {
///     type Transport = mem::MemTransport;
///
///     async fn dial(&self) -> Result<Self::Transport, DialError> {
///         let (here, there) = mem::duplex(16);
///         self.0.send(there).await.map_err(|_| DialError::Exhausted)?;
///         Ok(here)
///     }
/// }
/// ```
pub trait Dialer: Send + Sync + 'static {
    /// The transport of a successful attempt.
    type Transport: Transport;

    /// Connects once, including the handshakes of TCP, TLS and WebSocket.
    ///
    /// # Errors
    /// [`DialError`], whose [`is_retryable`](DialError::is_retryable) decides whether the link
    /// tries again.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the attempt and leaves nothing behind.
    fn dial(&self) -> impl Future<Output = Result<Self::Transport, DialError>> + Send;

    /// Returns the node that the last successful dial reached, for
    /// [`Link::node`](super::Link::node). A dialer around another one passes its answer on.
    /// Default: `None`.
    fn node(&self) -> Option<Node> {
        None
    }
}

/// The server that a connection goes to: one URL of the dialer's list, and one answer of its name.
/// Cheap to clone. `Display` prints the URL, and the address if the URL has a name:
/// `wss://chat.example/rpc.ws (10.0.0.7:443)`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node(Arc<NodeInner>);

#[derive(Debug, PartialEq, Eq, Hash)]
struct NodeInner {
    index: usize,
    url: Box<str>,
    address: SocketAddr,
}

impl Node {
    /// Creates a node from its URL, the index of the URL in the list, and the address. The URL is
    /// printed: leave its secrets out.
    #[must_use]
    pub fn new(url: impl Into<Box<str>>, index: usize, address: SocketAddr) -> Self {
        let url = url.into();
        Self(Arc::new(NodeInner {
            index,
            url,
            address,
        }))
    }

    /// Returns the URL without credentials and query.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.0.url
    }

    /// Returns the index of the URL in the list, from 0.
    #[must_use]
    pub fn index(&self) -> usize {
        self.0.index
    }

    /// Returns the address, one of the answers for the URL's name.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.0.address
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NodeInner { url, address, .. } = &*self.0;
        f.write_str(url)?;
        let is_named = !url.contains(&address.ip().to_string());
        if is_named {
            write!(f, " ({address})")?;
        }
        Ok(())
    }
}

/// Why a connection could not be established.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DialError {
    /// The URL cannot be dialled; a retry does not help.
    #[error("bad URL {url:?}: {why}")]
    BadUrl {
        /// The URL without its credentials and query.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// The connection was not established in time: TCP, TLS and the upgrade share one deadline.
    #[error("not connected within {after:?}")]
    TimedOut {
        /// The deadline that passed.
        after: Duration,
    },
    /// The name could not be resolved, nothing listens there, or the connection failed.
    #[error("could not reach {host}: {source}")]
    Unreachable {
        /// Host and port.
        host: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// The proxy was not reached, or opened no tunnel to the server.
    #[error("could not reach {host} through the proxy {proxy}: {source}")]
    Proxy {
        /// Host and port of the server.
        host: String,
        /// Host and port of the proxy.
        proxy: String,
        /// The status of the proxy's answer, if it gave one.
        status: Option<u16>,
        /// What went wrong.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The server's certificate is not trusted: an unknown issuer, a wrong name, one that has
    /// expired.
    #[error("the certificate of {host} is refused: {why}")]
    Certificate {
        /// Host and port.
        host: String,
        /// What is wrong with it.
        why: String,
    },
    /// TLS failed otherwise.
    #[error("TLS with {host} failed: {source}")]
    Tls {
        /// Host and port.
        host: String,
        /// The error of rustls.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The URL asks for TLS, and the server does not speak it.
    #[error("{host} does not speak TLS")]
    PlainServer {
        /// Host and port.
        host: String,
    },
    /// The server speaks TLS, and the URL does not ask for it.
    #[error("{host} speaks TLS")]
    TlsServer {
        /// Host and port.
        host: String,
    },
    /// The server answered the upgrade with another status.
    #[error("the server answered {status} instead of upgrading to WebSocket{}", details(why, *.retry_after))]
    Status {
        /// The HTTP status code.
        status: u16,
        /// The beginning of the answer's body, in one line without control characters.
        why: String,
        /// The server's wish for the next attempt.
        retry_after: Option<Duration>,
    },
    /// The server's reply to the upgrade request is not valid.
    #[error("the WebSocket handshake failed: {0}")]
    Handshake(String),
    /// There is no further connection (the transport was given once).
    #[error("the transport was used already: it connects once")]
    Exhausted,
}

fn details(why: &str, retry_after: Option<Duration>) -> String {
    let why = match why {
        "" => String::new(),
        why => format!(": {why}"),
    };
    match retry_after {
        Some(after) => format!("{why} (again in {} s)", after.as_secs()),
        None => why,
    }
}

impl DialError {
    /// Returns whether another attempt may succeed: not for bad URLs, TLS failures and HTTP
    /// statuses, of the server or a proxy, that rule it out (4xx other than 408, 425 and 429).
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::Status { status, .. }
            | Self::Proxy {
                status: Some(status),
                ..
            } => !matches!(*status, 400..=499) || matches!(*status, 408 | 425 | 429),
            Self::TimedOut { .. }
            | Self::Unreachable { .. }
            | Self::Proxy { .. }
            | Self::Handshake(_) => true,
            _ => false,
        }
    }

    /// Returns what stopped the connection.
    #[must_use]
    pub fn kind(&self) -> ConnectErrorKind {
        match self {
            Self::BadUrl { .. } => ConnectErrorKind::BadUrl,
            Self::TimedOut { .. } => ConnectErrorKind::TimedOut,
            Self::Unreachable { source, .. } => match source.kind() {
                ErrorKind::NotFound => ConnectErrorKind::UnknownHost,
                ErrorKind::ConnectionRefused => ConnectErrorKind::Refused,
                ErrorKind::TimedOut => ConnectErrorKind::TimedOut,
                ErrorKind::ConnectionReset
                | ErrorKind::ConnectionAborted
                | ErrorKind::BrokenPipe
                | ErrorKind::UnexpectedEof => ConnectErrorKind::HungUp,
                _ => ConnectErrorKind::Unreachable,
            },
            Self::Proxy { .. } => ConnectErrorKind::Proxy,
            Self::Certificate { .. } => ConnectErrorKind::Certificate,
            Self::Tls { .. } => ConnectErrorKind::Tls,
            Self::PlainServer { .. } => ConnectErrorKind::PlainServer,
            Self::TlsServer { .. } => ConnectErrorKind::TlsServer,
            Self::Status { status, .. } => ConnectErrorKind::Status(*status),
            Self::Handshake(_) => ConnectErrorKind::Handshake,
            Self::Exhausted => ConnectErrorKind::Unreachable,
        }
    }
}

/// Maps 401 to refused credentials.
impl From<&DialError> for CloseReason {
    fn from(error: &DialError) -> Self {
        if let DialError::Status { status: 401, .. } = error {
            let message = error.to_string();
            return Self::Authentication { message };
        }
        Self::Connect {
            kind: error.kind(),
            message: error.to_string(),
            retryable: error.is_retryable(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Retry;

    #[test]
    fn a_node_displays_its_address_beside_its_name() {
        for (url, address, printed) in [
            ("ws://h/x", "10.0.0.7:80", "ws://h/x (10.0.0.7:80)"),
            ("ws://10.0.0.7/x", "10.0.0.7:80", "ws://10.0.0.7/x"),
            ("ws://[::1]:9/", "[::1]:9", "ws://[::1]:9/"),
        ] {
            let node = Node::new(url, 0, address.parse().unwrap());
            assert_eq!(node.to_string(), printed);
        }
    }

    #[test]
    fn only_401_means_refused_credentials() {
        for (status, refused, retry) in [
            (401, true, Retry::Never),
            (403, false, Retry::Never),
            (503, false, Retry::Backoff),
        ] {
            let (why, retry_after) = ("no".to_owned(), Some(Duration::from_secs(7)));
            let error = DialError::Status {
                status,
                why,
                retry_after,
            };
            let printed = error.to_string();
            assert!(
                printed.ends_with("WebSocket: no (again in 7 s)"),
                "{printed}"
            );
            let reason = CloseReason::from(&error);
            let is_refused = matches!(reason, CloseReason::Authentication { .. });
            assert_eq!((is_refused, reason.retry()), (refused, retry), "{status}");
        }
    }
}
