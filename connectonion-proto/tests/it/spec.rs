//! Names and numbers, word for word: whoever changes one changes the protocol.

use std::time::Duration;

use connectonion_proto::client::ClientConfig;
use connectonion_proto::frame::{Scope, SessionState};
use connectonion_proto::limits;
use connectonion_proto::server::ServerConfig;
use connectonion_proto::session::HubConfig;

#[test]
fn every_status_matches_the_specification() {
    let states = [
        (SessionState::New, "new"),
        (SessionState::Connected, "connected"),
        (SessionState::Running, "running"),
    ];
    for (state, word) in states {
        assert_eq!(state.name(), word);
    }
    assert_eq!(Scope::Once.name(), "once");
}

#[test]
fn limits_match_the_specification() {
    for (name, specified) in [
        (limits::TRUNCATED, "...(truncated)"),
        (
            limits::AUTHENTICATE_FIRST,
            "authenticate first (send CONNECT)",
        ),
        (limits::PROMPT_REQUIRED, "prompt required"),
        (limits::STALE_ANSWER, "STALE_ANSWER"),
        (limits::RUNTIME_INPUT_REJECTED, "RUNTIME_INPUT_REJECTED"),
        (limits::INPUT_REFUSED, "INPUT_REFUSED"),
        (limits::ULW_TURNS, "ulw_turns"),
        (limits::ULW_TURNS_USED, "ulw_turns_used"),
    ] {
        assert_eq!(name, specified);
    }
    let (client, server) = (ClientConfig::default(), ServerConfig::default());
    for (number, specified) in [
        (limits::MAX_FILES, 10),
        (limits::MAX_FILE_BYTES, 10 * 1024 * 1024),
        (server.limits.max_message_bytes, 16 * 1024 * 1024),
        (client.limits.max_message_bytes, 64 * 1024 * 1024),
        (limits::MAX_RECEIVED, 200),
    ] {
        assert_eq!(number, specified);
    }
    let sessions = HubConfig::default();
    for (time, seconds) in [
        (server.ping_interval, 30),
        (client.silence_timeout, 60),
        (client.handshake_timeout, 30),
        (Some(client.onboarded_timeout), 3),
        (Some(sessions.idle_timeout), 600),
        (Some(sessions.grace), 600),
        (Some(sessions.stuck_timeout), 3_600),
        (Some(limits::SIGNATURE_WINDOW), 300),
        (Some(sessions.result_ttl), 86_400),
    ] {
        assert_eq!(time, Some(Duration::from_secs(seconds)));
    }
}
