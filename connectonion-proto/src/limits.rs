//! The numbers and names of the protocol, and which of them this crate enforces.

use std::time::Duration;

use rpc_core::Limits;

pub use crate::console::TARGET as CONSOLE_TARGET;
pub use crate::upload::UploadLimits;

// Where agents are

/// The path of the WebSocket; others are refused.
pub const WS_PATH: &str = "/ws";
/// The folder for files of prompts, in the agent's project.
pub const UPLOADS_FOLDER: &str = ".co/uploads";
/// The file with the key of an agent, as the known SDKs keep it in its project.
pub const KEY_FILE: &str = ".co/keys/agent.key";
/// The file with the results, in the agent's project.
pub const RESULTS_FILE: &str = ".co/session_results.jsonl";

// Codes

/// The code of the Close of a host that shuts down, or that may serve a session no longer: its
/// client should connect again (RFC 6455's registry of codes).
pub const SERVICE_RESTART: u16 = 1012;

// Sizes

/// The largest message that a server accepts, in bytes: 16 MiB. A default; a larger one closes with
/// 1009. Ten files of ten megabytes do not fit: raise it for them.
pub const MAX_SERVER_MESSAGE: usize = 16 * 1024 * 1024;
/// The largest message that a client accepts, in bytes: 64 MiB. A default: hosts return whole
/// conversations.
pub const MAX_CLIENT_MESSAGE: usize = 64 * 1024 * 1024;
/// The largest message that the known Python clients up to 1.2.1 accept, in bytes. For
/// applications; not used here.
pub const OLD_CLIENT_MESSAGE: usize = 1024 * 1024;
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

// Times

/// How often a server sends a PING, from the upgrade on. Enforced; configurable.
pub const PING_INTERVAL: Duration = Duration::from_secs(30);
/// The silence after which a client closes a connection: two PINGs. Enforced by clients;
/// configurable.
pub const SILENCE_TIMEOUT: Duration = Duration::from_secs(60);
/// The silence after a host's replay, after which a client considers it complete. Not in the
/// specification. Enforced by clients.
pub const REPLAY_PAUSE: Duration = Duration::from_secs(1);
/// How long a client waits for the answer to its CONNECT. The specification has no number; the known
/// clients wait 30 s. Enforced by clients; configurable.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a client waits for CONNECTED after `ONBOARD_SUCCESS` before it sends another CONNECT,
/// which old hosts require. Enforced by clients; configurable.
pub const ONBOARDED_TIMEOUT: Duration = Duration::from_secs(3);
/// How long an idle session is kept. Enforced by servers; configurable.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(10 * 60);
/// How long a run may go without a sign of life of agent or client. Enforced by servers;
/// configurable.
pub const STUCK_TIMEOUT: Duration = Duration::from_secs(60 * 60);
/// How long a session without sockets is kept. Enforced by servers; configurable.
pub const GRACE: Duration = Duration::from_secs(10 * 60);
/// How far the time in a signed payload may be from the server's, either way. Enforced by servers.
pub const SIGNATURE_WINDOW: Duration = Duration::from_secs(300);
/// How long a result is remembered. Enforced by servers; configurable.
pub const RESULT_TTL: Duration = Duration::from_secs(24 * 60 * 60);
/// How long the shutdown of a host may take. Not in the specification; enforced by servers;
/// configurable.
pub const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

// Texts that clients know

/// A frame that is only allowed after CONNECT came before it.
pub const AUTHENTICATE_FIRST: &str = "authenticate first (send CONNECT)";
/// An INPUT has no prompt, or an empty one.
pub const PROMPT_REQUIRED: &str = "prompt required";
/// A run cannot start because one is running.
pub const ALREADY_RUNNING: &str = "session already has a running agent";
/// A CONNECT on a connected socket, for another session or by another caller.
pub const ALREADY_AUTHENTICATED: &str = "already authenticated: open a new connection";
/// An agent has returned nothing.
pub const NO_RESULT: &str = "Agent completed without result";
/// An INTERRUPT without a running agent.
pub const NOTHING_TO_INTERRUPT: &str = "interrupt requires an active turn";
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
