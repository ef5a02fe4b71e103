//! Names and numbers, word for word: whoever changes one changes the protocol.

use std::time::Duration;

use super::fits;
use crate::{auth, http, limits};

#[test]
fn limits_match_known_programs() {
    assert_eq!(limits::DEFAULT_PORT, 6767);
    for (name, known) in [
        (limits::RPC_PATH, "/v1/rpc"),
        (limits::STREAM_PATH, "/v1/chat/stream"),
        (limits::STATUS_PATH, "/v1/status"),
        (limits::HEALTH_PATH, "/healthz"),
        (limits::SHUTDOWN_PATH, "/v1/admin/shutdown"),
        (limits::PROTOCOL_VERSION, "1"),
        (auth::BEARER_SCHEME, "Bearer "),
        (auth::BEARER_SUBPROTOCOL, "bearer."),
        (http::EVENT_STREAM, "text/event-stream"),
        (http::UNAUTHORIZED, "Unauthorized"),
        (http::NOT_FOUND, "Not Found"),
        (http::UPGRADE_FAILED, "WebSocket upgrade failed"),
        (http::KEEP_ALIVE, ":\n\n"),
    ] {
        assert_eq!(name, known);
    }
    assert_eq!(
        limits::CAPABILITIES,
        "error.structured, stream.sse, workspace.path"
    );
    for (number, known) in [
        (limits::MAX_MESSAGE_UNITS, 100_000),
        (limits::MAX_HISTORY, 500),
        (limits::MAX_MODEL_UNITS, 200),
        (limits::MAX_SUGGESTIONS, 10),
        (limits::MAX_SUGGESTION_UNITS, 1_000),
        (limits::MAX_WORKSPACE_UNITS, 4_096),
        (limits::MAX_MESSAGE_BYTES, 16_777_216),
        (limits::MAX_QUEUED, 25),
        (limits::MAX_TASKS, 1_000),
        (limits::MAX_TOOL_CALLS, 300),
        (limits::MAX_TOOL_RESULT_CHARS, 30_000),
    ] {
        assert_eq!(number, known);
    }
    for (time, seconds) in [
        (limits::CALL_TIMEOUT, 10),
        (limits::CHAT_IDLE_TIMEOUT, 180),
        (limits::STREAM_KEEP_ALIVE, 15),
        (limits::MODEL_IDLE_TIMEOUT, 120),
    ] {
        assert_eq!(time, Duration::from_secs(seconds));
    }
}

#[test]
fn texts_are_counted_in_utf16_units() {
    assert!(fits(&"é".repeat(10), 10));
    assert!(fits(&"😀".repeat(5), 10) && !fits(&"😀".repeat(6), 10));
    assert!(!fits(&"a".repeat(11), 10));
}
