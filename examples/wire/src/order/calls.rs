//! What a frame is to a call: its name there, whether it begins or ends it, and how far it brings it.

use std::borrow::Cow;

use rpc_core::testing::Side;

use super::{ObservedFrame, Stage};
use crate::Protocol;
use crate::frame::is_one;
use crate::frame::scalar;

pub(super) const fn is_lower(c: char) -> bool {
    c.is_ascii_lowercase()
}

/// Returns whether calls have ids of their own.
pub(super) fn has_ids(seen: &ObservedFrame<'_>) -> bool {
    seen.protocol != Protocol::ConnectOnion && seen.frame.id.is_some() && !seen.is_sse
}

/// Returns whether an answer is wrong to what was not asked, or has ended.
pub(super) fn is_strict(seen: &ObservedFrame<'_>) -> bool {
    let nameless = "PONG ONBOARD_SUCCESS ASK_USER_RESPONSE APPROVAL_RESPONSE PLAN_REVIEW_RESPONSE";
    let is_nameless = || is_one(&seen.frame.kind, nameless);
    has_ids(seen) || seen.is_sse || seen.protocol == Protocol::ConnectOnion && is_nameless()
}

/// Returns the call that a frame belongs to, and whether it begins it.
pub(super) fn link<'a>(seen: &ObservedFrame<'a>) -> (Option<Cow<'a, str>>, bool) {
    let id = seen.frame.id.clone();
    let (word, asks) = match (seen.protocol, seen.from, &*seen.frame.kind) {
        (Protocol::Acolyte, _, _) if seen.is_sse => ("stream", false),
        (Protocol::Snek, Side::Server, kind) => return (id.filter(|_| kind == "answer"), false),
        (Protocol::Exoclaw, Side::Client, "token") => ("token", true),
        (Protocol::Exoclaw, Side::Server, "hello") => ("token", false),
        (Protocol::SmartHole, Side::Client, "registration") => ("registration", true),
        (Protocol::SmartHole, Side::Server, "registration_response") => ("registration", false),
        (Protocol::SmartHole, side, kind) => {
            let is_linked = kind == "message" || kind.starts_with("response/");
            return (id.filter(|_| is_linked), side == Side::Server);
        }
        (Protocol::ConnectOnion, Side::Client, kind) => match kind {
            "CONNECT" => ("connect", true),
            "INPUT" => return (Some("run".into()), false),
            "SESSION_STATUS" => ("status", true),
            "ONBOARD_SUBMIT" => ("onboard", true),
            "PONG" => ("ping", false),
            "ASK_USER_RESPONSE" => ("ask_user", false),
            "APPROVAL_RESPONSE" => ("approval_needed", false),
            "PLAN_REVIEW_RESPONSE" => ("plan_review", false),
            kind if kind.starts_with("ADMIN") => ("admin", true),
            _ => return (None, false),
        },
        (Protocol::ConnectOnion, Side::Server, kind) => match kind {
            "CONNECTED" | "ONBOARD_REQUIRED" => ("connect", false),
            "ask_user" => ("ask_user", true),
            "approval_needed" => ("approval_needed", true),
            "plan_review" => ("plan_review", true),
            "SESSION_STATUS" => ("status", false),
            "ONBOARD_SUCCESS" => ("onboard", false),
            "PING" => ("ping", true),
            kind if kind.starts_with("ADMIN") => ("admin", false),
            "OUTPUT" | "RUNTIME_INPUT_ACK" => ("run", false),
            kind if kind.starts_with(is_lower) => ("run", false),
            _ => return (None, false),
        },
        (_, side, _) => return (id, side == Side::Client),
    };
    (Some(Cow::Borrowed(word)), asks)
}

/// Returns the id of what a frame asks or tells about, beside its own.
pub(super) fn about<'a>(seen: &ObservedFrame<'a>) -> Option<Cow<'a, str>> {
    match (seen.protocol, &*seen.frame.kind) {
        (Protocol::Exoclaw, "chat.send") => {
            let of = |name: &str| seen.frame.text_at("params", name).unwrap_or_default();
            let (channel, account, peer) = (of("channel"), of("account"), of("peer"));
            let peer = if peer.is_empty() { "main" } else { &*peer };
            Some(format!("{channel}:{account}:{peer}").into())
        }
        (Protocol::Acolyte, "chat.abort") => seen.frame.text_at("payload", "requestId"),
        (Protocol::Acolyte, "chat.abort.result") => seen.frame.scalar("requestId"),
        (Protocol::Acolyte, "task.status") => seen.frame.text_at("payload", "taskId"),
        (Protocol::Acolyte, "task.status.result") => seen.frame.text_at("task", "id"),
        (Protocol::ConnectOnion, "CONNECT" | "CONNECTED")
            // A session that is not known, or of another key, may get another id.
            if seen.frame.raw("status") != Some("\"new\"") =>
        {
            seen.frame.raw("session_id").and_then(scalar)
        }
        _ => None,
    }
    .filter(|id| !id.is_empty())
}

/// Returns whether the id of a call is a number, which an answer has to have as one, too.
pub(super) fn is_numbered(seen: &ObservedFrame<'_>) -> bool {
    let id = seen.frame.raw("callId");
    id.is_some_and(|raw| !raw.starts_with('"'))
}

/// Returns whether a caller need not wait for an answer: a colour, or a text that is not final.
pub(super) fn is_optional(seen: &ObservedFrame<'_>) -> bool {
    let is_partial = || {
        let args = seen
            .frame
            .raw("args")
            .unwrap_or_default()
            .trim_end_matches([']', ' ']);
        args.ends_with("false")
    };
    seen.protocol == Protocol::Snek
        && match &*seen.frame.kind {
            "set_typing" => true,
            "send_message" => is_partial(),
            _ => false,
        }
}

/// Returns whether a frame is of a kind that answers this one.
pub(super) fn fits(seen: &ObservedFrame<'_>, asked: &str) -> bool {
    let kind = &*seen.frame.kind;
    match (seen.protocol, asked) {
        (Protocol::Exoclaw, "chat.send") => kind != "result",
        (Protocol::Exoclaw, "ping" | "status" | "plugin.list") => {
            kind == "result" || seen.frame.raw("event").is_none()
        }
        (Protocol::Acolyte, _) if kind == "error" || seen.is_sse || !seen.is_known => true,
        (Protocol::Acolyte, "chat.start") => {
            kind.starts_with("chat.") && kind != "chat.abort.result"
        }
        (Protocol::Acolyte, "status.get") => kind == "status.result",
        (Protocol::Acolyte, "chat.abort" | "task.status") => {
            kind.strip_suffix(".result") == Some(asked)
        }
        _ => true,
    }
}

/// Returns how far a frame brings its call.
pub(super) fn stage(seen: &ObservedFrame<'_>) -> Stage {
    use Protocol::{Acolyte, ConnectOnion, Exoclaw, SmartHole, Snek};
    let is_refusal = || {
        let success = seen.frame.raw("success");
        success.or_else(|| seen.frame.at("payload", "success")) == Some("false")
    };
    match (seen.protocol, &*seen.frame.kind) {
        (Snek, "answer") | (SmartHole, "registration_response") if is_refusal() => Stage::Failed,
        (Exoclaw, "error")
        | (ConnectOnion, "ERROR")
        | (Acolyte, "error" | "chat.error" | "chat.event/error") => Stage::Failed,
        (Exoclaw, "text" | "tool_use" | "tool_result" | "usage")
        | (Acolyte, "chat.accepted" | "chat.queued" | "chat.started") => Stage::Partial,
        (Acolyte, kind) if kind.starts_with("chat.event/") || (seen.is_sse && kind != "done") => {
            Stage::Partial
        }
        // Events of a run are in lower case.
        (ConnectOnion, kind) if kind == "RUNTIME_INPUT_ACK" || kind.starts_with(is_lower) => {
            Stage::Partial
        }
        _ => Stage::Done,
    }
}

/// Returns whether nothing may follow a frame in its call.
pub(super) fn ends(seen: &ObservedFrame<'_>, stage: Stage) -> bool {
    match (seen.protocol, stage) {
        // A SmartHole client may answer a message more than once, and the end of a chat that has failed is a frame of
        // its own.
        (_, Stage::Partial) | (Protocol::SmartHole, _) => false,
        (Protocol::Exoclaw, Stage::Failed) => seen.frame.raw("event").is_none(),
        (Protocol::Acolyte, Stage::Failed) => !seen.frame.kind.contains('/'),
        _ => true,
    }
}
