//! [`ProxyConfig`]: which servers a client reaches through a proxy, and the tunnel to them.

use std::error::Error;
use std::future::{Ready, ready};
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{HeaderValue, Uri};
use hyper_util::client::legacy::connect::proxy::SocksV5;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tower_service::Service;

use super::dialer::WsDialer;
use super::handshake::{UpgradeError, read_answer};
use super::url::Target;
use crate::net::dial::DialError;

type Failure = Box<dyn Error + Send + Sync>;

/// The proxies of a client, by server. Cheap to clone. The default has none.
///
/// A proxy is `http://HOST:PORT`, spoken to with `CONNECT` for `wss` and `ws` alike, or
/// `socks5://HOST:PORT`, where the client resolves the server's name, or `socks5h://HOST:PORT`, where the
/// proxy does. A user and a password in its URL are sent to it, and printed nowhere. TLS goes through
/// the tunnel to the server. Servers on this machine (`localhost`, 127.0.0.0/8, `::1`) are always
/// reached directly.
#[derive(Clone, Default)]
pub struct ProxyConfig(Option<Arc<Matcher>>);

impl ProxyConfig {
    /// Reads the environment of the process, as [`from_vars`](Self::from_vars).
    #[must_use]
    pub fn from_env() -> Self {
        Self::from_vars(|name| std::env::var(name).ok())
    }

    /// Reads these variables, as curl and reqwest do: `HTTPS_PROXY` for `wss`, `HTTP_PROXY` for `ws`,
    /// `ALL_PROXY` for both where that one is not set, and `NO_PROXY`; where a name is not set, its
    /// lower case. A proxy without a scheme is an HTTP one; what is not the URL of a proxy is ignored,
    /// with a warning in the log. `NO_PROXY` lists, separated by commas, hosts and domains (of which
    /// all hosts count), addresses, networks (`10.0.0.0/8`), or `*` for all names.
    ///
    /// In a CGI program (`REQUEST_METHOD` is set) there are no proxies: `HTTP_PROXY` may be a header
    /// of its client there.
    ///
    /// ```
    /// use rpc_core::net::ws::{ProxyConfig, WsDialer};
    /// let fixed = ProxyConfig::from_vars(|name| match name {
    ///     "ALL_PROXY" => Some("http://ann:secret@proxy.example:3128".to_owned()),
    ///     "NO_PROXY" => Some("intern.example".to_owned()),
    ///     _ => None,
    /// });
    /// let dialer = WsDialer::new("ws://chat.example/rpc.ws")?.with_proxy(fixed);
    /// # Ok::<(), rpc_core::net::DialError>(())
    /// ```
    #[must_use]
    pub fn from_vars(var: impl Fn(&str) -> Option<String>) -> Self {
        if var("REQUEST_METHOD").is_some() {
            return Self::default();
        }
        let read = |name: &str| var(name).or_else(|| var(&name.to_ascii_lowercase()));
        let proxy = |name| {
            let url = read(name).unwrap_or_default();
            let parsed = Matcher::builder().all(&url).build();
            if !url.is_empty() && parsed.intercept(&Uri::from_static("http://h")).is_none() {
                tracing::warn!("{name} is not the URL of a proxy, and is ignored");
            }
            url
        };
        let matcher = Matcher::builder()
            .https(proxy("HTTPS_PROXY"))
            .http(proxy("HTTP_PROXY"))
            .all(proxy("ALL_PROXY"))
            .no(read("NO_PROXY").unwrap_or_default());
        Self(Some(Arc::new(matcher.build())))
    }

    /// Returns the proxy of a target, if it has one.
    pub(super) fn of<'a>(&self, target: &'a Target) -> Option<Proxy<'a>> {
        let matcher = self.0.as_ref().filter(|_| !target.is_this_machine())?;
        let scheme = if target.is_tls { "https" } else { "http" };
        let url = format!("{scheme}://{}/", target.authority).parse().ok()?;
        let at = matcher.intercept(&url)?;
        Some(Proxy { at, target })
    }
}

crate::debug::debug_fields!([] ProxyConfig, this => { is_set: this.0.is_some() });

/// The proxy of one target.
pub(super) struct Proxy<'a> {
    at: Intercept,
    target: &'a Target,
}

impl Proxy<'_> {
    pub(super) fn host(&self) -> &str {
        let host = self.at.uri().host().unwrap_or_default();
        host.trim_start_matches('[').trim_end_matches(']')
    }

    pub(super) fn port(&self) -> u16 {
        let is_http = self.at.uri().scheme_str() == Some("http");
        let port = self.at.uri().port_u16();
        port.unwrap_or(if is_http { 80 } else { 1080 })
    }

    pub(super) fn failed(&self, source: Failure) -> DialError {
        let status = match source.downcast_ref() {
            Some(UpgradeError::Refused { status, .. }) => Some(status.as_u16()),
            _ => None,
        };
        // Without what is in front of the last '@'.
        let host = self.at.uri().host().unwrap_or_default();
        DialError::Proxy {
            host: self.target.peer(),
            proxy: format!("{host}:{}", self.port()),
            status,
            source,
        }
    }

    async fn tunnel(&self, dialer: &WsDialer, tcp: TcpStream) -> Result<TcpStream, Failure> {
        let Target { host, port, .. } = self.target;
        let to = match self.at.uri().scheme_str() {
            Some("http") => return self.connect(tcp).await,
            Some("socks5h") => self.target.peer(),
            Some("socks5") => {
                let found = dialer.look_up(host, *port).await?;
                found.first().ok_or("the name has no address")?.to_string()
            }
            _ => return Err("it is none of http://, socks5:// and socks5h://".into()),
        };
        let mut socks = SocksV5::new(self.at.uri().clone(), Opened(Some(TokioIo::new(tcp))));
        if let Some((user, password)) = self.at.raw_auth() {
            socks = socks.with_auth(user.to_owned(), password.to_owned());
        }
        let tunnel = socks.call(format!("http://{to}").parse()?).await?;
        Ok(tunnel.into_inner())
    }

    async fn connect(&self, mut tcp: TcpStream) -> Result<TcpStream, Failure> {
        let login = self.at.basic_auth().map(HeaderValue::to_str).transpose()?;
        let header = login.map(|login| format!("Proxy-Authorization: {login}\r\n"));
        let (to, header) = (self.target.peer(), header.unwrap_or_default());
        let request = format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n{header}\r\n");
        tcp.write_all(request.as_bytes()).await?;
        let (answer, behind) = read_answer(&mut tcp).await?;
        let help = match (answer.status().as_u16(), login) {
            // The server can have sent nothing: the client begins, with TLS or without.
            (200..=299, _) if behind.is_empty() => return Ok(tcp),
            (200..=299, _) => return Err("its answer has a body".into()),
            (407, None) => "write its URL as http://USER:PASSWORD@HOST:PORT",
            (407, _) => "check user and password in its URL",
            _ => "ask who runs it, or add the server to NO_PROXY to go without",
        };
        Err(UpgradeError::Refused {
            status: answer.status(),
            why: help.to_owned(),
            retry_after: None,
        }
        .into())
    }
}

impl WsDialer {
    /// Sets the proxies. Default: none, whatever the environment says. The
    /// [resolver](Self::with_resolver) resolves a proxy's name, and for `socks5` a server's. The
    /// address of a [`Node`](crate::net::Node) behind a proxy is the proxy's.
    #[must_use]
    pub fn with_proxy(mut self, proxy: ProxyConfig) -> Self {
        self.proxy = proxy;
        self
    }

    /// Opens the tunnel to a target that has a proxy.
    pub(super) async fn tunnel(
        &self,
        target: &Target,
        tcp: TcpStream,
    ) -> Result<TcpStream, DialError> {
        match self.proxy.of(target) {
            Some(proxy) => (proxy.tunnel(self, tcp).await).map_err(|error| proxy.failed(error)),
            None => Ok(tcp),
        }
    }
}

/// Connects [`SocksV5`] to the proxy by a connection that is open already.
struct Opened(Option<TokioIo<TcpStream>>);

impl Service<Uri> for Opened {
    type Response = TokioIo<TcpStream>;
    type Error = io::Error;
    type Future = Ready<io::Result<Self::Response>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        ready(self.0.take().ok_or(io::ErrorKind::NotConnected.into()))
    }
}
