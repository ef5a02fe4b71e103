//! What the commands that serve have in common: TLS, who can reach them, and from which web pages.

use std::fmt::Display;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rpc_core::keepalive::KeepAlive;
use rpc_core::net::server::{Guards, HttpConfig, OriginPolicy};
use rpc_core::net::tls::TlsAcceptor;
use rpc_core::sync::Mutex;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::{Failure, bounded, complain};

/// The extra time for connections to close after the work in progress, when a server ends.
pub const GOODBYE: Duration = Duration::from_secs(2);

/// How connections come to a server: its certificate, and the proxies before it.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "TLS and proxies")]
pub struct TlsArgs {
    /// Serve TLS only, with this certificate chain: a PEM file that begins with the server's own.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The private key of the certificate, as a PEM file.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// A proxy, as an address or a network like 10.0.0.0/8, whose X-Forwarded-For names the callers; may be
    /// repeated. Who guesses secrets is slowed down by that address. Default: proxies of this machine.
    #[arg(long = "trust-proxy", value_name = "NET")]
    pub proxies: Vec<String>,
}

impl TlsArgs {
    /// Reads the certificate and its key, if they are given, and again when their files have changed.
    ///
    /// # Errors
    /// [`Failure`] if a file cannot be read, or the two do not match.
    pub fn acceptor(&self) -> Result<Option<TlsAcceptor>, Failure> {
        let (Some(cert), Some(key)) = (&self.tls_cert, &self.tls_key) else {
            return Ok(None);
        };
        let files = [cert.clone(), key.clone()];
        let TlsAcceptor(mut config) = read(&files)?;
        let shown = (modified(&files), Arc::clone(&config.cert_resolver));
        let shown = Mutex::new(shown);
        Arc::make_mut(&mut config).cert_resolver = Arc::new(Renewed { files, shown });
        Ok(Some(TlsAcceptor(config)))
    }

    /// Returns the configuration with the proxies, and with TLS if a certificate is given.
    ///
    /// # Errors
    /// As [`acceptor`](Self::acceptor), and if a proxy is invalid.
    pub fn http(&self, mut http: HttpConfig) -> Result<HttpConfig, Failure> {
        http.guards = trusting(http.guards, &self.proxies)?;
        let http = match self.acceptor()? {
            Some(acceptor) => HttpConfig {
                tls: Some(acceptor),
                ..http
            },
            None => http,
        };
        activated(http)
    }

    /// Returns an `http://` or `ws://` URL of the server as clients have to write it.
    #[must_use]
    pub fn url(&self, url: &str) -> String {
        match (url.split_once("://"), &self.tls_cert) {
            (Some((scheme, rest)), Some(_)) => format!("{scheme}s://{rest}"),
            _ => url.to_owned(),
        }
    }

    /// Returns whether connections are encrypted.
    #[must_use]
    pub const fn is_on(&self) -> bool {
        self.tls_cert.is_some()
    }
}

/// A certificate and its key, which are read again when their files have changed: certificates are renewed every few
/// weeks.
#[derive(Debug)]
struct Renewed {
    files: [PathBuf; 2],
    shown: Mutex<(Modified, Arc<dyn ResolvesServerCert>)>,
}

type Modified = [Option<SystemTime>; 2];

impl ResolvesServerCert for Renewed {
    fn resolve(&self, client: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let mut shown = self.shown.lock();
        let now = modified(&self.files);
        if std::mem::replace(&mut shown.0, now) != now {
            match read(&self.files) {
                Ok(TlsAcceptor(config)) => shown.1 = Arc::clone(&config.cert_resolver),
                Err(error) => complain(format_args!(
                    "warning: the certificate of before stays: {error}"
                )),
            }
        }
        shown.1.resolve(client)
    }
}

fn modified(files: &[PathBuf; 2]) -> Modified {
    files
        .each_ref()
        .map(|file| file.metadata().ok()?.modified().ok())
}

fn read(files: &[PathBuf; 2]) -> Result<TlsAcceptor, Failure> {
    let [cert, key] = files;
    let named = format!("--tls-cert {}", cert.display());
    let key_named = format!("--tls-key {}", key.display());
    let (chain, key) = (
        bounded::given(&named, cert)?,
        bounded::given(&key_named, key)?,
    );
    TlsAcceptor::from_pem(&chain, &key)
        .map_err(|error| Failure::usage(format_args!("{named}, {key_named}: {error}")))
}

/// Where the help has the options of pings.
const PINGS: &str = "Pings";

/// Returns the configuration with the socket that systemd listens on for this program, if it does (`LISTEN_FDS`).
///
/// # Errors
/// [`Failure`] if what systemd gives is no TCP socket.
pub fn activated(mut http: HttpConfig) -> Result<HttpConfig, Failure> {
    let listener = listenfd::ListenFd::from_env().take_tcp_listener(0);
    let listener = listener.map_err(|error| {
        Failure::usage(format_args!(
            "the socket from systemd (LISTEN_FDS): {error}"
        ))
    })?;
    http.listener = listener.map(Into::into).or(http.listener);
    Ok(http)
}

/// How a program finds out that its peer is gone.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Pings {
    /// How often to ping; 0 disables pings. Default: that of the protocol.
    #[arg(long, value_name = "TIME", value_parser = super::duration, help_heading = PINGS)]
    heartbeat: Option<Duration>,
    /// How long to wait for the answer to a ping. Default: that of the protocol.
    #[arg(long, value_name = "TIME", value_parser = super::timeout, help_heading = PINGS)]
    pong_timeout: Option<Duration>,
}

impl Pings {
    /// Returns the settings of a protocol with what the user has changed.
    #[must_use]
    pub fn over(&self, mut protocol: KeepAlive) -> KeepAlive {
        if let Some(interval) = self.heartbeat {
            protocol.interval = Some(interval).filter(|interval| !interval.is_zero());
        }
        protocol.pong_timeout = self.pong_timeout.unwrap_or(protocol.pong_timeout);
        protocol
    }
}

/// Whether other machines can reach a server, and under which names.
#[derive(Debug, clap::Args)]
pub struct Reach {
    /// Allow listening on an address that other machines can reach.
    #[arg(long)]
    public: bool,
    /// A host name to serve; may be repeated. Default: loopback names on a loopback address, else all.
    #[arg(long = "allow-host", value_name = "HOST")]
    pub hosts: Vec<String>,
}

impl Reach {
    /// Returns whether other machines can reach `address`.
    ///
    /// # Errors
    /// [`Failure`] if they can and the user did not say so.
    pub fn check(&self, address: SocketAddr) -> Result<bool, Failure> {
        let is_public = !address.ip().to_canonical().is_loopback();
        if is_public && !self.public {
            return Err(Failure::usage(format_args!(
                "other machines can reach {address}: add --public to allow that"
            )));
        }
        Ok(is_public)
    }

    /// Warns of what goes with a server that other machines can reach.
    pub fn warn(&self, tls: &TlsArgs) {
        if !tls.is_on() {
            complain(
                "warning: other machines can reach this server, and nothing is encrypted: use --tls-cert \
                 and --tls-key, or a proxy with TLS in front of it",
            );
        }
        if self.hosts.is_empty() {
            complain(
                "warning: requests for any host name are served: name yours with --allow-host",
            );
        }
    }
}

/// Returns the warning of a secret of this name that can be guessed.
#[must_use]
pub fn guessable(name: &str) -> String {
    format!("{name} is short enough to be guessed: take 16 random characters or more")
}

/// Adds the names and the origins of web pages that the options allow.
///
/// # Errors
/// [`Failure`] if one of them is invalid.
pub fn guards(guards: Guards, hosts: &[String], origins: &[String]) -> Result<Guards, Failure> {
    let given = [("--allow-host", hosts), ("--allow-origin", origins)];
    guards_of(guards, given)
}

/// Adds names, and origins of web pages, each of a setting.
///
/// # Errors
/// [`Failure`] if one of them is invalid, with its setting.
pub fn guards_of(
    mut guards: Guards,
    [(hosts, names), (origins, pages)]: [(&str, &[String]); 2],
) -> Result<Guards, Failure> {
    let wrong = |place, error: &dyn Display| Failure::usage(format_args!("{place}: {error}"));
    for host in names {
        let added = guards.with_allowed_host(host);
        guards = added.map_err(|error| wrong(hosts, &error))?;
    }
    for origin in pages {
        let added = guards.with_allowed_origin(origin);
        guards = added.map_err(|error| wrong(origins, &error))?;
    }
    Ok(guards)
}

/// Adds the proxies of `--trust-proxy`.
///
/// # Errors
/// [`Failure`] if one of them is invalid.
pub fn trusting(mut guards: Guards, proxies: &[String]) -> Result<Guards, Failure> {
    for proxy in proxies {
        let added = guards.with_trusted_proxy(proxy);
        guards = added.map_err(|error| Failure::usage(format_args!("--trust-proxy: {error}")))?;
    }
    Ok(guards)
}

/// Describes which web pages these guards admit, for a line at start.
#[must_use]
pub fn web_pages(guards: &Guards) -> String {
    let (group, listed) = match &guards.origins {
        OriginPolicy::List(list) => (None, &list[..]),
        OriginPolicy::Loopback(list) => (Some("those of this machine, at any port"), &list[..]),
        OriginPolicy::Any => (Some("all"), &[][..]),
        _ => (None, &[][..]),
    };
    let own = guards.same_origin.then_some("its own");
    let named = own.into_iter().chain(group).map(str::to_owned);
    let pages: Vec<_> = named
        .chain(listed.iter().map(ToString::to_string))
        .collect();
    match pages.is_empty() {
        true => "web pages that may connect: none".to_owned(),
        false => format!("web pages that may connect: {}", pages.join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_at_start_names_every_web_page_that_may_connect() {
        let with_origins = |origins| Guards {
            origins,
            ..Guards::default()
        };
        let its_own = Guards {
            same_origin: true,
            ..Guards::default()
        };
        let of_this_machine = Guards {
            origins: OriginPolicy::Loopback(Vec::new()),
            ..its_own.clone()
        };
        let listing = |guards: Guards| guards.with_allowed_origin("http://LOCALHOST:80").unwrap();
        for (guards, pages) in [
            (Guards::default(), "none"),
            (its_own, "its own"),
            (listing(Guards::default()), "http://localhost"),
            (
                listing(of_this_machine),
                "its own; those of this machine, at any port; http://localhost",
            ),
            (with_origins(OriginPolicy::Any), "all"),
        ] {
            let line = format!("web pages that may connect: {pages}");
            assert_eq!(web_pages(&guards), line);
        }
    }

    #[test]
    fn a_url_of_a_server_with_tls_says_so() {
        let tls = TlsArgs {
            tls_cert: Some("cert.pem".into()),
            tls_key: Some("key.pem".into()),
            proxies: Vec::new(),
        };
        assert_eq!(tls.url("ws://127.0.0.1:1/ws"), "wss://127.0.0.1:1/ws");
        assert_eq!(tls.url("http://127.0.0.1:1/"), "https://127.0.0.1:1/");
        assert_eq!(TlsArgs::default().url("ws://h"), "ws://h");
    }
}
