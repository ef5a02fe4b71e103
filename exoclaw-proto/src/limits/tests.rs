//! Names and numbers, word for word: whoever changes one changes the protocol.

use std::time::Duration;

use crate::{error, id, limits};

#[test]
fn limits_match_the_specification() {
    for (name, specified) in [
        (limits::WS_PATH, "/ws"),
        (limits::HEALTH_PATH, "/health"),
        (limits::HELLO_VERSION, "0.1.0"),
        (limits::AUTH_FAILED, "auth_failed"),
        (limits::DEFAULT_PEER, "main"),
        (id::UNREADABLE_ID, "0"),
        (error::PARSE_ERROR, "parse error: "),
        (error::UNKNOWN_METHOD, "unknown method: "),
        (error::BUDGET_EXCEEDED, "token budget exceeded ("),
        (error::PROVIDER_ERROR, "provider error: "),
        (error::NO_AGENT, "no agent configured for "),
    ] {
        assert_eq!(name, specified);
    }
    assert_eq!(limits::DEFAULT_PORT, 7200);
    assert_eq!(limits::AUTH_FAILED_CODE, 4001);
    for (number, known) in [
        (limits::MAX_TOOL_ROUNDS, 10),
        (limits::EPISODIC_WINDOW, 5),
        (limits::MAX_FACTS, 10),
        (limits::MAX_REQUESTS, 1_024),
        (limits::MAX_ID_BYTES, 1_024),
    ] {
        assert_eq!(number, known);
    }
    for (time, seconds) in [
        (limits::CHAT_IDLE_TIMEOUT, 60),
        (limits::PROVIDER_IDLE_TIMEOUT, 45),
        (limits::TOOL_TIMEOUT, 30),
        (limits::AUTH_TIMEOUT, 10),
        (limits::HELLO_TIMEOUT, 10),
        (limits::TOKENLESS_HELLO_TIMEOUT, 3),
        (limits::CALL_TIMEOUT, 30),
        (limits::PING_INTERVAL, 30),
        (limits::PONG_TIMEOUT, 30),
        (limits::SHUTDOWN_TIMEOUT, 5),
    ] {
        assert_eq!(time, Duration::from_secs(seconds));
    }
}
