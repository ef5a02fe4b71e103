//! [`Shared`]: the HTTP clients behind [`HttpClient`](super::HttpClient), and addresses.

use std::collections::HashMap;
use std::net::Ipv6Addr;
use std::time::Duration;

use reqwest::{Client, Url};
use rpc_core::net::tls::TlsConfig;

use super::HttpClient;
use crate::model::ModelError;
use rpc_core::sync::Mutex;

/// Most idle connections per provider.
const MAX_IDLE: usize = 32;
/// How long to keep them: providers close theirs after a minute or more, and a request that
/// coincides with the close is lost.
const MAX_IDLE_TIME: Duration = Duration::from_secs(30);

/// The clients, created when first needed. Those for providers on this machine use no proxy.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) connect_timeout: Duration,
    pub(super) clients: Mutex<Clients>,
}

#[derive(Debug, Default)]
pub(super) struct Clients {
    tls: Option<TlsConfig>,
    /// By whether the provider is on this machine, and whether connections are kept.
    made: HashMap<(bool, bool), Client>,
}

impl HttpClient {
    /// Returns the client for an address, which keeps connections or makes a new one each time.
    pub(super) fn client(&self, url: &Url, keeps: bool) -> Result<Client, ModelError> {
        let mut clients = self.shared.clients.lock();
        let here = is_loopback(url);
        if let Some(client) = clients.made.get(&(here, keeps)) {
            return Ok(client.clone());
        }
        // Names its crypto provider itself, whatever others in the process use.
        let tls = match &clients.tls {
            Some(tls) => tls.clone(),
            None => TlsConfig::platform().map_err(ModelError::setup)?,
        };
        let mut builder = Client::builder()
            .tls_backend_preconfigured((**tls.as_rustls()).clone())
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(self.shared.connect_timeout)
            .pool_max_idle_per_host(if keeps { MAX_IDLE } else { 0 })
            .pool_idle_timeout(MAX_IDLE_TIME)
            .tcp_nodelay(true)
            .user_agent(concat!("switchboard/", env!("CARGO_PKG_VERSION")));
        if here {
            // As the dialers of this workspace: IPv4 first, since another program may listen at `::1`.
            let both = [([127, 0, 0, 1], 0).into(), (Ipv6Addr::LOCALHOST, 0).into()];
            builder = builder.no_proxy().resolve_to_addrs("localhost", &both);
        }
        let client = builder
            .build()
            .map_err(|error| ModelError::setup(chain(&error)))?;
        clients.tls = Some(tls);
        clients.made.insert((here, keeps), client.clone());
        Ok(client)
    }
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
