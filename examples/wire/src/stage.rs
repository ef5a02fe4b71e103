//! [`Stage`]: how far an answer brings the call that it belongs to.

use rpc_core::json::each_member;

use super::Protocol;

/// How far a frame brings the call that it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// More follows.
    Partial,
    /// This is all.
    Done,
    /// The call has failed; without a call, the peer complains.
    Failed,
}

/// Returns the stage of a frame of this kind.
pub(super) fn stage(protocol: Protocol, is_sse: bool, kind: &str, text: &str) -> Stage {
    use Protocol::{Acolyte, ConnectOnion, Exoclaw, SmartHole, Snek};
    match (protocol, kind) {
        (Snek, "answer") | (SmartHole, "registration_response") if is_refusal(text) => {
            Stage::Failed
        }
        (Exoclaw, "error")
        | (ConnectOnion, "ERROR")
        | (Acolyte, "error" | "chat.error" | "chat.event/error") => Stage::Failed,
        (Exoclaw, "text" | "tool_use" | "tool_result" | "usage")
        | (Acolyte, "chat.accepted" | "chat.queued" | "chat.started") => Stage::Partial,
        (Acolyte, kind) if kind.starts_with("chat.event/") => Stage::Partial,
        (Acolyte, kind) if is_sse && kind != "done" => Stage::Partial,
        // Events of a run are in lower case.
        (ConnectOnion, kind) if kind == "RUNTIME_INPUT_ACK" || kind.starts_with(is_lower) => {
            Stage::Partial
        }
        _ => Stage::Done,
    }
}

/// Returns whether nothing may follow a frame of this kind in its call.
pub(super) fn ends(protocol: Protocol, kind: &str, stage: Stage) -> bool {
    match (protocol, stage) {
        // A SmartHole client may answer a message more than once, and the end of a chat that has failed is a
        // frame of its own.
        (_, Stage::Partial) | (Protocol::SmartHole, _) | (Protocol::Exoclaw, Stage::Failed) => {
            false
        }
        (Protocol::Acolyte, Stage::Failed) => !kind.contains('/'),
        _ => true,
    }
}

const fn is_lower(c: char) -> bool {
    c.is_ascii_lowercase()
}

/// Returns whether a frame, or its payload, says `"success": false`.
fn is_refusal(text: &str) -> bool {
    let mut is_refused = false;
    let _ = each_member(text, |name, raw| {
        is_refused |= match &*name {
            "success" => raw == "false",
            "payload" => is_refusal(raw),
            _ => false,
        };
    });
    is_refused
}
