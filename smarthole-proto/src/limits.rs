//! The numbers and names of the protocol in one place, and which of them this crate enforces.

use std::time::Duration;

use rpc_core::Limits;
use rpc_core::keepalive::KeepAlive;

// The router's address

/// The port that a router listens on.
pub const DEFAULT_PORT: u16 = 9473;
/// The default address of a router.
pub const DEFAULT_URL: &str = "ws://127.0.0.1:9473";
/// The origin of the Obsidian client, which runs in Electron. Servers allow it.
pub(crate) const OBSIDIAN_ORIGIN: &str = "app://obsidian.md";

// Sizes

/// Largest message in bytes: 1 MiB, a fragmented one as a whole. Enforced on both sides; one byte
/// more closes with 1009.
pub const MAX_PAYLOAD: usize = 1024 * 1024;
/// Longest name of a client, in characters. Enforced on both sides.
pub(crate) const MAX_NAME: usize = 64;
/// Longest description of a client, in characters: UTF-16 units for clients, Unicode scalar values
/// for servers. Enforced on both sides.
pub(crate) const MAX_DESCRIPTION: usize = 1024;

// Times

/// How often a side pings. Enforced; configurable.
pub(crate) const PING_INTERVAL: Duration = Duration::from_secs(30);
/// How long a pong may take. Enforced; configurable.
pub(crate) const PONG_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a client may take for its first response to a message. Enforced by servers, reported by
/// clients; configurable.
pub const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a client waits for the answer to its registration. The specification has no number.
/// Enforced by clients; configurable.
pub(crate) const REGISTRATION_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a router may take for one decision. The specification has no number. Enforced by
/// servers; configurable.
pub(crate) const ROUTER_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a graceful shutdown may take: the known server waits a second for its clients' Close.
/// Enforced by servers; configurable.
pub const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

// Reconnects

/// The delay before the first reconnect; each further one is twice as long. Enforced by clients.
pub(crate) const BASE_DELAY: Duration = Duration::from_millis(1000);
/// The longest delay before a reconnect. Enforced by clients.
pub(crate) const MAX_DELAY: Duration = Duration::from_millis(30_000);
/// Reconnects in a row that may fail. Enforced by clients.
pub const MAX_ATTEMPTS: u32 = 10;

// Numbers

/// Most clients of a server at once; a further one gets 503. Enforced; configurable.
pub const MAX_CONNECTIONS: usize = 100;
/// Most clients, one after the other, that a message reaches while each rejects it. Enforced;
/// configurable.
pub const ROUTING_LIMIT: u32 = 3;
/// Longest reason of a rejection that is kept and passed on, in bytes; a longer one is cut. The
/// specification has no number. Enforced by servers.
pub(crate) const MAX_REASON: usize = 4096;
/// How many ended deliveries are remembered. Enforced; configurable.
pub const HISTORY: usize = 100;

// Texts

/// The recorded reason of a client that has not answered in time.
pub(crate) const RESPONSE_TIMEOUT_REASON: &str = "Response timeout";
/// The recorded reason of a client that rejects without one.
pub(crate) const NO_REASON: &str = "No reason provided";
/// The close reason of a server that shuts down.
pub(crate) const SHUTTING_DOWN: &str = "Server shutting down";
/// The close code of a client whose registration was refused.
pub const REGISTRATION_FAILED_CODE: u16 = 4000;
/// The close reason of a client whose program ends.
pub(crate) const CLIENT_DISCONNECT: &str = "Client disconnect";
/// The close reason of a client whose registration was refused.
pub(crate) const REGISTRATION_FAILED: &str = "Registration failed";

/// Returns the limits of one connection: [`Limits::default`] with [`MAX_PAYLOAD`].
#[must_use]
pub fn defaults() -> Limits {
    Limits {
        max_message_bytes: MAX_PAYLOAD,
        ..Limits::default()
    }
}

/// Returns the specification's heartbeat: a ping every 30 s, and 10 s for its pong.
pub(crate) fn keep_alive() -> KeepAlive {
    KeepAlive::every(PING_INTERVAL, PONG_TIMEOUT)
}

#[cfg(test)]
mod tests;
