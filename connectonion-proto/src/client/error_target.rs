//! The request to which an ERROR of a connected host refers; the frames do not say it.

use rpc_core::{CloseReason, Json};

use crate::frame::ErrorFrame;
use crate::limits::{
    ALREADY_AUTHENTICATED, AUTHENTICATE_FIRST, INPUT_REFUSED, NOTHING_TO_INTERRUPT,
    PROMPT_REQUIRED, RUNTIME_INPUT_REJECTED, STALE_ANSWER,
};

/// The start of a host's refusal of an identity.
const UNAUTHORIZED: &str = "unauthorized: ";
const REFUSALS: [&str; 2] = ["unauthorized:", "forbidden:"];
/// The end of a newer host's refusal of a used signature: a new signature helps.
const USED_BEFORE: &str = "already used";
/// The start of a host's reply to an unknown type of frame.
const UNKNOWN_TYPE: &str = "unknown message type: ";
const SESSION_STATUS: &str = "SESSION_STATUS";
/// A host's replies to administrators' commands.
const ADMIN: [&str; 5] = [
    "forbidden: admin only",
    "forbidden: super admin only",
    "client_id required",
    "admin_id required",
    "Unknown admin action: ",
];
/// A host's replies to frames other than prompts. The run, if there is one, goes on.
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

/// The possible targets of an ERROR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ErrorTarget {
    /// A prompt, not the run. Known hosts start a run silently and refuse what follows it.
    Input,
    /// The oldest prompt, of a host that answers in order or has removed the session.
    OldestInput,
    /// An answer to a question of the agent.
    Answer,
    /// A query about a session.
    Status,
    /// An administrator's command.
    Admin,
    /// A signed request, if one waits: newer hosts require more members in it than older ones.
    Signed,
    /// Any other frame.
    Other,
    /// The run, if there is one: agents fail with arbitrary messages.
    Run,
}

/// Returns what an ERROR refers to. `awaits_status`: a query about a session has no reply yet.
pub(super) fn error_target(error: &ErrorFrame, awaits_status: bool) -> ErrorTarget {
    let words = error.message.as_str();
    let starts = |begin: &&str| words.starts_with(*begin);
    match error.code.as_ref().and_then(Json::as_str).as_deref() {
        Some(RUNTIME_INPUT_REJECTED) => return ErrorTarget::Input,
        Some(INPUT_REFUSED) => return ErrorTarget::OldestInput,
        Some(STALE_ANSWER) => return ErrorTarget::Answer,
        _ => {}
    }
    if words == AUTHENTICATE_FIRST {
        return ErrorTarget::OldestInput;
    }
    if [PROMPT_REQUIRED, "session already has a running agent"].contains(&words) {
        return ErrorTarget::Input;
    }
    // Not every host knows this type, nor refuses it in the usual words.
    let received = error.received.as_deref().unwrap_or_default();
    let mut texts = [words, received].into_iter();
    if awaits_status && texts.any(|it| it.contains(SESSION_STATUS)) {
        return ErrorTarget::Status;
    }
    if let Some(tag) = words.strip_prefix(UNKNOWN_TYPE) {
        return match tag.trim_start_matches(['\'', '"']) {
            tag if tag.starts_with(SESSION_STATUS) => ErrorTarget::Status,
            tag if tag.starts_with("ADMIN_") => ErrorTarget::Admin,
            tag if tag.starts_with("INPUT") => ErrorTarget::Input,
            _ => ErrorTarget::Other,
        };
    }
    if words.starts_with(UNAUTHORIZED) {
        return ErrorTarget::Signed;
    }
    if ADMIN.iter().any(starts) {
        return ErrorTarget::Admin;
    }
    if error.received.is_some() || COMPLAINTS.iter().any(starts) {
        return ErrorTarget::Other;
    }
    ErrorTarget::Run
}

/// Returns why the connection ends after this refusal of its CONNECT.
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

    fn of(words: &str) -> ErrorTarget {
        error_target(&ErrorFrame::new(words), false)
    }

    #[test]
    fn an_agents_error_concerns_the_run() {
        for words in [
            "scripted LLM failure",
            "KeyError: 'SESSION_STATUS'",
            "Unable to run agent",
            "unauthorized",
            "",
        ] {
            assert_eq!(of(words), ErrorTarget::Run, "{words}");
        }
        let coded = ErrorFrame::new("x").with_code("whatever");
        assert_eq!(error_target(&coded, false), ErrorTarget::Run);
    }

    #[test]
    fn a_hosts_error_concerns_what_was_sent() {
        for (words, expected) in [
            ("prompt required", ErrorTarget::Input),
            ("session already has a running agent", ErrorTarget::Input),
            (
                "authenticate first (send CONNECT)",
                ErrorTarget::OldestInput,
            ),
            ("unknown message type: 'mode_change'", ErrorTarget::Other),
            (
                "unknown message type: 'SESSION_STATUS'",
                ErrorTarget::Status,
            ),
            ("unknown message type: 'ADMIN_BLOCK'", ErrorTarget::Admin),
            ("unknown message type: 'INPUT'", ErrorTarget::Input),
            ("forbidden: admin only", ErrorTarget::Admin),
            (
                "unauthorized: signed command type mismatch",
                ErrorTarget::Signed,
            ),
            ("Unsupported mode: 'nonsense'", ErrorTarget::Other),
            ("Permission mode is not available", ErrorTarget::Other),
            ("interrupt requires an active turn", ErrorTarget::Other),
            (
                "Invalid JSON: Expecting value at line 1 col 1 (pos 0)",
                ErrorTarget::Other,
            ),
        ] {
            assert_eq!(of(words), expected, "{words}");
        }
        let late = ErrorFrame::new("too late").with_code("RUNTIME_INPUT_REJECTED");
        assert_eq!(error_target(&late, false), ErrorTarget::Input);
        let oldest = ErrorFrame::new("not stored").with_code("INPUT_REFUSED");
        assert_eq!(error_target(&oldest, false), ErrorTarget::OldestInput);
        let stale = ErrorFrame::new("stale").with_code("STALE_ANSWER");
        assert_eq!(error_target(&stale, false), ErrorTarget::Answer);
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
        for words in ["too many sessions", "forbidden: try later"] {
            let message = words.to_owned();
            let passing = ErrorFrame::new(words).with_retryable(true);
            let retryable = true;
            assert_eq!(
                super::refusal(&passing),
                CloseReason::Refused { message, retryable }
            );
        }
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
