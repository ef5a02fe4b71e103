//! Connecting over WebSockets: [`connect`], [`connect_lazy`] and [`dialer`].

use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::task::Poll;

use rpc_core::CloseReason;
pub use rpc_core::net::ws::ConnectError;
use rpc_core::net::ws::{WsConfig, WsDialer};

use super::{Client, Connection, Events, connect_with};
use crate::client::ClientConfig;
use crate::client::Sign;
use crate::limits::WS_PATH;

/// Connects to an agent, for a new session or the one of `config`. Several URLs, separated by commas, are the nodes of one host, which a [`WsDialer`] goes round; requests are signed for the
/// agent, whichever node they go to.
///
/// Makes one attempt. The connection that is returned reconnects whenever it is lost, once you
/// [run](Connection::run) it.
///
#[cfg_attr(
    feature = "auth",
    doc = r#"
```
use connectonion_proto::auth::Signer;
use connectonion_proto::client::ClientConfig;
use connectonion_proto::net;

# include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/net/echo.inc"));
# #[tokio::main(flavor = "current_thread")]
# async fn main() -> Result<(), Box<dyn std::error::Error>> {
# let host = host().await?;
# let url = host.url();
# tokio::spawn(host.run());
let signer = Signer::from_seed(&[7; 32]); // or Signer::load(".co/keys/agent.key")
let options = ClientConfig::default();
let (agent, _, connection) = net::connect(&url, signer, options).await?; // ws://127.0.0.1:8000
tokio::spawn(connection.run());
println!("{}", agent.chat("hello").await.finish().await?.result);
# Ok(())
# }
```
"#
)]
/// # Errors
/// [`ConnectError`], within the deadlines of the dial and the handshake. An agent that asks for
/// onboarding is [`CloseReason::Refused`], unless it takes the
/// [invite code](ClientConfig::invite_code): to answer it otherwise, use [`connect_lazy`].
///
/// # Cancel safety
/// Dropping the future drops the connection.
pub async fn connect(
    url: &str,
    identity: impl Sign,
    config: ClientConfig,
) -> Result<(Client, Events, Connection), ConnectError> {
    let (client, events, connection) = connect_lazy(url, identity, config)?;
    let mut establishing = pin!(connection.establish());
    let connection = poll_fn(|cx| match establishing.as_mut().poll(cx) {
        Poll::Pending if client.shared.lock().stranger => Poll::Ready(Err(CloseReason::Refused {
            message: "the agent asks strangers for an invite code or a payment".to_owned(),
            retryable: false,
        })),
        polled => polled,
    });
    let connection = connection.await?;
    Ok((client, events, connection))
}

/// Like [`connect`], but returns at once: the connection makes the first attempt as well when it
/// runs, and keeps trying. For programs that may start before their agent, or answer onboarding.
///
/// # Errors
/// As for [`dialer`].
pub fn connect_lazy(
    url: &str,
    identity: impl Sign,
    config: ClientConfig,
) -> Result<(Client, Events, Connection), ConnectError> {
    Ok(connect_with(dialer(url, &config)?, identity, config))
}

/// Creates a WebSocket dialer for an agent, with the message limits of `config`. `http(s)` URLs
/// are read as `ws(s)`; a URL without a path, or an `http(s)` URL with a prefix, gets `/ws`.
///
/// # Errors
/// [`ConnectError::Dial`] if the URL is invalid; [`ConnectError::Insecure`] if it is not `wss://`
/// and its host is not this machine.
pub fn dialer(url: &str, config: &ClientConfig) -> Result<WsDialer, ConnectError> {
    let dialer = WsDialer::for_client(url, &config.link, config.limits.max_message_bytes)?;
    let ws = WsConfig {
        max_outgoing: config.max_sent_bytes,
        ..dialer.config().clone()
    };
    let dialer = dialer.or_path(WS_PATH)?.with_config(ws);
    if config.insecure {
        return Ok(dialer);
    }
    dialer.protect("prompts")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_are_sent_unencrypted_only_where_allowed() {
        let options = ClientConfig::default();
        assert!(dialer("ws://127.0.0.1:8000", &options).is_ok());
        let refused = dialer("ws://example.org", &options);
        assert!(matches!(refused, Err(ConnectError::Insecure { .. })));
        let allowed = ClientConfig {
            insecure: true,
            ..options
        };
        assert!(dialer("ws://example.org", &allowed).is_ok());
    }
}
