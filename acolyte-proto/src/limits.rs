//! The numbers and names of the protocol, and which of them this crate enforces.

use std::time::Duration;

use rpc_core::Limits;

// The server's address

/// The port that a server listens on by default.
pub const DEFAULT_PORT: u16 = 6767;
/// The path of the WebSocket.
pub(crate) const RPC_PATH: &str = "/v1/rpc";
/// The path of a chat over HTTP and server-sent events.
pub(crate) const STREAM_PATH: &str = "/v1/chat/stream";
/// The path of the status over HTTP.
pub(crate) const STATUS_PATH: &str = "/v1/status";
/// The path that answers `{"ok":true}`, without a key too.
pub(crate) const HEALTH_PATH: &str = "/healthz";
/// The path that stops a server.
pub(crate) const SHUTDOWN_PATH: &str = "/v1/admin/shutdown";

// Names

/// The `protocol_version` that every known server reports.
pub(crate) const PROTOCOL_VERSION: &str = "1";
/// The `capabilities` that every known server reports.
pub const CAPABILITIES: &str = "error.structured, stream.sse, workspace.path";

// A chat's request. Enforced by servers on WebSockets, and by clients before they send. Lengths
// are in UTF-16 code units.

/// Longest `message`.
pub const MAX_MESSAGE_UNITS: usize = 100_000;
/// Most items of `history`.
pub const MAX_HISTORY: usize = 500;
/// Longest `model`.
pub(crate) const MAX_MODEL_UNITS: usize = 200;
/// Most `suggestions`.
pub(crate) const MAX_SUGGESTIONS: usize = 10;
/// Longest suggestion.
pub(crate) const MAX_SUGGESTION_UNITS: usize = 1_000;
/// Longest `workspace`.
pub(crate) const MAX_WORKSPACE_UNITS: usize = 4_096;

// Numbers

/// Bytes of one message. Enforced by both sides; configurable.
pub(crate) const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;
/// Bytes of an id. The known server has no such limit. Enforced.
pub(crate) const MAX_ID_BYTES: usize = 1_024;
/// Items of a list in an answer. The known client has no such limit. Enforced.
pub(crate) const MAX_ITEMS: usize = 65_536;
/// Unknown members that an open object keeps. Enforced.
pub(crate) const MAX_EXTRA: usize = 64;
/// Chats of one connection that wait behind the running one. Enforced by servers; configurable.
pub(crate) const MAX_QUEUED: usize = 25;
/// Unanswered `status.get` and `task.status` requests of a connection. Enforced by servers;
/// configurable.
pub(crate) const MAX_UNANSWERED: usize = 64;
/// Tasks that a server remembers. Enforced by servers; configurable.
pub(crate) const MAX_TASKS: usize = 1_000;
/// Tool calls in one chat. For applications; not used here.
pub const MAX_TOOL_CALLS: usize = 300;
/// Characters of a tool's result that the model gets. For applications; not used here.
pub const MAX_TOOL_RESULT_CHARS: usize = 30_000;

// Times. The specification gives none.

/// How long `status.get` and `task.status` wait for their answer. Enforced by clients;
/// configurable.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// How long an unattended chat waits for its next message. The default of clients; configurable.
pub const CHAT_IDLE_TIMEOUT: Duration = Duration::from_secs(180);
/// How often a side pings. The known server waits for about 104 s. Enforced; configurable.
pub(crate) const PING_INTERVAL: Duration = Duration::from_secs(25);
/// How long silence may follow a ping. The known server may be busy with a single message for 15 s.
/// Enforced; configurable.
pub(crate) const PONG_TIMEOUT: Duration = Duration::from_secs(30);
/// How long the work on an aborted chat may take to stop. Enforced by servers; configurable.
pub(crate) const ABORT_GRACE: Duration = Duration::from_millis(250);
/// How often a stream over HTTP is kept alive by a comment. Enforced by servers; configurable.
pub(crate) const STREAM_KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How long a model may be silent: less than [`CHAT_IDLE_TIMEOUT`], so that clients learn of it. For
/// applications; not used here.
pub const MODEL_IDLE_TIMEOUT: Duration = Duration::from_secs(120);
/// How long a graceful shutdown may take. Enforced on servers; configurable.
pub(crate) const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// Returns the limits of one connection, with 16 MiB for a message and 65,536 items for a list.
#[must_use]
pub fn defaults() -> Limits {
    Limits {
        max_message_bytes: MAX_MESSAGE_BYTES,
        max_items: MAX_ITEMS,
        ..Limits::default()
    }
}

/// Returns whether a text has at most this many UTF-16 code units.
#[must_use]
pub(crate) fn fits(text: &str, max: usize) -> bool {
    // No character has more units than bytes.
    text.len() <= max || text.chars().map(char::len_utf16).sum::<usize>() <= max
}

#[cfg(test)]
mod tests;
