//! The numbers and names of the protocol, and which of them this crate enforces.

use std::time::Duration;

use rpc_core::Limits;

pub use crate::console::TARGET as CONSOLE_TARGET;
pub use crate::upload::UploadLimits;

// Where agents are

/// The path of the WebSocket; others are refused.
pub(crate) const WS_PATH: &str = "/ws";
/// The file with the key of an agent, as the known SDKs keep it in its project.
pub const KEY_FILE: &str = ".co/keys/agent.key";

// Codes

/// The code of the Close of a host that shuts down, or that may serve a session no longer: its
/// client should connect again (RFC 6455's registry of codes).
pub(crate) const SERVICE_RESTART: u16 = 1012;

// Sizes

/// The largest message that a server accepts, in bytes: 16 MiB. A default; a larger one closes with
/// 1009. Ten files of ten megabytes do not fit: raise it for them.
pub const MAX_SERVER_MESSAGE: usize = 16 * 1024 * 1024;
/// The largest message that a client accepts, in bytes: 64 MiB. A default: hosts return whole
/// conversations.
pub(crate) const MAX_CLIENT_MESSAGE: usize = 64 * 1024 * 1024;
/// The largest number of files of one prompt. Enforced by servers; configurable.
pub const MAX_FILES: usize = 10;
/// The largest file of a prompt, in bytes once decoded. Enforced by servers; configurable.
pub const MAX_FILE_BYTES: usize = 10 * 1024 * 1024;
/// The number of characters of invalid JSON that an ERROR returns. Enforced by servers.
pub const MAX_RECEIVED: usize = 200;
/// The mark after such a text that is cut.
pub const TRUNCATED: &str = "...(truncated)";

// Numbers

/// The largest number of remembered used signatures: 200 new connections a second, for the ten
/// minutes that a signature from the future can be valid. Enforced by servers where it is on;
/// configurable.
pub const MAX_USED_SIGNATURES: usize = 120_000;
/// The largest number of addresses in a list. Enforced by servers for onboarding and
/// administrators.
pub(crate) const MAX_ADDRESSES: usize = 100_000;
/// The largest number of a host's invite codes. Enforced by servers.
pub(crate) const MAX_INVITE_CODES: usize = 1_024;
/// The longest invite code, in bytes. Enforced by servers.
pub(crate) const MAX_INVITE_CODE_BYTES: usize = 256;
/// The largest signed payload of a frame without contents: a CONNECT, `ONBOARD_SUBMIT` or ADMIN_*, in bytes.
/// Enforced by servers.
pub(crate) const MAX_PAYLOAD_BYTES: usize = 64 * 1024;

// Times

/// How far the time in a signed payload may be from the server's, either way. Enforced by servers.
pub const SIGNATURE_WINDOW: Duration = Duration::from_secs(300);
/// How long a result is remembered. Enforced by servers; configurable.
pub(crate) const RESULT_TTL: Duration = Duration::from_secs(24 * 60 * 60);

// Texts that clients know

/// A frame that is only allowed after CONNECT came before it.
pub const AUTHENTICATE_FIRST: &str = "authenticate first (send CONNECT)";
/// An INPUT has no prompt, or an empty one.
pub const PROMPT_REQUIRED: &str = "prompt required";
/// A CONNECT on a connected socket, for another session or by another caller.
pub(crate) const ALREADY_AUTHENTICATED: &str = "already authenticated: open a new connection";
/// An INTERRUPT without a running agent.
pub(crate) const NOTHING_TO_INTERRUPT: &str = "interrupt requires an active turn";
/// The code of an ERROR that refuses an answer that comes too late, or to no question.
pub const STALE_ANSWER: &str = "STALE_ANSWER";
/// The code of an ERROR that refuses a prompt that the running agent would not read; it may be sent
/// again after the OUTPUT.
pub const RUNTIME_INPUT_REJECTED: &str = "RUNTIME_INPUT_REJECTED";
/// The code of an ERROR with which this crate's hosts refuse the oldest unanswered prompt for a
/// reason without words in the specification, for example that it could not be stored. Without the
/// code, a client would take the ERROR for the end of the current run.
pub const INPUT_REFUSED: &str = "INPUT_REFUSED";
/// The member of a session with the number of turns that the user allows in the mode `ulw`, as at
/// the known hosts.
pub const ULW_TURNS: &str = "ulw_turns";
/// The member of a session in which known hosts count the used turns. A change of mode removes it.
pub const ULW_TURNS_USED: &str = "ulw_turns_used";

/// Returns the bounds of a connection at either side: [`Limits::default`], with 64 MiB for a message
/// at a client. A server takes [`MAX_SERVER_MESSAGE`]: see
/// [`ServerConfig::limits`](crate::server::ServerConfig::limits).
#[must_use]
pub fn defaults() -> Limits {
    Limits {
        max_message_bytes: MAX_CLIENT_MESSAGE,
        ..Limits::default()
    }
}

/// Returns [`defaults`] with a server's bound on messages.
pub(crate) fn of_server() -> Limits {
    Limits {
        max_message_bytes: MAX_SERVER_MESSAGE,
        ..defaults()
    }
}
