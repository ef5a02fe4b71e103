//! [`WsDialer`]: opens client connections, with one deadline for the whole attempt.

use std::fmt;
use std::io;
use std::net::SocketAddr;
#[cfg(feature = "tls")]
use std::sync::OnceLock;

use async_trait::async_trait;
use http::header::{self, HeaderMap, HeaderValue};
use http::uri::PathAndQuery;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use super::Role;
use super::config::{BadHeader, WsConfig};
use super::handshake::{UpgradeError, get, upgrade};
use super::socket::Socket;
use super::stream::WsStream;
use super::url::Target;
use crate::net::dial::{DialError, Dialer};
#[cfg(feature = "tls")]
use crate::net::tls::TlsConfig;
use crate::secret::Secret;

/// Dials one URL, any number of times.
///
/// All addresses of the host are tried in turn. Name resolution, TCP, TLS and the upgrade share
/// one deadline, [`WsConfig::connect_timeout`].
///
/// ```
/// use rpc_core::net::ws::WsDialer;
/// let dialer = WsDialer::new("ws://127.0.0.1:9100/rpc.ws")?.with_subprotocol("acolyte.v1")?;
/// assert!(WsDialer::new("ftp://example.com").is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct WsDialer {
    target: Target,
    config: WsConfig,
    /// Set by the caller, or the platform's roots after the first use.
    #[cfg(feature = "tls")]
    tls: OnceLock<TlsConfig>,
}

impl WsDialer {
    /// Creates a dialer for a `ws` or `wss` URL (`http` and `https` mean the same).
    ///
    /// # Errors
    /// [`DialError::BadUrl`] if the URL cannot be dialled: another scheme, credentials, a fragment,
    /// or `wss` without feature `tls`.
    pub fn new(url: &str) -> Result<Self, DialError> {
        let target = Target::parse(url)?;
        if target.is_tls && !cfg!(feature = "tls") {
            return Err(target.bad("TLS needs the crate feature `tls`"));
        }
        Ok(Self {
            target,
            config: WsConfig::default(),
            #[cfg(feature = "tls")]
            tls: OnceLock::new(),
        })
    }

    /// Replaces the whole configuration.
    #[must_use]
    pub fn with_config(mut self, config: WsConfig) -> Self {
        self.config = config;
        self
    }

    /// Sets the path for a URL without one: `ws://host` and `ws://host/` get it, `ws://host/other`
    /// and `ws://host?query` stay as they are.
    ///
    /// # Errors
    /// [`DialError::BadUrl`] if `path` is not a path.
    pub fn or_path(mut self, path: &str) -> Result<Self, DialError> {
        self.target = self.target.or_path(path)?;
        Ok(self)
    }

    /// Returns the host if traffic to it could be read on the way: there is no TLS, and it is not
    /// this machine. Nothing is resolved: of names, only `localhost` is this machine.
    ///
    /// ```
    /// use rpc_core::net::ws::WsDialer;
    /// assert_eq!(WsDialer::new("ws://example.com")?.exposed_host(), Some("example.com"));
    /// assert_eq!(WsDialer::new("ws://127.0.0.1:9100")?.exposed_host(), None);
    /// # Ok::<(), rpc_core::net::DialError>(())
    /// ```
    #[must_use]
    pub fn exposed_host(&self) -> Option<&str> {
        let is_exposed = !self.target.is_tls && !self.target.is_this_machine();
        is_exposed.then_some(self.target.host.as_str())
    }

    /// Adds a header; see [`WsConfig::with_header`].
    ///
    /// # Errors
    /// [`BadHeader`] if it cannot be sent.
    pub fn with_header(mut self, name: &str, value: &str) -> Result<Self, BadHeader> {
        self.config = self.config.with_header(name, value)?;
        Ok(self)
    }

    /// Adds a header that is never printed; see [`WsConfig::with_secret_header`].
    ///
    /// # Errors
    /// [`BadHeader`] if it cannot be sent.
    pub fn with_secret_header(
        mut self,
        name: &str,
        value: &Secret<String>,
    ) -> Result<Self, BadHeader> {
        self.config = self.config.with_secret_header(name, value)?;
        Ok(self)
    }

    /// Offers a subprotocol; see [`WsConfig::with_subprotocol`].
    ///
    /// # Errors
    /// [`BadHeader`] if it is not a token.
    pub fn with_subprotocol(mut self, name: impl Into<String>) -> Result<Self, BadHeader> {
        self.config = self.config.with_subprotocol(name)?;
        Ok(self)
    }

    /// Sets which certificates are trusted. Default: the platform's roots.
    #[cfg(feature = "tls")]
    #[cfg_attr(docsrs, doc(cfg(feature = "tls")))]
    #[must_use]
    pub fn with_tls(mut self, tls: TlsConfig) -> Self {
        self.tls = OnceLock::from(tls);
        self
    }

    /// Returns the configuration.
    #[must_use]
    pub const fn config(&self) -> &WsConfig {
        &self.config
    }

    /// Requests the upgrade over an existing byte stream (an in-memory pipe, a Unix socket, a
    /// tunnel). The URL gives path and `Host`.
    ///
    /// # Errors
    /// [`DialError`] as for [`dial`](Dialer::dial).
    ///
    /// # Cancel safety
    /// Dropping the future closes the stream.
    pub async fn upgrade<S>(&self, stream: S) -> Result<WsStream<S>, DialError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        self.in_time(self.upgrade_now(stream)).await
    }

    /// Fetches a document from the same host by a plain HTTP GET, over a connection of its own:
    /// many servers identify themselves there. `path` begins with a slash. Returns the status and
    /// at most `max` bytes; redirects are not followed.
    ///
    /// # Errors
    /// [`DialError`]: [`BadUrl`](DialError::BadUrl) for an invalid path,
    /// [`Handshake`](DialError::Handshake) for an invalid or too large reply.
    ///
    /// # Cancel safety
    /// Dropping the future closes the connection.
    pub async fn get(&self, path: &str, max: usize) -> Result<(u16, Vec<u8>), DialError> {
        let is_path = path.starts_with('/') && path.parse::<PathAndQuery>().is_ok();
        if !is_path {
            return Err(self.target.bad("the path is none"));
        }
        let headers = self.headers()?;
        let work = async {
            let mut socket = self.connect_socket().await?;
            let got = get(&mut socket, path, &headers, max).await;
            got.map_err(|error| self.refused(error))
        };
        self.in_time(work).await
    }

    /// Opens a connection to the same host, TCP and TLS, without the upgrade: for plain HTTP that
    /// should take the same route and trust the same servers. Within [`WsConfig::connect_timeout`].
    ///
    /// # Errors
    /// [`DialError`] as for [`dial`](Dialer::dial), except for the upgrade.
    ///
    /// # Cancel safety
    /// Dropping the future closes the connection.
    pub async fn open(&self) -> Result<Socket, DialError> {
        self.in_time(self.connect_socket()).await
    }

    /// Returns the headers of a request to this host: [`WsConfig::headers`], and `Host`.
    ///
    /// # Errors
    /// [`DialError::BadUrl`] if the host cannot be a header.
    pub fn headers(&self) -> Result<HeaderMap, DialError> {
        let mut headers = self.config.headers().clone();
        if !headers.contains_key(header::HOST) {
            let host = HeaderValue::from_str(&self.target.authority);
            let host = host.map_err(|_| self.target.bad("the host cannot be a header"))?;
            headers.insert(header::HOST, host);
        }
        Ok(headers)
    }

    async fn in_time<T>(
        &self,
        work: impl Future<Output = Result<T, DialError>>,
    ) -> Result<T, DialError> {
        let after = self.config.connect_timeout;
        timeout(after, work)
            .await
            .unwrap_or(Err(DialError::TimedOut { after }))
    }

    fn refused(&self, error: UpgradeError) -> DialError {
        match error {
            UpgradeError::Io(source) => self.unreachable(source),
            UpgradeError::Status(status) => DialError::Status {
                status: status.as_u16(),
            },
            UpgradeError::Answer(why) => DialError::Handshake(why.to_owned()),
        }
    }

    async fn upgrade_now<S>(&self, mut stream: S) -> Result<WsStream<S>, DialError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let headers = self.headers()?;
        let path = self.target.uri.path_and_query();
        let path = path.map_or("/", |path| path.as_str());
        let offered = self.config.subprotocols();
        let (handshake, read_already) = upgrade(&mut stream, path, &headers, offered)
            .await
            .map_err(|error| self.refused(error))?;
        let opened =
            WsStream::from_upgraded(stream, read_already.into(), Role::Client, &self.config);
        Ok(opened.await.with_handshake(handshake))
    }

    fn unreachable(&self, source: io::Error) -> DialError {
        DialError::Unreachable {
            host: self.target.peer(),
            source,
        }
    }

    async fn connect(&self) -> Result<WsStream, DialError> {
        let socket = self.connect_socket().await?;
        self.upgrade_now(socket).await
    }

    async fn connect_socket(&self) -> Result<Socket, DialError> {
        let tcp = self.connect_tcp().await;
        let tcp = tcp.map_err(|error| self.unreachable(error))?;
        // A failure here costs latency only.
        let _ = tcp.set_nodelay(true);
        self.secure(tcp).await
    }

    /// Tries every address. Each but the last gets an equal share of the remaining time, so that
    /// one dead address does not use up the deadline of the others.
    async fn connect_tcp(&self) -> io::Result<TcpStream> {
        let started = Instant::now();
        let host = (self.target.host.as_str(), self.target.port);
        let addresses: Vec<SocketAddr> = tokio::net::lookup_host(host).await?.collect();
        let mut failure = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        let mut left = u32::try_from(addresses.len()).unwrap_or(u32::MAX);
        for address in addresses {
            let share = self
                .config
                .connect_timeout
                .saturating_sub(started.elapsed())
                / left.max(1);
            left = left.saturating_sub(1);
            match timeout(share, TcpStream::connect(address)).await {
                Ok(Ok(tcp)) => return Ok(tcp),
                Ok(Err(error)) => failure = error,
                Err(_) => failure = io::ErrorKind::TimedOut.into(),
            }
        }
        Err(failure)
    }

    #[cfg(feature = "tls")]
    async fn secure(&self, tcp: TcpStream) -> Result<Socket, DialError> {
        if !self.target.is_tls {
            return Ok(tcp.into());
        }
        let tls = match self.tls.get() {
            Some(tls) => tls,
            None => {
                let platform = TlsConfig::platform().map_err(|error| self.tls_failed(error))?;
                self.tls.get_or_init(|| platform)
            }
        };
        tls.connect(&self.target.host, tcp).await.map_err(|error| {
            let is_tls = matches!(error.get_ref(), Some(inner) if inner.is::<rustls::Error>());
            if is_tls {
                self.tls_failed(error)
            } else {
                self.unreachable(error)
            }
        })
    }

    #[cfg(feature = "tls")]
    fn tls_failed(&self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> DialError {
        DialError::Tls {
            host: self.target.peer(),
            source: source.into(),
        }
    }

    #[cfg(not(feature = "tls"))]
    #[allow(clippy::unused_async, reason = "the same call as with feature `tls`")]
    async fn secure(&self, tcp: TcpStream) -> Result<Socket, DialError> {
        Ok(tcp.into())
    }
}

#[async_trait]
impl Dialer for WsDialer {
    type Transport = WsStream;

    async fn dial(&self) -> Result<WsStream, DialError> {
        self.in_time(self.connect()).await
    }
}

/// Prints the URL without its query, and no secrets.
impl fmt::Debug for WsDialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WsDialer")
            .field("url", &self.target.printable())
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}
