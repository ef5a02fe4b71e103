//! What an ERROR of a connected host is about: the frames do not say.

use rpc_core::CloseReason;

use crate::frame::ErrorFrame;
use crate::limits::{
    ALREADY_AUTHENTICATED, ALREADY_RUNNING, AUTHENTICATE_FIRST, INPUT_REFUSED,
    NOTHING_TO_INTERRUPT, PROMPT_REQUIRED, RUNTIME_INPUT_REJECTED, STALE_ANSWER,
};

/// How hosts begin when they refuse who somebody is.
const UNAUTHORIZED: &str = "unauthorized: ";
const REFUSALS: [&str; 2] = ["unauthorized:", "forbidden:"];
/// How newer hosts end when a signature has been used before: another one helps.
const USED_BEFORE: &str = "already used";
/// How hosts answer a frame whose type they do not know.
const UNKNOWN_TYPE: &str = "unknown message type: ";
const SESSION_STATUS: &str = "SESSION_STATUS";
/// What hosts say to an administrator's request.
const ADMIN: [&str; 5] = [
    "forbidden: admin only",
    "forbidden: super admin only",
    "client_id required",
    "admin_id required",
    "Unknown admin action: ",
];
/// What hosts say to other frames than prompts. The run, if there is one, goes on.
const COMPLAINTS: [&str; 9] = [
    UNKNOWN_TYPE,
    "Invalid JSON: ",
    ALREADY_AUTHENTICATED,
    NOTHING_TO_INTERRUPT,
    "mode change is unavailable",
    "Unable to change session mode",
    "Unsupported mode: ",
    "Permission mode is not available",
    "Session is busy",
];

/// What an ERROR may be about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum About {
    /// A prompt, not the run. Known hosts begin a run in silence and refuse what comes behind it.
    Input,
    /// The oldest prompt: of a host that answers in order, or that has removed the session.
    OldestInput,
    /// The answer to a question of the agent.
    Answer,
    /// A question about a session.
    Status,
    /// An administrator's request.
    Admin,
    /// A signed request, if one waits: newer hosts want more in it than older ones.
    Signed,
    /// Anything else that was sent.
    Other,
    /// The run if there is one: agents fail in any words.
    Run,
}

/// `awaits_status`: a query about a session has no reply yet.
pub(super) fn about(error: &ErrorFrame, awaits_status: bool) -> About {
    let words = error.message.as_str();
    let starts = |begin: &&str| words.starts_with(*begin);
    match error.code_word().as_deref() {
        Some(RUNTIME_INPUT_REJECTED) => return About::Input,
        Some(INPUT_REFUSED) => return About::OldestInput,
        Some(STALE_ANSWER) => return About::Answer,
        _ => {}
    }
    if words == AUTHENTICATE_FIRST {
        return About::OldestInput;
    }
    if [PROMPT_REQUIRED, ALREADY_RUNNING].contains(&words) {
        return About::Input;
    }
    // Not every host knows this type, nor refuses it in the usual words.
    let received = error.received.as_deref().unwrap_or_default();
    if awaits_status
        && [words, received]
            .iter()
            .any(|it| it.contains(SESSION_STATUS))
    {
        return About::Status;
    }
    if let Some(tag) = words.strip_prefix(UNKNOWN_TYPE) {
        return match tag.trim_start_matches(['\'', '"']) {
            tag if tag.starts_with(SESSION_STATUS) => About::Status,
            tag if tag.starts_with("ADMIN_") => About::Admin,
            tag if tag.starts_with("INPUT") => About::Input,
            _ => About::Other,
        };
    }
    if words.starts_with(UNAUTHORIZED) {
        return About::Signed;
    }
    if ADMIN.iter().any(starts) {
        return About::Admin;
    }
    if error.received.is_some() || COMPLAINTS.iter().any(starts) {
        return About::Other;
    }
    About::Run
}

/// Why the connection ends whose CONNECT was refused like this.
pub(super) fn refusal(error: &ErrorFrame) -> CloseReason {
    let message = error.message.to_string();
    let retryable = message.ends_with(USED_BEFORE) || error.retryable == Some(true);
    if !retryable && REFUSALS.iter().any(|begin| message.starts_with(begin)) {
        return CloseReason::Authentication { message };
    }
    CloseReason::Refused { message, retryable }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &str) -> About {
        about(&ErrorFrame::new(words), false)
    }

    #[test]
    fn what_an_agent_says_when_it_fails_is_about_the_run() {
        for words in [
            "scripted LLM failure",
            "KeyError: 'SESSION_STATUS'",
            "Unable to run agent",
            "unauthorized",
            "",
        ] {
            assert_eq!(of(words), About::Run, "{words}");
        }
        let coded = ErrorFrame::new("x").with_code("whatever");
        assert_eq!(about(&coded, false), About::Run);
    }

    #[test]
    fn the_hosts_own_words_are_about_what_was_sent() {
        for (words, expected) in [
            ("prompt required", About::Input),
            ("session already has a running agent", About::Input),
            ("authenticate first (send CONNECT)", About::OldestInput),
            ("unknown message type: 'mode_change'", About::Other),
            ("unknown message type: 'SESSION_STATUS'", About::Status),
            ("unknown message type: 'ADMIN_BLOCK'", About::Admin),
            ("forbidden: admin only", About::Admin),
            ("unauthorized: signed command type mismatch", About::Signed),
            ("Unsupported mode: 'nonsense'", About::Other),
            ("Permission mode is not available", About::Other),
            ("interrupt requires an active turn", About::Other),
            (
                "Invalid JSON: Expecting value at line 1 col 1 (pos 0)",
                About::Other,
            ),
        ] {
            assert_eq!(of(words), expected, "{words}");
        }
        let late = ErrorFrame::new("too late").with_code("RUNTIME_INPUT_REJECTED");
        assert_eq!(about(&late, false), About::Input);
        let stale = ErrorFrame::new("stale").with_code("STALE_ANSWER");
        assert_eq!(about(&stale, false), About::Answer);
    }

    #[test]
    fn a_refused_identity_is_refused_again_but_a_used_signature_is_not() {
        let refusal = |words: &str| refusal(&ErrorFrame::new(words));
        for words in ["unauthorized: invalid signature", "forbidden: blacklisted"] {
            let message = words.to_owned();
            assert_eq!(refusal(words), CloseReason::Authentication { message });
        }
        let used = refusal("unauthorized: this CONNECT was already used");
        assert!(matches!(
            used,
            CloseReason::Refused {
                retryable: true,
                ..
            }
        ));
        let other = refusal("Unable to initialize session mode");
        assert!(matches!(
            other,
            CloseReason::Refused {
                retryable: false,
                ..
            }
        ));
    }
}
