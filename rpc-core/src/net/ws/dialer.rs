//! [`WsDialer`]: opens client connections to one of several servers, with one deadline for the whole
//! attempt.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
#[cfg(feature = "tls")]
use std::sync::OnceLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::BoxFuture;
use http::header::{self, HeaderMap, HeaderValue};
use http::uri::PathAndQuery;
use percent_encoding::percent_decode_str;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::Role;
use super::attempt::{DialAttempt, Position, Reached};
use super::config::{BadHeader, WsConfig};
use super::handshake::{LINE_ENDED, SPEAKS_TLS, UpgradeError, get, upgrade};
#[cfg(feature = "proxy")]
use super::proxy::ProxyConfig;
use super::socket::Socket;
use super::stream::WsStream;
use super::url::{Target, ascii, urls};
use crate::net::dial::{DialError, Dialer, Node};
#[cfg(feature = "tls")]
use crate::net::tls::TlsConfig;

/// What `localhost` means, without a lookup: IPv4 first, whatever the last attempt has reached. Most servers listen
/// there, and another program may listen at `::1`.
const LOCALHOST: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::LOCALHOST),
    IpAddr::V6(Ipv6Addr::LOCALHOST),
];

/// Dials one URL of a list, any number of times.
///
/// An attempt visits the addresses of the list, the answers for each name among them, in turn. It
/// passes over those without an answer (no such name, nothing listens, no route, a bad
/// certificate, a 4xx other than 401, 408, 425 and 429), and ends with the first that accepts the
/// connection or refuses it for now (a 503, say). Each address is visited at most once. The next
/// attempt visits the address where this one ended after all others, so that a
/// [`Link`](crate::net::Link) which has lost its node, or was refused by it, comes to another one,
/// with the delays of one server. `localhost` is one node: 127.0.0.1, and `::1` if nothing listens there.
///
/// Name resolution, TCP, TLS and the upgrade of all visited addresses share one deadline,
/// [`WsConfig::connect_timeout`]. TLS checks the name of each URL; headers and subprotocols go to
/// the servers of the list only, since redirects are not followed.
///
/// ```
/// use rpc_core::net::ws::WsDialer;
/// let dialer = WsDialer::new("ws://127.0.0.1:9100/rpc.ws")?.with_subprotocol("acolyte.v1")?;
/// assert!(WsDialer::new("ws://a.example:9100, ws://b.example:9100").is_ok());
/// assert!(WsDialer::new("ftp://example.com").is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct WsDialer {
    /// At least one.
    pub(super) targets: Vec<Target>,
    pub(super) position: Position,
    /// Whether the order of the URLs and answers is as given, instead of random.
    pub(super) is_listed: bool,
    resolver: Option<Arc<Resolve>>,
    pub(super) config: WsConfig,
    /// Set by the caller, or the platform's roots after the first use.
    #[cfg(feature = "tls")]
    tls: OnceLock<TlsConfig>,
    #[cfg(feature = "proxy")]
    pub(super) proxy: ProxyConfig,
}

type Resolve = dyn Fn(&str, u16) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> + Send + Sync;

impl WsDialer {
    /// Creates a dialer for a `ws` or `wss` URL (`http` and `https` mean the same), or for several,
    /// separated by commas as [`urls`](super::urls) reads them. A user and a password in a URL go to
    /// its server in the `Authorization` header, and are printed nowhere.
    ///
    /// # Errors
    /// [`DialError::BadUrl`] if one of the URLs cannot be dialled: another scheme, a fragment, or
    /// `wss` without feature `tls`.
    pub fn new(url: &str) -> Result<Self, DialError> {
        let targets = urls(url).map(|url| {
            let target = Target::parse(url)?;
            if target.is_tls && !cfg!(feature = "tls") {
                return Err(target.bad("TLS needs the crate feature `tls`"));
            }
            Ok(target)
        });
        let targets = targets.collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            targets,
            position: Position::default(),
            is_listed: false,
            resolver: None,
            config: WsConfig::default(),
            #[cfg(feature = "tls")]
            tls: OnceLock::new(),
            #[cfg(feature = "proxy")]
            proxy: ProxyConfig::default(),
        })
    }

    /// Dials the URLs as listed, and the answers of a name as the resolver gives them: for a first
    /// choice and its substitutes. By default each attempt has a random order, so that clients
    /// spread over all nodes.
    #[must_use]
    pub const fn in_listed_order(mut self) -> Self {
        self.is_listed = true;
        self
    }

    /// Sets what answers a host, which may be an IP address itself, with its addresses, each with the
    /// given port. Its errors lead to the next URL. Its future must be cancel-safe: each name has a share
    /// of the time. Default: the system's resolver.
    #[must_use]
    pub fn with_resolver<R: Future<Output = io::Result<Vec<SocketAddr>>> + Send + 'static>(
        mut self,
        resolve: impl Fn(&str, u16) -> R + Send + Sync + 'static,
    ) -> Self {
        self.resolver = Some(Arc::new(move |host, port| Box::pin(resolve(host, port))));
        self
    }

    /// Adds a header; see [`WsConfig::with_header`].
    ///
    /// # Errors
    /// [`BadHeader`] if it cannot be sent.
    pub fn with_header(mut self, name: &str, value: &str) -> Result<Self, BadHeader> {
        self.config = self.config.with_header(name, value)?;
        Ok(self)
    }

    /// Sets which certificates are trusted. Default: the platform's roots.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn with_tls(mut self, tls: TlsConfig) -> Self {
        self.tls = OnceLock::from(tls);
        self
    }

    /// Requests the upgrade over an existing byte stream (an in-memory pipe, a Unix socket, a
    /// tunnel). The URL, of several the first, gives path and `Host`.
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
        self.in_time(self.upgrade_now(self.target(0), stream)).await
    }

    /// Fetches a document from one of the servers by a plain HTTP GET, over a connection of its own:
    /// many servers identify themselves there. `path` begins with a slash. Returns the status and
    /// at most `max` bytes; redirects are not followed. Chooses the server as
    /// [`open`](Self::open) does.
    ///
    /// # Errors
    /// [`DialError`]: [`BadUrl`](DialError::BadUrl) for an invalid path,
    /// [`Handshake`](DialError::Handshake) for an invalid or too large reply.
    ///
    /// # Cancel safety
    /// Dropping the future closes the connection.
    pub async fn get(&self, path: &str, max: usize) -> Result<(u16, Vec<u8>), DialError> {
        let path = &*ascii(path);
        let is_path = path.starts_with('/') && path.parse::<PathAndQuery>().is_ok();
        if !is_path {
            return Err(self.target(0).bad("the path is invalid"));
        }
        let work = async {
            let mut at = self.reach().await?;
            let headers = self.headers_for(at.target)?;
            let got = get(&mut at.socket, path, &headers, max).await;
            got.map_err(|error| {
                self.leave(&at.node);
                refused(at.target, error)
            })
        };
        self.in_time(work).await
    }

    /// Opens a connection to one of the servers, TCP and TLS, without the upgrade: for plain HTTP
    /// that should take the same route and trust the same servers. Within
    /// [`WsConfig::connect_timeout`]. Returns the node that was reached, too.
    ///
    /// Stays with the server of the last successful connection, until it is not reached any more or
    /// was [left](Self::leave).
    ///
    /// # Errors
    /// [`DialError`] as for [`dial`](Dialer::dial), except for the upgrade.
    ///
    /// # Cancel safety
    /// Dropping the future closes the connection.
    pub async fn open(&self) -> Result<(Socket, Node), DialError> {
        let reached = self.in_time(self.reach()).await?;
        Ok((reached.socket, reached.node))
    }

    /// Lets the next attempt visit this node last, if the last connection went there: it answers
    /// that it is busy, or its connection was lost. [`dial`](Dialer::dial) always does.
    pub fn leave(&self, node: &Node) {
        self.position.leave(node);
    }

    /// Returns the headers of a request to the server of the URL, of several the first:
    /// [`WsConfig::headers`], and `Host`.
    ///
    /// # Errors
    /// [`DialError::BadUrl`] if the host cannot be a header.
    pub fn headers(&self) -> Result<HeaderMap, DialError> {
        self.headers_for(self.target(0))
    }

    /// Returns the headers of a request to a node of this dialer.
    ///
    /// # Errors
    /// As for [`headers`](Self::headers).
    pub fn node_headers(&self, node: &Node) -> Result<HeaderMap, DialError> {
        self.headers_for(self.target(node.index()))
    }

    fn headers_for(&self, target: &Target) -> Result<HeaderMap, DialError> {
        let mut headers = self.config.headers.clone();
        if !headers.contains_key(header::HOST) {
            let host = HeaderValue::from_str(&target.authority);
            let host = host.map_err(|_| target.bad("the host cannot be a header"))?;
            headers.insert(header::HOST, host);
        }
        if let Some(login) = target.login.as_deref().and_then(basic) {
            let earlier = headers.insert(header::AUTHORIZATION, login);
            if earlier.is_some() {
                return Err(target.bad(
                    "its user and password, and another key, would both be the Authorization header",
                ));
            }
        }
        Ok(headers)
    }

    pub(super) const fn is_one(&self) -> bool {
        self.targets.len() == 1
    }

    /// Returns the URL with this index; the first one for an invalid index.
    pub(super) fn target(&self, url: usize) -> &Target {
        self.targets.get(url).unwrap_or(&self.targets[0])
    }

    pub(super) async fn resolve(&self, target: &Target) -> io::Result<Vec<SocketAddr>> {
        #[cfg(feature = "proxy")]
        if let Some(proxy) = self.proxy.of(target) {
            return self.look_up(proxy.host(), proxy.port()).await;
        }
        self.look_up(&target.host, target.port).await
    }

    pub(super) async fn look_up(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        match &self.resolver {
            Some(resolve) => resolve(host, port).await,
            None if host.eq_ignore_ascii_case("localhost") => {
                Ok(LOCALHOST.map(|ip| (ip, port).into()).into())
            }
            None => match tokio::net::lookup_host((host, port)).await {
                Ok(addresses) => Ok(addresses.collect()),
                // The system's own kind says nothing.
                Err(error) => Err(io::Error::new(io::ErrorKind::NotFound, error)),
            },
        }
    }

    /// Returns the error if the address was not reached at which the way to a target begins.
    pub(super) fn unreachable(&self, target: &Target, source: io::Error) -> DialError {
        #[cfg(feature = "proxy")]
        if let Some(proxy) = self.proxy.of(target) {
            return proxy.failed(source.into());
        }
        target.unreachable(source)
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

    async fn upgrade_now<S>(&self, target: &Target, mut stream: S) -> Result<WsStream<S>, DialError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let headers = self.headers_for(target)?;
        let path = target.uri.path_and_query();
        let path = path.map_or("/", |path| path.as_str());
        let offered = &self.config.subprotocols;
        let (subprotocol, read_already) = upgrade(&mut stream, path, &headers, offered)
            .await
            .map_err(|error| refused(target, error))?;
        let opened =
            WsStream::from_upgraded(stream, read_already.into(), Role::Client, &self.config);
        Ok(opened.await.with_subprotocol(subprotocol))
    }

    /// Connects to the first address that accepts the upgrade.
    async fn connect(&self) -> Result<WsStream, DialError> {
        let mut visit = DialAttempt::new(self);
        loop {
            let reached = visit.next().await?;
            match self.upgrade_now(reached.target, reached.socket).await {
                Ok(stream) => {
                    visit.succeeded(&reached.node, false);
                    return Ok(stream);
                }
                Err(error) => visit.failed(&reached.node, error)?,
            }
        }
    }

    /// Connects to the first address that accepts TCP and TLS.
    async fn reach(&self) -> Result<Reached<'_>, DialError> {
        let mut visit = DialAttempt::new(self);
        let reached = visit.next().await?;
        visit.succeeded(&reached.node, true);
        Ok(reached)
    }

    /// Opens what is above TCP: the tunnel through a proxy, and TLS.
    pub(super) async fn secure(
        &self,
        target: &Target,
        tcp: TcpStream,
    ) -> Result<Socket, DialError> {
        #[cfg(not(any(feature = "proxy", feature = "tls")))]
        let _ = target;
        #[cfg(feature = "proxy")]
        let tcp = self.tunnel(target, tcp).await?;
        #[cfg(feature = "tls")]
        if target.is_tls {
            let tls = match self.tls.get() {
                Some(tls) => tls,
                None => {
                    let platform =
                        TlsConfig::platform().map_err(|error| tls_failed(target, error))?;
                    self.tls.get_or_init(|| platform)
                }
            };
            let connected = tls.connect(&target.host, tcp).await;
            return connected.map_err(|error| broken(target, error));
        }
        Ok(tcp.into())
    }
}

#[cfg(feature = "tls")]
fn tls_failed(
    target: &Target,
    source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> DialError {
    DialError::Tls {
        host: target.peer(),
        source: source.into(),
    }
}

/// Tells an error of TLS, which a server may also send after its handshake, from one of the line.
fn broken(target: &Target, error: io::Error) -> DialError {
    #[cfg(feature = "tls")]
    match error.get_ref().and_then(|inner| inner.downcast_ref()) {
        Some(rustls::Error::InvalidCertificate(why)) => {
            return DialError::Certificate {
                host: target.peer(),
                why: crate::net::tls::refusal(why),
            };
        }
        Some(rustls::Error::InvalidMessage(_)) => {
            let host = target.peer();
            return DialError::PlainServer { host };
        }
        Some(_) => return tls_failed(target, error),
        None => {}
    }
    target.unreachable(error)
}

/// Returns the header for `user:password` as a URL spells it (RFC 7617).
pub(super) fn basic(login: &str) -> Option<HeaderValue> {
    let mut plain: Vec<u8> = percent_decode_str(login).collect();
    if !login.contains(':') {
        plain.push(b':');
    }
    let mut value = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(plain))).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn refused(target: &Target, error: UpgradeError) -> DialError {
    match error {
        UpgradeError::Io(source) => broken(target, source),
        UpgradeError::Refused {
            status,
            why,
            retry_after,
        } => DialError::Status {
            status: status.as_u16(),
            why,
            retry_after,
        },
        UpgradeError::Answer(SPEAKS_TLS) => DialError::TlsServer {
            host: target.peer(),
        },
        UpgradeError::Answer(LINE_ENDED) => {
            target.unreachable(io::Error::new(io::ErrorKind::UnexpectedEof, LINE_ENDED))
        }
        UpgradeError::Answer(why) => DialError::Handshake(why.to_owned()),
    }
}

impl Dialer for WsDialer {
    type Transport = WsStream;

    async fn dial(&self) -> Result<WsStream, DialError> {
        self.in_time(self.connect()).await
    }

    fn node(&self) -> Option<Node> {
        self.position.node()
    }
}
