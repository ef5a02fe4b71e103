//! [`client`]: the HTTP client of a model, and addresses.

use std::net::Ipv6Addr;
use std::time::Duration;

use reqwest::{Client, Url};
use rpc_core::net::tls::TlsConfig;

use crate::model::ModelError;

/// How long a connection may take, with TLS.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Most idle connections per provider.
const MAX_IDLE: usize = 32;
/// How long to keep them: providers close theirs after a minute or more, and a request that
/// coincides with the close is lost.
const MAX_IDLE_TIME: Duration = Duration::from_secs(30);

/// Creates a client for an address, which keeps connections or makes a new one each time.
///
/// It does not follow redirects, so that a key and a conversation go only to the configured server, and uses the
/// proxies of the environment, except for this machine.
pub(super) fn client(url: &Url, keeps: bool) -> Result<Client, ModelError> {
    // Names its crypto provider itself, whatever others in the process use.
    let tls = TlsConfig::platform().map_err(ModelError::setup)?;
    let mut builder = Client::builder()
        .tls_backend_preconfigured((**tls.as_rustls()).clone())
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_max_idle_per_host(if keeps { MAX_IDLE } else { 0 })
        .pool_idle_timeout(MAX_IDLE_TIME)
        .tcp_nodelay(true)
        .user_agent(concat!("switchboard/", env!("CARGO_PKG_VERSION")));
    if is_loopback(url) {
        // As the dialers of this workspace: IPv4 first, since another program may listen at `::1`.
        let both = [([127, 0, 0, 1], 0).into(), (Ipv6Addr::LOCALHOST, 0).into()];
        builder = builder.no_proxy().resolve_to_addrs("localhost", &both);
    }
    builder
        .build()
        .map_err(|error| ModelError::setup(chain(&error)))
}

/// Parses an address; `example` shows a valid one, and `setting` is where it comes from. Errors do not contain the address, which may
/// have a password.
pub(super) fn endpoint(text: &str, example: &str, setting: &str) -> Result<Url, ModelError> {
    let bad = |why: &str| {
        ModelError::setup(format_args!(
            "{setting}: bad address: {why}; write it like {example}"
        ))
    };
    if !text.contains("://") {
        return Err(bad("it begins with neither http:// nor https://"));
    }
    let url = Url::parse(text).map_err(|error| bad(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(bad("it is neither http:// nor https://"));
    }
    if url.host_str().is_none() {
        return Err(bad("it names no host"));
    }
    Ok(url)
}

pub(super) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || host
            .parse()
            .is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
}

/// Formats an error with its causes.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let causes: Vec<String> = causes.map(ToString::to_string).collect();
    causes.join(": ")
}
