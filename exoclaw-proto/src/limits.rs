//! The constants of the protocol, and which of them this crate enforces.

use std::time::Duration;

use rpc_core::Limits;

// The gateway's address

/// The port that a gateway listens on by default.
pub const DEFAULT_PORT: u16 = 7200;
/// The path of the WebSocket.
pub const WS_PATH: &str = "/ws";
/// The path that answers `ok`.
pub const HEALTH_PATH: &str = "/health";

// Frames

/// The `version` of the hello frame and of `status` that the specification shows. A server's default.
pub const HELLO_VERSION: &str = "0.1.0";
/// The `error` of a refused token.
pub(crate) const AUTH_FAILED: &str = "auth_failed";
/// The `code` of a refused token, and the close code that follows it.
pub const AUTH_FAILED_CODE: u16 = 4001;
/// The default peer of a chat.
pub(crate) const DEFAULT_PEER: &str = "main";

// Times. The specification gives none.

/// How long a client may take to send its token. Enforced by servers; configurable.
pub(crate) const AUTH_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a client with a token waits for the hello frame. Enforced; configurable.
pub(crate) const HELLO_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a client without a token waits for the hello frame before it concludes that the gateway
/// requires a token. The known page waits 800 ms, on the same machine. Enforced; configurable.
pub(crate) const TOKENLESS_HELLO_TIMEOUT: Duration = Duration::from_secs(3);
/// How long a request without a stream waits for its answer. Enforced by clients; configurable.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a chat waits for its next frame. The same as in the known page. Enforced by clients;
/// configurable.
pub(crate) const CHAT_IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// How often each side pings. Enforced; configurable.
pub(crate) const PING_INTERVAL: Duration = Duration::from_secs(30);
/// How long silence may follow a ping. Enforced; configurable.
pub(crate) const PONG_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a model's provider may be silent. For applications; `examples/switchboard/src/gateway` uses it.
pub const PROVIDER_IDLE_TIMEOUT: Duration = Duration::from_secs(45);
/// How long a tool may take. For applications; `examples/switchboard/src/gateway` uses it.
pub const TOOL_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a graceful shutdown may take. Enforced on servers; configurable.
pub(crate) const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

// Numbers

/// Most concurrent requests of one connection. Enforced by servers; configurable.
pub(crate) const MAX_REQUESTS: usize = 1_024;
/// Most bytes of a request's id, as JSON: every frame of its answer carries it. Enforced by
/// servers.
pub(crate) const MAX_ID_BYTES: usize = 1_024;
/// Rounds of tools in one chat. For applications; `examples/switchboard/src/gateway` uses it.
pub const MAX_TOOL_ROUNDS: usize = 10;
/// Turns of a session that a model gets at the known gateway. For applications; `examples/switchboard/src/gateway` sends
/// as many as the model has room for, unless it is configured to send fewer.
pub const EPISODIC_WINDOW: usize = 5;
/// Facts that a model gets with a message. For applications; `examples/switchboard/src/gateway` uses it.
pub const MAX_FACTS: usize = 10;

/// Returns the limits of one connection.
#[must_use]
pub fn defaults() -> Limits {
    Limits::default()
}

#[cfg(test)]
mod tests;
