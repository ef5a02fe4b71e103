//! [`ProxyConfig`]: which servers a client reaches through a proxy, and the tunnel to them.

use std::future::{Ready, ready};
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::Uri;
use http::header::{HOST, HeaderMap, HeaderValue, PROXY_AUTHORIZATION};
use hyper_util::client::legacy::connect::proxy::SocksV5;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower_service::Service;

use super::dialer::WsDialer;
use super::handshake::{UpgradeError, tunnel};
use super::url::Target;
use crate::net::dial::DialError;

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

    /// Returns the proxy for a target, if it has one.
    pub(super) fn of(&self, target: &Target) -> Option<Proxy> {
        let matcher = self.0.as_ref().filter(|_| !target.is_this_machine())?;
        let scheme = if target.is_tls { "https" } else { "http" };
        let url = format!("{scheme}://{}/", target.authority).parse().ok()?;
        matcher.intercept(&url).map(Proxy)
    }
}

crate::debug::debug_fields!([] ProxyConfig, this => {
    is_set: this.0.is_some(),
});

/// The proxy of one target.
pub(super) struct Proxy(Intercept);

impl Proxy {
    pub(super) fn host(&self) -> &str {
        let host = self.0.uri().host().unwrap_or_default();
        host.trim_start_matches('[').trim_end_matches(']')
    }

    pub(super) fn port(&self) -> u16 {
        let default = if self.is_socks() { 1080 } else { 80 };
        self.0.uri().port_u16().unwrap_or(default)
    }

    fn is_socks(&self) -> bool {
        matches!(self.0.uri().scheme_str(), Some("socks5" | "socks5h"))
    }

    pub(super) fn failed(&self, target: &Target, status: Option<u16>, why: String) -> DialError {
        // Without the user and the password, however often an '@' is in the URL.
        let host = self.0.uri().host().unwrap_or_default();
        DialError::Proxy {
            host: target.peer(),
            proxy: format!("{host}:{}", self.port()),
            status,
            why,
        }
    }

    /// Opens a tunnel to a target, whose name `dialer` resolves for `socks5`.
    async fn tunnel(
        &self,
        dialer: &WsDialer,
        target: &Target,
        mut tcp: TcpStream,
    ) -> Result<TcpStream, DialError> {
        let place = match self.0.uri().scheme_str() {
            Some("http") => return self.connect(target, &mut tcp).await.map(|()| tcp),
            Some("socks5h") => target.peer(),
            Some("socks5") => {
                let answers = dialer.look_up(&target.host, target.port).await;
                let answers =
                    answers.map_err(|error| self.failed(target, None, error.to_string()))?;
                let none = || self.failed(target, None, "the name has no address".to_owned());
                answers.first().ok_or_else(none)?.to_string()
            }
            _ => return Err(target.bad("its proxy is none of http://, socks5:// and socks5h://")),
        };
        let place = format!("http://{place}").parse::<Uri>();
        let place = place.map_err(|_| target.bad("not a host for SOCKS"))?;
        let mut socks = SocksV5::new(self.0.uri().clone(), Opened(Some(TokioIo::new(tcp))));
        if let Some((user, password)) = self.0.raw_auth() {
            socks = socks.with_auth(user.to_owned(), password.to_owned());
        }
        let opened = socks.call(place).await;
        let opened = opened.map_err(|error| self.failed(target, None, error.to_string()))?;
        Ok(opened.into_inner())
    }

    /// Opens a tunnel by `CONNECT`.
    async fn connect(&self, target: &Target, tcp: &mut TcpStream) -> Result<(), DialError> {
        let bad = |_| target.bad("the host cannot be a header");
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_str(&target.peer()).map_err(bad)?);
        let login = self.0.basic_auth();
        headers.extend(login.map(|login| (PROXY_AUTHORIZATION, login.clone())));
        match tunnel(tcp, &target.peer(), &headers).await {
            Ok(()) => Ok(()),
            Err(UpgradeError::Io(error)) => Err(self.failed(target, None, error.to_string())),
            Err(UpgradeError::Answer(why)) => Err(self.failed(target, None, why.to_owned())),
            Err(UpgradeError::Refused { status, why, .. }) => {
                let help = match (status.as_u16(), login) {
                    (407, Some(_)) => "check user and password in the proxy's URL",
                    (407, None) => "write the proxy's URL as http://USER:PASSWORD@HOST:PORT",
                    _ => "ask who runs the proxy, or add the host to NO_PROXY to go without",
                };
                let colon = if why.is_empty() { "" } else { ": " };
                let why = format!("it answered {status}{colon}{why}; {help}");
                Err(self.failed(target, Some(status.as_u16()), why))
            }
        }
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
            Some(proxy) => proxy.tunnel(self, target, tcp).await,
            None => Ok(tcp),
        }
    }
}

/// Gives the connection to the proxy, which is open already.
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
