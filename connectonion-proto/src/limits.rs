//! The numbers and names of the protocol in one place, and which of them this crate enforces.

use std::time::Duration;

use rpc_core::Limits;

// Where agents are

/// The path of the WebSocket; others are refused.
pub const WS_PATH: &str = "/ws";
/// Where files that came with a prompt are saved, in the agent's project.
pub const UPLOADS_FOLDER: &str = ".co/uploads";
/// Where the known SDKs keep the key of an agent, in its project.
pub const KEY_FILE: &str = ".co/keys/agent.key";
/// Where results are remembered, in the agent's project.
pub const RESULTS_FILE: &str = ".co/session_results.jsonl";

// Sizes

/// Largest message that a server takes, in bytes: 16 MiB. A default; a larger one closes with 1009.
/// Ten files of ten megabytes do not fit: raise it where they have to.
pub const MAX_SERVER_MESSAGE: usize = 16 * 1024 * 1024;
/// Largest message that a client takes, in bytes: 64 MiB. A default: conversations come back whole.
pub const MAX_CLIENT_MESSAGE: usize = 64 * 1024 * 1024;
/// Largest message that the known Python clients up to 1.2.1 take, in bytes. For applications; not
/// used here.
pub const OLD_CLIENT_MESSAGE: usize = 1024 * 1024;
/// Most files that come with one prompt. Enforced by servers; configurable.
pub const MAX_FILES: usize = 10;
/// Largest file that comes with a prompt, in bytes once decoded. Enforced by servers; configurable.
pub const MAX_FILE_BYTES: usize = 10 * 1024 * 1024;
/// How much of a text that is no JSON goes back in an ERROR, in characters. Enforced by servers.
pub const MAX_RECEIVED: usize = 200;
/// What follows such a text that goes on.
pub const TRUNCATED: &str = "...(truncated)";

// Numbers

/// Most signatures that are remembered as used: 200 new connections a second, for the ten minutes
/// that a signature from the future can be valid. Enforced by servers where it is on; configurable.
pub const MAX_USED_SIGNATURES: usize = 120_000;
/// Most addresses that onboarding and administrators can bring into a list. Enforced by servers.
pub const MAX_ADDRESSES: usize = 100_000;
/// Most invite codes of a host. Enforced by servers.
pub const MAX_INVITE_CODES: usize = 1_024;
/// Longest invite code, in bytes. Enforced by servers.
pub const MAX_INVITE_CODE_BYTES: usize = 256;

// Times

/// How often a server sends a PING, from the opening of the socket on. Enforced; configurable.
pub const PING_INTERVAL: Duration = Duration::from_secs(30);
/// How long a client hears nothing before it takes the line for dead: two PINGs. Enforced by clients;
/// configurable.
pub const SILENCE_TIMEOUT: Duration = Duration::from_secs(60);
/// How long nothing may follow the events that a host sends again before a client takes them for all
/// that there were. Not in the specification. Enforced by clients.
pub const REPLAY_PAUSE: Duration = Duration::from_secs(1);
/// How long a client waits for the answer to its CONNECT. The specification has no number; the known
/// clients wait 30 s. Enforced by clients; configurable.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a client waits for CONNECTED after `ONBOARD_SUCCESS` before it connects again: old hosts
/// want that. Enforced by clients; configurable.
pub const ONBOARDED_TIMEOUT: Duration = Duration::from_secs(3);
/// How long a session is kept that does nothing. Enforced by servers; configurable.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(10 * 60);
/// How long an agent may work without a sign of life of anybody. Enforced by servers; configurable.
pub const STUCK_TIMEOUT: Duration = Duration::from_secs(60 * 60);
/// How long a session is kept whose last socket is gone. Enforced by servers; configurable.
pub const GRACE: Duration = Duration::from_secs(10 * 60);
/// How far the time in a signed payload may be from the server's, either way. Enforced by servers.
pub const SIGNATURE_WINDOW: Duration = Duration::from_secs(300);
/// How long a result is remembered. Enforced by servers; configurable.
pub const RESULT_TTL: Duration = Duration::from_secs(24 * 60 * 60);
/// How long a host's end takes at most. Ours; enforced by servers; configurable.
pub const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

// Texts that clients know

/// A frame that only a connected client may send came before CONNECT.
pub const AUTHENTICATE_FIRST: &str = "authenticate first (send CONNECT)";
/// An INPUT has no prompt, or an empty one.
pub const PROMPT_REQUIRED: &str = "prompt required";
/// A run cannot start because there is one.
pub const ALREADY_RUNNING: &str = "session already has a running agent";
/// A CONNECT on a socket that is connected, for another session or by somebody else.
pub const ALREADY_AUTHENTICATED: &str = "already authenticated: open a new connection";
/// An agent has ended without saying anything.
pub const NO_RESULT: &str = "Agent completed without result";
/// An INTERRUPT, where no agent is working.
pub const NOTHING_TO_INTERRUPT: &str = "interrupt requires an active turn";
/// The code of an ERROR that refuses an answer which comes too late, or to nothing.
pub const STALE_ANSWER: &str = "STALE_ANSWER";
/// The code of an ERROR that refuses a prompt which the running agent would not read; it may be sent
/// again after the OUTPUT.
pub const RUNTIME_INPUT_REJECTED: &str = "RUNTIME_INPUT_REJECTED";
/// The code of an ERROR with which this crate's hosts refuse the prompt that is the next to be
/// answered, for a reason that has no words in the specification: it could not be stored, for example.
/// Without it a client would take the ERROR for the end of the run that goes on.
pub const INPUT_REFUSED: &str = "INPUT_REFUSED";
/// The member of a session that says how many turns the user allows in the mode `ulw`, as the known
/// hosts call it.
pub const ULW_TURNS: &str = "ulw_turns";
/// The member of a session in which known hosts count how many of them are used. A change of mode
/// removes it.
pub const ULW_TURNS_USED: &str = "ulw_turns_used";

/// The bounds of a server's connection: [`Limits::default`] with [`MAX_SERVER_MESSAGE`].
#[must_use]
pub fn server_limits() -> Limits {
    Limits::default().with_max_message_bytes(MAX_SERVER_MESSAGE)
}

/// The bounds of a client's connection: [`Limits::default`] with [`MAX_CLIENT_MESSAGE`].
#[must_use]
pub fn client_limits() -> Limits {
    Limits::default().with_max_message_bytes(MAX_CLIENT_MESSAGE)
}
