//! [`Guards`]: pure checks of peer address, `Host` and `Origin`.
//!
//! A web page can make a browser connect to a server on the same machine. The browser reports
//! truthfully where the page came from (`Origin`) and which name it resolved (`Host`); the peer
//! address proves nothing. Both headers are therefore checked by default.

use std::fmt;
use std::net::{AddrParseError, IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use http::request::Parts;
use http::{HeaderMap, HeaderName, StatusCode, Version, header};
use ipnet::IpNet;

crate::config! {
    /// Which requests are served. The default serves any peer, refuses every request with an `Origin`,
    /// and on a server that is bound to a loopback address refuses every foreign `Host`.
    ///
    /// The checks are plain functions over the request's head, so servers of other frameworks can
    /// call them too.
    ///
    /// ```
    /// use rpc_core::net::server::Guards;
    ///
    /// let guards = Guards::default()
    ///     .with_allowed_origin("https://app.example")?
    ///     .for_bind("127.0.0.1:7200".parse().unwrap());
    /// let request = |origin| {
    ///     let request = http::Request::get("/").header("host", "localhost:7200");
    ///     request.header("origin", origin).body(()).unwrap().into_parts().0
    /// };
    /// let peer = "127.0.0.1:50000".parse().unwrap();
    /// assert!(guards.check(&request("https://app.example"), peer).is_ok());
    /// assert!(guards.check(&request("https://elsewhere.example"), peer).is_err());
    /// # Ok::<(), rpc_core::net::server::BadGuard>(())
    /// ```
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Guards {
        /// Peers that are served. Default any.
        pub peers: PeerPolicy = PeerPolicy::Any,
        /// Web pages that are served. Default none.
        pub origins: OriginPolicy = OriginPolicy::Refuse,
        /// Names under which this server is served. Default [`HostPolicy::Auto`].
        pub hosts: HostPolicy = HostPolicy::Auto,
        /// Whether pages of the host that the request names are served too, over `http` or `https`.
        /// Only for servers that check a token, or whose [hosts](HostPolicy) are listed: a page can
        /// give its own host any address. Default no.
        pub same_origin: bool = false,
        /// Proxies whose `X-Forwarded-For` says who asks. Default the loopback addresses; see
        /// [`with_trusted_proxy`](Self::with_trusted_proxy).
        pub proxies: ProxyPolicy = ProxyPolicy::Loopback,
    }
}

/// Which peers are served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum PeerPolicy {
    /// All of them.
    #[default]
    Any,
    /// Those at 127.0.0.1, also in its IPv6 form `::ffff:127.0.0.1`, and at `::1`. Other addresses
    /// of this machine are refused.
    LocalhostOnly,
}

/// Which origins are served. A request without an `Origin` does not come from a web page and
/// always passes this check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OriginPolicy {
    /// None.
    #[default]
    Refuse,
    /// Those on the list; see [`Guards::with_allowed_origin`].
    List(Vec<Origin>),
    /// Pages of this machine (`http` or `https`, `localhost` or a loopback address, any port), and
    /// those on the list. This trusts every program that serves pages here: say so at start.
    Loopback(Vec<Origin>),
    /// All of them, `null` included. Only for servers that check a secret that no web page has.
    Any,
}

/// Which values of `Host` are served.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum HostPolicy {
    /// [`LoopbackNames`](Self::LoopbackNames) if the server is bound to a loopback address,
    /// otherwise [`Any`](Self::Any). Before a call of [`Guards::for_bind`]: the former.
    #[default]
    Auto,
    /// `localhost`, 127.0.0.0/8 and `[::1]`, with any port.
    LoopbackNames,
    /// Those on the list; see [`Guards::with_allowed_host`].
    List(Vec<Host>),
    /// All of them.
    Any,
}

/// Which peers are proxies that set `X-Forwarded-For` and remove what clients wrote there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProxyPolicy {
    /// Those at a loopback address.
    #[default]
    Loopback,
    /// Those in these networks.
    List(Vec<Network>),
}

/// An entry of [`ProxyPolicy::List`]: a network such as `10.0.0.0/8`, or an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network(IpNet);

/// An entry of [`OriginPolicy::List`]: scheme, host and port, in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin(String);

/// An entry of [`HostPolicy::List`]: a host in lower case, and a port if it matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    name: String,
    port: Option<u16>,
}

/// The HTTP status to answer with, and the reason, fit for a log and for the reply.
type Rejection = (StatusCode, &'static str);

/// A list entry that can never match.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{entry:?} is not {expected}")]
pub struct BadGuard {
    entry: String,
    expected: &'static str,
}

impl BadGuard {
    fn new(entry: &str, expected: &'static str) -> Self {
        let entry = entry.to_owned();
        Self { entry, expected }
    }
}

impl Guards {
    /// Serves web pages of this origin, for example `https://app.example.com` or
    /// `http://localhost:5173`. The port has to match; a scheme's default port may be omitted.
    ///
    /// # Errors
    /// [`BadGuard`] for a path, a wildcard or `null`.
    pub fn with_allowed_origin(mut self, origin: &str) -> Result<Self, BadGuard> {
        let entry = Origin::parse(origin);
        let entry =
            entry.ok_or_else(|| BadGuard::new(origin, "scheme://host or scheme://host:port"))?;
        match &mut self.origins {
            OriginPolicy::List(list) | OriginPolicy::Loopback(list) => list.push(entry),
            other => *other = OriginPolicy::List(vec![entry]),
        }
        Ok(self)
    }

    /// Serves requests for this host, with any port or with the given one. The first call replaces
    /// the default, including loopback names.
    ///
    /// # Errors
    /// [`BadGuard`] if `host` is not a host.
    pub fn with_allowed_host(mut self, host: &str) -> Result<Self, BadGuard> {
        let entry = Host::parse(host);
        let entry = entry.ok_or_else(|| BadGuard::new(host, "host or host:port"))?;
        match &mut self.hosts {
            HostPolicy::List(list) => list.push(entry),
            other => *other = HostPolicy::List(vec![entry]),
        }
        Ok(self)
    }

    /// Trusts the `X-Forwarded-For` of a proxy at this address or in this network, for example `10.0.0.0/8`. The
    /// first call replaces the default.
    ///
    /// # Errors
    /// [`BadGuard`] if it is neither.
    pub fn with_trusted_proxy(mut self, network: &str) -> Result<Self, BadGuard> {
        let address = |_| network.parse().map(|address: IpAddr| address.into());
        let entry = network.parse().or_else(address).map(Network);
        let expected = "an IP address or a network such as 10.0.0.0/8";
        let entry = entry.map_err(|_: AddrParseError| BadGuard::new(network, expected))?;
        match &mut self.proxies {
            ProxyPolicy::List(list) => list.push(entry),
            ProxyPolicy::Loopback => self.proxies = ProxyPolicy::List(vec![entry]),
        }
        Ok(self)
    }

    fn is_proxy(&self, address: IpAddr) -> bool {
        match &self.proxies {
            ProxyPolicy::Loopback => address.is_loopback(),
            ProxyPolicy::List(list) => list.iter().any(|it| it.0.contains(&address)),
        }
    }

    /// Returns who asks, for limits: the peer, or behind [trusted proxies](Self::with_trusted_proxy) the
    /// last address in `X-Forwarded-For` that is none of them. Of IPv6 it is the network of 64 bits, which one
    /// caller has as a whole.
    #[must_use]
    pub fn caller(&self, peer: SocketAddr, headers: &HeaderMap) -> IpAddr {
        let mut caller = peer.ip().to_canonical();
        let lists = headers.get_all("x-forwarded-for").iter().rev();
        let lists = lists.filter_map(|list| list.to_str().ok());
        let mut forwarded = lists.flat_map(|list| list.rsplit(','));
        while self.is_proxy(caller)
            && let Some(next) = forwarded.next()
            && let Ok(next) = next.trim().parse::<IpAddr>()
        {
            caller = next.to_canonical();
        }
        match caller {
            IpAddr::V6(address) => {
                let network = address.to_bits() >> 64 << 64;
                IpAddr::V6(Ipv6Addr::from_bits(network))
            }
            address => address,
        }
    }

    /// Resolves [`HostPolicy::Auto`] for a server that listens on `local`.
    #[must_use]
    pub fn for_bind(mut self, local: SocketAddr) -> Self {
        if self.hosts == HostPolicy::Auto {
            self.hosts = if local.ip().to_canonical().is_loopback() {
                HostPolicy::LoopbackNames
            } else {
                HostPolicy::Any
            };
        }
        self
    }

    /// Runs all three checks.
    ///
    /// # Errors
    /// The HTTP status to answer with, and the reason, fit for a log and for the reply.
    pub fn check(&self, parts: &Parts, peer: SocketAddr) -> Result<(), (StatusCode, &'static str)> {
        self.check_peer(peer)?;
        self.check_host(parts)?;
        self.check_origin(parts)
    }

    /// Checks the peer's address.
    ///
    /// # Errors
    /// 403 for a peer that is not served.
    pub(super) fn check_peer(&self, peer: SocketAddr) -> Result<(), Rejection> {
        match self.peers {
            PeerPolicy::Any => Ok(()),
            PeerPolicy::LocalhostOnly if is_localhost(peer.ip()) => Ok(()),
            PeerPolicy::LocalhostOnly => Err(forbidden(
                "Forbidden: Non-localhost connections not allowed",
            )),
        }
    }

    /// Checks the `Origin` header.
    ///
    /// # Errors
    /// 403 for an origin that is not served, also for `null` and for several at once.
    pub(super) fn check_origin(&self, parts: &Parts) -> Result<(), Rejection> {
        if self.origins == OriginPolicy::Any {
            return Ok(());
        }
        let origin = match only(parts, &header::ORIGIN) {
            Ok(None) => return Ok(()),
            Err(()) => return Err(forbidden("the Origin header is not valid")),
            Ok(Some(origin)) => origin,
        };
        if self.same_origin && is_same(origin, parts) {
            return Ok(());
        }
        let (list, takes_loopback, why) = match &self.origins {
            OriginPolicy::List(list) => (list, false, "the origin is not on the list"),
            OriginPolicy::Loopback(list) => (
                list,
                true,
                "the origin is not of this machine and not on the list",
            ),
            _ => return Err(forbidden("requests of web pages are not served")),
        };
        let is_served =
            |origin: Origin| takes_loopback && origin.is_loopback() || list.contains(&origin);
        let is_served = Origin::parse(origin).is_some_and(is_served);
        is_served.then_some(()).ok_or(forbidden(why))
    }

    /// Checks the `Host` header, and the host of an absolute request target.
    ///
    /// # Errors
    /// 403 for a host that is not served, 400 for a missing or repeated header.
    pub(super) fn check_host(&self, parts: &Parts) -> Result<(), Rejection> {
        if self.hosts == HostPolicy::Any {
            return Ok(());
        }
        let host = match only(parts, &header::HOST) {
            Ok(Some(host)) => host,
            // So ask proxies whether a server is healthy. A browser always says where it is.
            Ok(None) if parts.version == Version::HTTP_10 => return Ok(()),
            _ => return Err((StatusCode::BAD_REQUEST, "one Host header is needed")),
        };
        let target = parts.uri.authority().map(http::uri::Authority::as_str);
        for host in [Some(host), target].into_iter().flatten() {
            let served = Host::parse(host).is_some_and(|host| match &self.hosts {
                HostPolicy::List(list) => list.iter().any(|entry| entry.matches(&host)),
                _ => host.is_loopback(),
            });
            if !served {
                return Err(forbidden("the Host is not served here"));
            }
        }
        Ok(())
    }
}

impl Origin {
    fn parse(text: &str) -> Option<Self> {
        let (scheme, authority) = text.split_once("://")?;
        let valid = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
        if scheme.is_empty() || !scheme.bytes().all(valid) {
            return None;
        }
        let scheme = scheme.to_ascii_lowercase();
        let host = Host::parse(authority)?;
        let default = match scheme.as_str() {
            "http" | "ws" => Some(80),
            "https" | "wss" => Some(443),
            _ => None,
        };
        let name = host.name;
        Some(Self(
            match host.port.filter(|port| Some(*port) != default) {
                Some(port) => format!("{scheme}://{name}:{port}"),
                None => format!("{scheme}://{name}"),
            },
        ))
    }

    fn is_loopback(&self) -> bool {
        let Some(("http" | "https", authority)) = self.0.split_once("://") else {
            return false;
        };
        Host::parse(authority).is_some_and(|host| host.is_loopback())
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Host {
    /// Parses `host`, `host:port`, `[v6]` or `[v6]:port`. Removes one trailing dot of a name.
    fn parse(text: &str) -> Option<Self> {
        let end = match text.starts_with('[') {
            true => text.find(']')? + 1,
            false => text.find(':').unwrap_or(text.len()),
        };
        let (name, port) = text.split_at(end);
        let port = match port.strip_prefix(':') {
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                Some(digits.parse().ok()?)
            }
            None if port.is_empty() => None,
            _ => return None,
        };
        let name = if let Some(address) = name.strip_prefix('[') {
            let address: Ipv6Addr = address.strip_suffix(']')?.parse().ok()?;
            format!("[{address}]")
        } else {
            let name = name.strip_suffix('.').unwrap_or(name);
            let valid = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
            if name.is_empty() || !name.bytes().all(valid) {
                return None;
            }
            name.to_ascii_lowercase()
        };
        Some(Self { name, port })
    }

    fn matches(&self, other: &Self) -> bool {
        self.name == other.name && (self.port.is_none() || self.port == other.port)
    }

    fn is_loopback(&self) -> bool {
        let address = self.name.parse::<Ipv4Addr>();
        ["localhost", "[::1]"].contains(&&*self.name) || address.is_ok_and(|it| it.is_loopback())
    }
}

/// Returns the header's value, if it is there; an error if there are several, or it is not text.
fn only<'a>(parts: &'a Parts, name: &HeaderName) -> Result<Option<&'a str>, ()> {
    let mut values = parts.headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(drop),
        (Some(_), Some(_)) => Err(()),
    }
}

/// Returns whether a page comes from the host that its request names.
fn is_same(origin: &str, parts: &Parts) -> bool {
    let (Some(origin), Ok(Some(host))) = (Origin::parse(origin), only(parts, &header::HOST)) else {
        return false;
    };
    let mut schemes = ["http", "https"].into_iter();
    schemes.any(|scheme| Origin::parse(&format!("{scheme}://{host}")).as_ref() == Some(&origin))
}

fn is_localhost(address: IpAddr) -> bool {
    [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()].contains(&address.to_canonical())
}

const fn forbidden(why: &'static str) -> Rejection {
    (StatusCode::FORBIDDEN, why)
}

#[cfg(test)]
mod tests;
