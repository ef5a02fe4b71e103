//! The constants of the specification's section 14, and which of them this crate enforces.

use std::time::Duration;

use rpc_core::keepalive::KeepAlive;

// Connection

/// The platform's public endpoint. This crate connects to it only if you pass it.
pub const DEFAULT_WS_URL: &str = "wss://snek.molodetz.nl/rpc.ws";
/// Where language models are asked unless told otherwise. For applications; `examples/bot` uses it.
pub const DEFAULT_OPENAI_URL: &str = "https://api.openai.com";
/// The address of the search service. For applications; not used here.
pub const DEFAULT_SEARCH_API_BASE: &str = "https://search.molodetz.nl";
/// How often each side sends a WebSocket ping. Enforced; configurable.
pub const WS_HEARTBEAT: Duration = Duration::from_secs(30);
/// How long a call waits for its answer. Enforced; configurable, also per call.
pub const DEFAULT_REQUEST_TIMEOUT: Duration = Duration::from_secs(190);
/// How long an HTTP connection may take to open. For applications; `examples/bot` uses it.
pub const HTTP_CONNECT_TIMEOUT: Duration = Duration::from_secs(90);

// Reconnection

/// How many attempts one cycle of reconnects makes. The default of the reconnect policy.
pub const RECONNECT_MAX_RETRIES: u32 = 3;
/// The wait before the first attempt. The default of the reconnect policy.
pub const RECONNECT_INITIAL_DELAY: Duration = Duration::from_secs(1);
/// The factor by which each wait grows. The default of the reconnect policy.
pub const RECONNECT_BACKOFF_FACTOR: f64 = 2.0;
/// The wait after a receive error that leaves the socket open. Not used: a bad frame is skipped and
/// reading continues, which cannot spin because the next frame has to arrive first.
pub const WS_RECEIVE_RETRY_DELAY: Duration = Duration::from_secs(1);

// Concurrency

/// Most operations on one socket at a time. Enforced on handlers of a bot and on requests in
/// flight at a server.
pub const MAX_CONCURRENT_OPERATIONS: usize = 100;
/// Most HTTP connections in a pool. Enforced when images are fetched; configurable.
pub const MAX_CONCURRENT_REQUESTS: usize = 10;
/// Threads for blocking work. For applications; not used here.
pub const THREAD_POOL_WORKERS: usize = 8;
/// Processes for computing. For applications; not used here.
pub const PROCESS_POOL_WORKERS: usize = 4;
/// How long work in a pool may take. For applications; not used here.
pub const EXECUTOR_TIMEOUT: Duration = Duration::from_secs(30);

// Message handling

/// Most recent messages that a bot keeps in memory. For applications; `examples/bot` uses it.
pub const MAX_MESSAGE_HISTORY: usize = 50;
/// Most messages that one session sends to a language model. For applications; `examples/bot` uses
/// it.
pub const DEFAULT_OPENAI_LIMIT: usize = 200;
/// Most tokens of a language model's context. For applications; `examples/bot` uses it.
pub const CONTEXT_WINDOW_TOKEN_LIMIT: usize = 120_000;
/// The least time between two partial messages: none. The default of
/// `bot::StreamConfig`.
pub const STREAMING_UPDATE_INTERVAL: Duration = Duration::ZERO;

// Tool limits

/// Most rounds of tool calls in a row. Enforced by [`ToolLoop`](crate::llm::toolloop::ToolLoop);
/// configurable.
pub const MAX_TOOL_CALL_DEPTH: usize = 25;
/// Most calls of one tool with the same arguments. Enforced by
/// [`ToolLoop`](crate::llm::toolloop::ToolLoop); configurable.
pub const MAX_REPEATED_TOOL_CALLS: usize = 5;
/// A general limit of attempts. Enforced when a bot sends a message.
pub const MAX_RETRY_ATTEMPTS: u32 = 3;
/// Errors in a row that end a tool loop; the specification does not name this number. Enforced by
/// [`ToolLoop`](crate::llm::toolloop::ToolLoop); configurable.
pub const MAX_CONSECUTIVE_TOOL_ERRORS: usize = 3;

// Timing

/// How often the original's service loop looks for work. Not used: this crate does not poll.
pub const TASK_CHECK_INTERVAL: Duration = Duration::from_millis(500);
/// How often a typing indicator is refreshed while a bot thinks. Enforced; configurable.
pub const THINKING_TASK_INTERVAL: Duration = Duration::from_secs(1);
/// How often the original cleans up. Not used: everything in this crate is bounded.
pub const SERVICE_CLEANUP_INTERVAL: Duration = Duration::from_secs(3600);
/// How long a graceful shutdown may take. Enforced on bots and servers; configurable.
pub const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);
/// The least time between two updates of a counter. For applications; not used here.
pub const MIN_COUNTER_UPDATE_INTERVAL: Duration = Duration::from_secs(240);

// Agentic

/// Most queries of one research task. For applications; not used here.
pub const AGENTIC_MAX_RESEARCH_QUERIES: usize = 8;
/// Most steps of a plan. For applications; not used here.
pub const AGENTIC_MAX_PLAN_STEPS: usize = 10;
/// Entries of a scratchpad. For applications; not used here.
pub const AGENTIC_SCRATCHPAD_SIZE: usize = 50;

// Visual

/// The least hue of a random colour. Enforced.
pub const COLOR_HUE_MIN: f64 = 0.0;
/// The greatest hue of a random colour. Enforced.
pub const COLOR_HUE_MAX: f64 = 1.0;
/// The least saturation of a random colour. Enforced.
pub const COLOR_SATURATION_MIN: f64 = 0.7;
/// The greatest saturation of a random colour. Enforced.
pub const COLOR_SATURATION_MAX: f64 = 1.0;
/// The least lightness of a random colour. Enforced.
pub const COLOR_LIGHTNESS_MIN: f64 = 0.5;
/// The greatest lightness of a random colour. Enforced.
pub const COLOR_LIGHTNESS_MAX: f64 = 0.7;

// Media

/// Entries of the cache that finds duplicate media. For applications; not used here.
pub const MEDIA_HUNT_DEDUP_MAX_SIZE: usize = 10_000;
/// How long an entry of that cache lives. For applications; not used here.
pub const MEDIA_HUNT_DEDUP_TTL: Duration = Duration::from_secs(86_400);
/// How long a HEAD request for media may take. Enforced when images are fetched; configurable.
pub const MEDIA_HUNT_HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// How long fetching media may take. Enforced when images are fetched; configurable.
pub const MEDIA_HUNT_FETCH_TIMEOUT: Duration = Duration::from_secs(30);

// Tables and texts without a constant's name in the specification

/// Names that are broken up in outgoing messages. Enforced by
/// [`sanitize_names`](crate::sanitize::sanitize_names).
pub const SANITIZED_NAMES: [&str; 8] = [
    "snek", "grok", "snik", "lisa", "gemma", "joanne", "ira", "thomas",
];
/// The tag of a direct message channel.
pub const DM_TAG: &str = "dm";
/// Failures in a row that open the circuit breaker. A default of
/// [`BreakerConfig`](rpc_core::breaker::BreakerConfig).
pub const CIRCUIT_BREAKER_FAILURE_THRESHOLD: u32 = 5;
/// How long an open circuit breaker refuses calls. A default of
/// [`BreakerConfig`](rpc_core::breaker::BreakerConfig).
pub const CIRCUIT_BREAKER_RECOVERY_TIMEOUT: Duration = Duration::from_secs(60);
/// Trial calls at a time while the circuit breaker is half open. A default of
/// [`BreakerConfig`](rpc_core::breaker::BreakerConfig).
pub const CIRCUIT_BREAKER_HALF_OPEN_MAX_CALLS: u32 = 3;

// Ours

/// How long a pong may take: half of the heartbeat, as in the platform's sample bots. Enforced;
/// configurable.
pub const PONG_TIMEOUT: Duration = Duration::from_secs(15);
/// How long a server waits for a login. Enforced; configurable.
pub const LOGIN_TIMEOUT: Duration = Duration::from_secs(30);

/// Returns the default keep-alive of both ends.
pub(crate) fn keep_alive() -> KeepAlive {
    KeepAlive::every(WS_HEARTBEAT, PONG_TIMEOUT)
}
