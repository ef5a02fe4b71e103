//! Connecting over WebSockets: [`connect`], [`connect_lazy`] and [`dialer`].

pub use rpc_core::net::ws::ConnectError;
use rpc_core::net::ws::{BadHeader, WsDialer, urls};

use super::{Client, Connection, Events, connect_with};
use crate::auth::Offer;
use crate::client::ClientConfig;
use crate::http::rpc_url;

/// What the credentials are in errors.
const KEY: &str = "the API key";

/// Connects to a server. The URL is the server's,
/// or that of its WebSocket; several, separated by commas, are the nodes of one service, which a
/// [`WsDialer`] goes round.
///
/// Makes one attempt. The connection that is returned reconnects whenever it is lost, once you
/// [run](Connection::run) it.
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
/// let (client, _, connection) = net::connect(&url, config).await?; // http://127.0.0.1:6767
/// tokio::spawn(connection.run());
/// let mut chat = client.chat(ChatRequest::new("hi", "gpt-5-mini")).await;
/// println!("{}", chat.finish().await);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`ConnectError`], within the deadlines of the dial and the handshake.
///
/// # Cancel safety
/// Dropping the future drops the connection.
pub async fn connect(
    url: &str,
    config: ClientConfig,
) -> Result<(Client, Events, Connection), ConnectError> {
    let (client, events, connection) = connect_lazy(url, config)?;
    Ok((client, events, connection.establish().await?))
}

/// Like [`connect`], but returns at once: the connection makes the first attempt as well when it
/// runs, and keeps trying. For programs that may start before their server.
///
/// # Errors
/// As for [`dialer`].
pub fn connect_lazy(
    url: &str,
    config: ClientConfig,
) -> Result<(Client, Events, Connection), ConnectError> {
    Ok(connect_with(dialer(url, &config)?, config))
}

/// Creates a WebSocket dialer for a server, with the message limit and the key of `config`.
///
/// The key goes in a subprotocol, behind a neutral one for servers to select; a key that no
/// subprotocol can hold goes in a header, which servers accept as well.
///
/// # Errors
/// [`ConnectError::Dial`] if the URL is invalid; [`ConnectError::Header`] if no header can carry the
/// key; [`ConnectError::Insecure`] if `config` has a key, the URL is not encrypted, its host is not
/// this machine, and [`insecure`](ClientConfig::insecure) is not set.
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
    let mut dialer = WsDialer::for_client(url, &config.link, config.limits.max_message_bytes)?;
    if config.api_key.is_some() && !config.insecure {
        dialer = dialer.protect(KEY)?;
    }
    for name in offer.subprotocols {
        dialer = dialer
            .with_subprotocol(name.into_inner())
            .map_err(no_header)?;
    }
    if let Some(value) = &offer.authorization {
        // Servers disagree on the meaning of other bytes.
        if !value.expose().is_ascii() {
            return Err(ConnectError::Header { what: KEY });
        }
        dialer = dialer
            .with_secret_header("Authorization", value)
            .map_err(no_header)?;
    }
    Ok(dialer)
}

fn no_header(_: BadHeader) -> ConnectError {
    ConnectError::Header { what: KEY }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::ApiKey;

    fn keyed(key: &str) -> ClientConfig {
        ClientConfig::new(ApiKey::new(key).unwrap())
    }

    #[test]
    fn a_key_is_sent_unencrypted_only_where_allowed() {
        let config = keyed("k");
        assert!(dialer("http://127.0.0.1:6767", &config).is_ok());
        let refused = dialer("http://example.org", &config);
        assert!(matches!(refused, Err(ConnectError::Insecure { .. })));
        let allowed = ClientConfig {
            insecure: true,
            ..config
        };
        assert!(dialer("http://example.org", &allowed).is_ok());
        assert!(dialer("http://example.org", &ClientConfig::default()).is_ok());
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
            matches!(&exposed, Err(ConnectError::Insecure { host, .. }) if host == "b.example"),
            "{exposed:?}"
        );
    }

    #[test]
    fn a_key_is_sent_behind_a_neutral_subprotocol_or_in_a_header() {
        let token = dialer(
            "http://h",
            &ClientConfig {
                insecure: true,
                ..keyed("k-1")
            },
        )
        .unwrap();
        assert_eq!(token.config().subprotocols, ["acolyte.v1", "bearer.k-1"]);
        assert!(token.config().headers.is_empty());
        let padded = dialer(
            "http://h",
            &ClientConfig {
                insecure: true,
                ..keyed("a/b=")
            },
        )
        .unwrap();
        assert!(padded.config().subprotocols.is_empty());
        assert_eq!(padded.config().headers["authorization"], "Bearer a/b=");
        assert!(!format!("{padded:?}").contains("a/b="));
        let open = dialer("http://h", &ClientConfig::default()).unwrap();
        assert!(open.config().subprotocols.is_empty());
        let impossible = dialer("https://h", &keyed("schl\u{fc}ssel")).map(drop);
        assert!(
            matches!(impossible, Err(ConnectError::Header { .. })),
            "{impossible:?}"
        );
    }
}
