//! Connecting over WebSockets: [`connect`], [`dialer`], and what they refuse.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv6Addr};

use rpc_core::net::DialError;
use rpc_core::net::ws::{WsConfig, WsDialer};

use super::{AgentOptions, Connection, Events, RemoteAgent, connect_with};
use crate::client::Sign;
use crate::limits::WS_PATH;

/// Why no connection was even tried. No retry will help.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The URL cannot be dialled: [`DialError::BadUrl`].
    #[error(transparent)]
    Dial(#[from] DialError),
    /// Prompts would go to another machine without encryption. Use `wss://`, or allow it with
    /// [`with_insecure`](AgentOptions::with_insecure).
    #[error("prompts would be sent to {host} without encryption")]
    Insecure {
        /// The URL's host.
        host: String,
    },
}

/// Connects to an agent, and again whenever the line is lost.
///
/// Nothing happens until the connection's `run` is polled.
///
#[cfg_attr(
    feature = "auth",
    doc = r#"
```no_run
use connectonion_proto::auth::Signer;
use connectonion_proto::net::{self, AgentOptions};

# async fn f() -> Result<(), Box<dyn std::error::Error>> {
let signer = Signer::from_seed(&[7; 32]); // or Signer::load(".co/keys/agent.key")
let options = AgentOptions::default();
let (agent, _, connection) = net::connect("ws://127.0.0.1:8000", signer, options)?;
tokio::spawn(connection.run());
agent.ready().await?;
println!("{}", agent.input("hello").await.output().await?.result);
# Ok(())
# }
```
"#
)]
/// # Errors
/// As for [`dialer`].
pub fn connect(
    url: &str,
    identity: impl Sign,
    options: AgentOptions,
) -> Result<(RemoteAgent, Events, Connection<WsDialer>), ConnectError> {
    Ok(connect_with(dialer(url, &options)?, identity, options))
}

/// A WebSocket dialer for an agent, with the message limits of `options`. `http(s)` URLs are read as
/// `ws(s)`; a URL without a path gets `/ws`.
///
/// # Errors
/// [`ConnectError::Dial`] if the URL is none; [`ConnectError::Insecure`] if it is not `wss://` and
/// its host is not this machine.
pub fn dialer(url: &str, options: &AgentOptions) -> Result<WsDialer, ConnectError> {
    let url = with_path(url);
    let ws = WsConfig::default()
        .with_max_message(options.client.limits.max_message_bytes)
        .with_max_outgoing(options.client.max_sent_bytes);
    let dialer = WsDialer::new(&url)?.with_config(ws);
    if !options.insecure {
        check_encryption(&url)?;
    }
    Ok(dialer)
}

/// Splits a URL behind `://` into scheme and rest.
fn split(url: &str) -> (&str, &str) {
    url.split_once("://").unwrap_or(("", url))
}

fn with_path(url: &str) -> Cow<'_, str> {
    let (_, rest) = split(url);
    match rest.find(['/', '?', '#']) {
        None => format!("{url}{WS_PATH}").into(),
        Some(at) if rest.get(at..) == Some("/") => {
            format!("{}{WS_PATH}", url.trim_end_matches('/')).into()
        }
        Some(_) => url.into(),
    }
}

/// `url` is known to be a good one.
pub(super) fn check_encryption(url: &str) -> Result<(), ConnectError> {
    let (scheme, rest) = split(url);
    let encrypted = ["wss", "https"];
    if encrypted.iter().any(|it| scheme.eq_ignore_ascii_case(it)) {
        return Ok(());
    }
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(bracketed) => bracketed.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    if is_this_machine(host) {
        return Ok(());
    }
    Err(ConnectError::Insecure {
        host: host.to_owned(),
    })
}

fn is_this_machine(host: &str) -> bool {
    if host.eq_ignore_ascii_case("localhost") {
        return true;
    }
    match host.parse() {
        Ok(IpAddr::V6(address)) => {
            let inner = Ipv6Addr::to_ipv4_mapped(&address);
            inner.map_or(address.is_loopback(), |inner| inner.is_loopback())
        }
        Ok(IpAddr::V4(address)) => address.is_loopback(),
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_without_a_path_means_the_endpoint_of_the_specification() {
        for (given, meant) in [
            ("ws://h:1", "ws://h:1/ws"),
            ("wss://h/", "wss://h/ws"),
            ("ws://h/other", "ws://h/other"),
            ("ws://h?a=1", "ws://h?a=1"),
        ] {
            assert_eq!(with_path(given), meant);
        }
    }

    #[test]
    fn prompts_go_in_the_clear_to_this_machine_only() {
        let options = AgentOptions::default();
        for url in [
            "ws://127.0.0.1:8000",
            "http://127.9.9.9",
            "ws://[::1]:8000/ws",
            "ws://[::ffff:127.0.0.1]",
            "ws://LocalHost",
            "wss://example.org",
            "HTTPS://example.org:8000",
        ] {
            assert!(dialer(url, &options).is_ok(), "{url}");
        }
        let allowed = options.clone().with_insecure(true);
        for (url, named) in [
            ("ws://example.org:8000", "example.org"),
            ("http://192.168.0.7/ws", "192.168.0.7"),
            ("WS://[fe80::1]:8000", "fe80::1"),
            (
                "ws://localhost.example.org?127.0.0.1",
                "localhost.example.org",
            ),
        ] {
            let refused = dialer(url, &options).map(drop);
            assert!(
                matches!(&refused, Err(ConnectError::Insecure { host }) if host == named),
                "{url}: {refused:?}"
            );
            assert!(dialer(url, &allowed).is_ok(), "{url}");
        }
        let bad = dialer("ftp://h", &options).map(drop);
        assert!(matches!(
            bad,
            Err(ConnectError::Dial(DialError::BadUrl { .. }))
        ));
    }
}
