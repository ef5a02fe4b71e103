//! Connecting over WebSockets: [`connect`] and [`dialer`], and their errors.

use rpc_core::net::DialError;
use rpc_core::net::ws::{WsConfig, WsDialer};

use super::{AgentOptions, Client, Connection, Events, connect_with};
use crate::client::Sign;
use crate::limits::WS_PATH;

/// Why no connection was attempted. Retrying does not help.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The URL cannot be dialled: [`DialError::BadUrl`].
    #[error(transparent)]
    Dial(#[from] DialError),
    /// Prompts would be sent to another machine unencrypted. Use `wss://`, or allow it with
    /// [`with_insecure_prompts`](AgentOptions::with_insecure_prompts).
    #[error("prompts would be sent to {host} without encryption")]
    Insecure {
        /// The URL's host.
        host: String,
    },
}

/// Connects to an agent, and reconnects whenever the connection is lost. Several URLs, separated by
/// commas, are the nodes of one host, which a [`WsDialer`] goes round; requests are signed for the
/// agent, whichever node they go to.
///
/// Nothing happens until the connection's `run` is polled.
///
#[cfg_attr(
    feature = "auth",
    doc = r#"
```
use connectonion_proto::auth::Signer;
use connectonion_proto::net::{self, AgentOptions};

# include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/net/echo.inc"));
# #[tokio::main(flavor = "current_thread")]
# async fn main() -> Result<(), Box<dyn std::error::Error>> {
# let host = host().await?;
# let url = host.url();
# tokio::spawn(host.run());
let signer = Signer::from_seed(&[7; 32]); // or Signer::load(".co/keys/agent.key")
let options = AgentOptions::default();
let (agent, _, connection) = net::connect(&url, signer, options)?; // ws://127.0.0.1:8000
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
) -> Result<(Client, Events, Connection), ConnectError> {
    Ok(connect_with(dialer(url, &options)?, identity, options))
}

/// Creates a WebSocket dialer for an agent, with the message limits of `options`. `http(s)` URLs
/// are read as `ws(s)`; a URL without a path gets `/ws`.
///
/// # Errors
/// [`ConnectError::Dial`] if the URL is invalid; [`ConnectError::Insecure`] if it is not `wss://`
/// and its host is not this machine.
pub fn dialer(url: &str, options: &AgentOptions) -> Result<WsDialer, ConnectError> {
    let ws = WsConfig::default()
        .with_max_message(options.client.limits.max_message_bytes)
        .with_max_outgoing(options.client.max_sent_bytes);
    let dialer = WsDialer::new(url)?.or_path(WS_PATH)?.with_config(ws);
    match dialer.exposed_host() {
        Some(host) if !options.insecure_prompts => Err(ConnectError::Insecure {
            host: host.to_owned(),
        }),
        _ => Ok(dialer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let allowed = options.clone().with_insecure_prompts(true);
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
