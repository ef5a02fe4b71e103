//! Names and numbers, word for word: whoever changes one changes the protocol.

use std::time::Duration;

use crate::limits;

#[test]
fn limits_match_the_specification() {
    assert_eq!(limits::DEFAULT_URL, "ws://127.0.0.1:9473");
    assert_eq!(limits::DEFAULT_PORT, 9473);
    for (number, specified) in [
        (limits::MAX_PAYLOAD, 1_048_576),
        (limits::MAX_NAME, 64),
        (limits::MAX_DESCRIPTION, 1_024),
        (limits::MAX_REASON, 4_096),
        (limits::MAX_CONNECTIONS, 100),
        (limits::HISTORY, 100),
    ] {
        assert_eq!(number, specified);
    }
    assert_eq!((limits::MAX_ATTEMPTS, limits::ROUTING_LIMIT), (10, 3));
    assert_eq!(limits::REGISTRATION_FAILED_CODE, 4000);
    for (time, milliseconds) in [
        (limits::PING_INTERVAL, 30_000),
        (limits::PONG_TIMEOUT, 10_000),
        (limits::RESPONSE_TIMEOUT, 30_000),
        (limits::REGISTRATION_TIMEOUT, 10_000),
        (limits::ROUTER_TIMEOUT, 30_000),
        (limits::BASE_DELAY, 1_000),
        (limits::MAX_DELAY, 30_000),
        (limits::SHUTDOWN_TIMEOUT, 1_000),
    ] {
        assert_eq!(time, Duration::from_millis(milliseconds));
    }
    for (text, specified) in [
        (limits::RESPONSE_TIMEOUT_REASON, "Response timeout"),
        (limits::NO_REASON, "No reason provided"),
        (limits::SHUTTING_DOWN, "Server shutting down"),
        (limits::CLIENT_DISCONNECT, "Client disconnect"),
        (limits::REGISTRATION_FAILED, "Registration failed"),
        (limits::OBSIDIAN_ORIGIN, "app://obsidian.md"),
    ] {
        assert_eq!(text, specified);
    }
}
