//! Connecting over WebSockets: [`connect`] and [`dialer`], and their errors.

use rpc_core::net::DialError;
use rpc_core::net::ws::{BadHeader, WsConfig, WsDialer, urls};

use super::{Client, Connection, Events, connect_with, link_config};
use crate::auth::Offer;
use crate::client::ClientConfig;
use crate::http::rpc_url;

/// Why no connection was attempted. Retrying does not help.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The URL cannot be dialled: [`DialError::BadUrl`].
    #[error(transparent)]
    Dial(#[from] DialError),
    /// The key cannot be sent: HTTP headers hold ASCII only.
    #[error("the API key cannot be sent in a header")]
    Key,
    /// The key would go to another machine without encryption. Use `https://`, or allow it with
    /// [`insecure_key`](ClientConfig::insecure_key).
    #[error("the API key would be sent to {host} without encryption")]
    InsecureKey {
        /// The URL's host.
        host: String,
    },
}

impl From<BadHeader> for ConnectError {
    fn from(_: BadHeader) -> Self {
        Self::Key
    }
}

/// Connects to a server, and reconnects whenever the connection is lost. The URL is the server's,
/// by the rule of [`rpc_url`]; several, separated by commas, are the nodes of one service, which a
/// [`WsDialer`] goes round.
///
/// Nothing happens until the connection's `run` is polled.
///
/// ```
/// use acolyte_proto::frame::ChatRequest;
/// use acolyte_proto::auth::ApiKey;
/// use acolyte_proto::client::ClientConfig;
/// use acolyte_proto::net;
///
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/net/echo.inc"));
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let url = server(acolyte_proto::auth::Auth::key(ApiKey::new("secret")?)).await?;
/// let config = ClientConfig::new(ApiKey::new("secret")?);
/// let (client, _, connection) = net::connect(&url, config)?; // http://127.0.0.1:6767
/// tokio::spawn(connection.run());
/// client.ready().await?;
/// let mut chat = client.start_chat(ChatRequest::new("hi", "gpt-5-mini")).await;
/// println!("{}", chat.finish().await);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As for [`dialer`].
pub fn connect(
    url: &str,
    config: ClientConfig,
) -> Result<(Client, Events, Connection<WsDialer>), ConnectError> {
    Ok(connect_with(dialer(url, &config)?, config, link_config()))
}

/// Creates a WebSocket dialer for a server, with the message limit and the key of `config`.
///
/// The key goes in a subprotocol, behind a neutral one for servers to select; a key that no
/// subprotocol can hold goes in a header, which servers accept as well.
///
/// # Errors
/// [`ConnectError::Dial`] if the URL is invalid; [`ConnectError::Key`] if no header can carry the
/// key; [`ConnectError::InsecureKey`] if `config` has a key, the URL is not encrypted and its host
/// is not this machine.
pub fn dialer(url: &str, config: &ClientConfig) -> Result<WsDialer, ConnectError> {
    let offer = Offer::for_websocket(config.api_key.as_ref());
    dialer_with(&each(url, rpc_url), config, offer)
}

/// Returns the list of the endpoints for a list of servers.
pub(super) fn each(list: &str, endpoint: fn(&str) -> String) -> String {
    urls(list).map(endpoint).collect::<Vec<_>>().join(",")
}

/// Creates a dialer for exactly these URLs, with these credentials.
pub(super) fn dialer_with(
    url: &str,
    config: &ClientConfig,
    offer: Offer,
) -> Result<WsDialer, ConnectError> {
    let ws = WsConfig::default()
        .with_max_message(config.limits.max_message_bytes)
        .with_max_outgoing(config.limits.max_message_bytes);
    let mut dialer = WsDialer::new(url)?.with_config(ws);
    if let Some(host) = dialer.exposed_host()
        && config.api_key.is_some()
        && !config.insecure_key
    {
        return Err(ConnectError::InsecureKey {
            host: host.to_owned(),
        });
    }
    for name in offer.subprotocols {
        dialer = dialer.with_subprotocol(name.into_inner())?;
    }
    if let Some(value) = &offer.authorization {
        // Servers disagree on the meaning of other bytes.
        if !value.expose().is_ascii() {
            return Err(ConnectError::Key);
        }
        dialer = dialer.with_secret_header("Authorization", value)?;
    }
    Ok(dialer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::ApiKey;

    fn keyed(key: &str) -> ClientConfig {
        ClientConfig::new(ApiKey::new(key).unwrap())
    }

    #[test]
    fn a_key_goes_in_the_clear_to_this_machine_only() {
        let config = keyed("k");
        for url in [
            "ws://127.0.0.1:6767",
            "http://127.9.9.9",
            "ws://[::1]:6767/v1/rpc",
            "ws://LocalHost",
            "wss://example.org",
            "HTTPS://example.org:6767",
        ] {
            assert!(dialer(url, &config).is_ok(), "{url}");
        }
        for (url, named) in [
            ("ws://example.org:6767", "example.org"),
            ("http://192.168.0.7/a", "192.168.0.7"),
            ("http://localhost.example.org", "localhost.example.org"),
        ] {
            let refused = dialer(url, &config).map(drop);
            assert!(
                matches!(&refused, Err(ConnectError::InsecureKey { host }) if host == named),
                "{url}: {refused:?}"
            );
            assert!(dialer(url, &ClientConfig::default()).is_ok(), "{url}");
            let allowed = ClientConfig {
                insecure_key: true,
                ..config.clone()
            };
            assert!(dialer(url, &allowed).is_ok(), "{url}");
        }
        let bad = dialer("ftp://h", &config).map(drop);
        assert!(matches!(
            bad,
            Err(ConnectError::Dial(DialError::BadUrl { .. }))
        ));
    }

    #[test]
    fn each_server_of_a_list_gets_the_path_and_is_checked() {
        let listed = "http://127.0.0.1:1, https://b.example/base/";
        let dialer = dialer(listed, &keyed("k")).unwrap();
        let shown = format!("{dialer:?}");
        let expected = "\"ws://127.0.0.1:1/v1/rpc,wss://b.example/base/v1/rpc\"";
        assert!(shown.contains(expected), "{shown}");
        let exposed = super::dialer("https://a.example,http://b.example", &keyed("k")).map(drop);
        assert!(
            matches!(&exposed, Err(ConnectError::InsecureKey { host }) if host == "b.example"),
            "{exposed:?}"
        );
    }

    #[test]
    fn a_key_hides_behind_a_neutral_subprotocol_or_in_a_header() {
        let token = dialer(
            "http://h",
            &ClientConfig {
                insecure_key: true,
                ..keyed("k-1")
            },
        )
        .unwrap();
        assert_eq!(token.config().subprotocols(), ["acolyte.v1", "bearer.k-1"]);
        assert!(token.config().headers().is_empty());
        let padded = dialer(
            "http://h",
            &ClientConfig {
                insecure_key: true,
                ..keyed("a/b=")
            },
        )
        .unwrap();
        assert!(padded.config().subprotocols().is_empty());
        assert_eq!(padded.config().headers()["authorization"], "Bearer a/b=");
        assert!(!format!("{padded:?}").contains("a/b="));
        let open = dialer("http://h", &ClientConfig::default()).unwrap();
        assert!(open.config().subprotocols().is_empty());
        let impossible = dialer("https://h", &keyed("schl\u{fc}ssel")).map(drop);
        assert!(
            matches!(impossible, Err(ConnectError::Key)),
            "{impossible:?}"
        );
    }
}
