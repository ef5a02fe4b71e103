//! Names and numbers, word for word: whoever changes one changes the protocol.

use std::time::Duration;

use connectonion_proto::frame::{Scope, SessionState};
use connectonion_proto::limits;

#[test]
fn every_word_of_a_status_is_the_specified_one() {
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
fn the_numbers_and_names_of_the_specification_are_these() {
    for (name, specified) in [
        (limits::WS_PATH, "/ws"),
        (limits::UPLOADS_FOLDER, ".co/uploads"),
        (limits::RESULTS_FILE, ".co/session_results.jsonl"),
        (limits::TRUNCATED, "...(truncated)"),
        (
            limits::AUTHENTICATE_FIRST,
            "authenticate first (send CONNECT)",
        ),
        (limits::PROMPT_REQUIRED, "prompt required"),
        (
            limits::ALREADY_RUNNING,
            "session already has a running agent",
        ),
        (
            limits::ALREADY_AUTHENTICATED,
            "already authenticated: open a new connection",
        ),
        (limits::NO_RESULT, "Agent completed without result"),
        (
            limits::NOTHING_TO_INTERRUPT,
            "interrupt requires an active turn",
        ),
        (limits::STALE_ANSWER, "STALE_ANSWER"),
        (limits::RUNTIME_INPUT_REJECTED, "RUNTIME_INPUT_REJECTED"),
        (limits::INPUT_REFUSED, "INPUT_REFUSED"),
        (limits::ULW_TURNS, "ulw_turns"),
        (limits::ULW_TURNS_USED, "ulw_turns_used"),
    ] {
        assert_eq!(name, specified);
    }
    for (number, specified) in [
        (limits::MAX_FILES, 10),
        (limits::MAX_FILE_BYTES, 10 * 1024 * 1024),
        (limits::MAX_SERVER_MESSAGE, 16 * 1024 * 1024),
        (limits::MAX_CLIENT_MESSAGE, 64 * 1024 * 1024),
        (limits::OLD_CLIENT_MESSAGE, 1024 * 1024),
        (limits::MAX_RECEIVED, 200),
    ] {
        assert_eq!(number, specified);
    }
    for (time, seconds) in [
        (limits::PING_INTERVAL, 30),
        (limits::SILENCE_TIMEOUT, 60),
        (limits::CONNECT_TIMEOUT, 30),
        (limits::ONBOARDED_TIMEOUT, 3),
        (limits::IDLE_TIMEOUT, 600),
        (limits::GRACE, 600),
        (limits::STUCK_TIMEOUT, 3_600),
        (limits::SIGNATURE_WINDOW, 300),
        (limits::RESULT_TTL, 86_400),
        (limits::SHUTDOWN_TIMEOUT, 5),
    ] {
        assert_eq!(time, Duration::from_secs(seconds));
    }
}
