//! The constants of the specification's section 14, and which of them this crate enforces.

use std::time::Duration;

use rpc_core::Limits;
use rpc_core::keepalive::KeepAlive;

// Connection

/// How often each side sends a WebSocket ping. Enforced; configurable.
pub(crate) const WS_HEARTBEAT: Duration = Duration::from_secs(30);
/// How long a call waits for its answer. Enforced; configurable, also per call.
pub(crate) const DEFAULT_REQUEST_TIMEOUT: Duration = Duration::from_secs(190);
/// How long an HTTP connection may take to open. For applications; `examples/switchboard/src/commands/bot` uses it.
pub const HTTP_CONNECT_TIMEOUT: Duration = Duration::from_secs(90);

// Reconnection

/// How many attempts one cycle of reconnects makes. The default of the reconnect policy.
pub const RECONNECT_MAX_RETRIES: u32 = 3;
/// The wait before the first attempt. The default of the reconnect policy.
pub(crate) const RECONNECT_INITIAL_DELAY: Duration = Duration::from_secs(1);
/// The factor by which each wait grows. The default of the reconnect policy.
pub(crate) const RECONNECT_BACKOFF_FACTOR: f64 = 2.0;

// Concurrency

/// Most operations on one socket at a time. Enforced on handlers of a bot and on requests in
/// flight at a server.
pub(crate) const MAX_CONCURRENT_OPERATIONS: usize = 100;
/// Most HTTP connections in a pool. Enforced when images are fetched; configurable.
pub const MAX_CONCURRENT_REQUESTS: usize = 10;

// Message handling

/// Most recent messages that a bot keeps in memory. For applications; `examples/switchboard/src/assistant` uses it.
pub const MAX_MESSAGE_HISTORY: usize = 50;
/// Most messages that one session sends to a language model. For applications;
/// `examples/switchboard/src/assistant` uses it.
pub const DEFAULT_OPENAI_LIMIT: usize = 200;
/// Most tokens of a language model's context. For applications; `examples/switchboard/src/assistant` uses it.
pub const CONTEXT_WINDOW_TOKEN_LIMIT: usize = 120_000;
/// The least time between two partial messages: none. The default of
/// `bot::StreamConfig`.
pub(crate) const STREAMING_UPDATE_INTERVAL: Duration = Duration::ZERO;

// Tool limits

/// Most rounds of tool calls in a row. Enforced by [`ToolLoop`](crate::llm::toolloop::ToolLoop);
/// configurable.
pub(crate) const MAX_TOOL_CALL_DEPTH: usize = 25;
/// Most calls of one tool with the same arguments. Enforced by
/// [`ToolLoop`](crate::llm::toolloop::ToolLoop); configurable.
pub(crate) const MAX_REPEATED_TOOL_CALLS: usize = 5;
/// A general limit of attempts. Enforced when a bot sends a message.
pub(crate) const MAX_RETRY_ATTEMPTS: u32 = 3;
/// Errors in a row that end a tool loop; the specification does not name this number. Enforced by
/// [`ToolLoop`](crate::llm::toolloop::ToolLoop); configurable.
pub(crate) const MAX_CONSECUTIVE_TOOL_ERRORS: usize = 3;

// Timing

/// How often a typing indicator is refreshed while a bot thinks. Enforced; configurable.
pub(crate) const THINKING_TASK_INTERVAL: Duration = Duration::from_secs(1);
/// How long a graceful shutdown may take. Enforced on bots and servers; configurable.
pub(crate) const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

// Visual

/// The least hue of a random colour. Enforced.
pub(crate) const COLOR_HUE_MIN: f64 = 0.0;
/// The greatest hue of a random colour. Enforced.
pub(crate) const COLOR_HUE_MAX: f64 = 1.0;
/// The least saturation of a random colour. Enforced.
pub(crate) const COLOR_SATURATION_MIN: f64 = 0.7;
/// The greatest saturation of a random colour. Enforced.
pub(crate) const COLOR_SATURATION_MAX: f64 = 1.0;
/// The least lightness of a random colour. Enforced.
pub(crate) const COLOR_LIGHTNESS_MIN: f64 = 0.5;
/// The greatest lightness of a random colour. Enforced.
pub(crate) const COLOR_LIGHTNESS_MAX: f64 = 0.7;

// Media

/// How long a HEAD request for media may take. Enforced when images are fetched; configurable.
pub(crate) const MEDIA_HUNT_HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// How long fetching media may take. Enforced when images are fetched; configurable.
pub(crate) const MEDIA_HUNT_FETCH_TIMEOUT: Duration = Duration::from_secs(30);

// Tables and texts without a constant's name in the specification

/// Names that are broken up in outgoing messages. Enforced by
/// [`sanitize_names`](crate::sanitize::sanitize_names).
pub(crate) const SANITIZED_NAMES: [&str; 8] = [
    "snek", "grok", "snik", "lisa", "gemma", "joanne", "ira", "thomas",
];
/// The tag of a direct message channel.
pub(crate) const DM_TAG: &str = "dm";

// Ours

/// How long a pong may take: half of the heartbeat, as in the platform's sample bots. Enforced;
/// configurable.
pub(crate) const PONG_TIMEOUT: Duration = Duration::from_secs(15);
/// How long a server waits for a login. Enforced; configurable.
pub(crate) const LOGIN_TIMEOUT: Duration = Duration::from_secs(30);

/// Returns the default keep-alive of both ends.
pub(crate) fn keep_alive() -> KeepAlive {
    KeepAlive::every(WS_HEARTBEAT, PONG_TIMEOUT)
}

/// Returns the limits of one connection.
#[must_use]
pub fn defaults() -> Limits {
    Limits::default()
}

#[cfg(test)]
mod tests;
