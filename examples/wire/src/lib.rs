//! What passes between a client and a server of one of the five protocols: found, explained, changed.
#![allow(
    clippy::doc_markdown,
    reason = "comments on options are help texts, not Markdown"
)]

mod check;
mod client;
pub mod command;
pub mod decode;
mod explain;
pub mod frame;
mod har;
mod head;
mod load;
pub mod order;
mod page;
mod pattern;
mod place;
mod play;
mod proxy;
mod recording;
mod replay;
pub mod secrets;
mod shapes;
mod transcript;
mod view;

use std::borrow::Cow;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rpc_core::testing::Side;
use switchboard_cli::{self as cli, text, web};

use self::frame::last;
use self::pattern::members_of;

/// Locks what no panic leaves half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the direction of what this side sends, as in transcripts.
#[must_use]
pub const fn direction(from: Side) -> &'static str {
    match from {
        Side::Client => "c2s",
        Side::Server => "s2c",
    }
}

/// Returns the word for who is on this side.
#[must_use]
pub const fn side(side: Side) -> &'static str {
    match side {
        Side::Client => "client",
        Side::Server => "server",
    }
}

rpc_core::words! {
    /// A protocol of this workspace.
    #[derive(clap::ValueEnum)]
    pub enum Protocol {
        /// Snek, a chat platform.
        "snek" => Snek,
        /// Exoclaw, a gateway to language models.
        "exoclaw" => Exoclaw,
        /// SmartHole, a router of spoken messages.
        #[value(name = "smarthole")]
        "smarthole" => SmartHole,
        /// ConnectOnion, sessions with agents.
        #[value(name = "connectonion")]
        "connectonion" => ConnectOnion,
        /// Acolyte, a coding agent.
        "acolyte" => Acolyte,
    }
}

impl Protocol {
    /// Returns the protocol whose servers have this path; `None` if none has it, or several have.
    #[must_use]
    pub fn of_path(path: &str) -> Option<Self> {
        match path.split('?').next()? {
            "/rpc.ws" => Some(Self::Snek),
            path if path.starts_with("/v1/") => Some(Self::Acolyte),
            _ => None,
        }
    }

    /// Returns the protocol that a frame belongs to, from the names of its members; `None` if it
    /// could belong to several.
    #[must_use]
    pub fn of_frame(text: &str) -> Option<Self> {
        let members = members_of(text)?;
        let has = |name: &str| last(&members, name).is_some();
        if let Some(tag) = last(&members, "type") {
            let tag = tag.trim_matches('"');
            return match tag {
                "registration" | "registration_response" => Some(Self::SmartHole),
                "message" | "response" if has("payload") => Some(Self::SmartHole),
                _ if has("id") && tag.contains('.') => Some(Self::Acolyte),
                _ if tag.bytes().all(|it| it.is_ascii_uppercase() || it == b'_') => {
                    Some(Self::ConnectOnion)
                }
                _ if has("ts") => Some(Self::ConnectOnion),
                _ => None,
            };
        }
        if has("callId") || has("kwargs") || has("channel_uid") {
            Some(Self::Snek)
        } else if has("token") || (has("ok") && has("version")) || has("id") {
            Some(Self::Exoclaw)
        } else {
            None
        }
    }
}

/// Returns the kind of a frame as people name it, without decoding it: the value of its member
/// `type`, `method` or `event`; else `hello`, `token`, `error`, `result` or `answer` by what it has.
/// `None` if it is another, or not a JSON object.
#[must_use]
pub fn tag(text: &str) -> Option<Cow<'_, str>> {
    const TOLD: [(&str, &str); 5] = [
        ("ok", "hello"),
        ("token", "token"),
        ("callId", "answer"),
        ("error", "error"),
        ("result", "result"),
    ];
    let members = members_of(text)?;
    let of = |name: &str| last(&members, name);
    let mut named = ["type", "method", "event"].into_iter().filter_map(of);
    if let Some(raw) = named.find(|raw| raw.starts_with('"')) {
        return frame::scalar(raw);
    }
    let told = TOLD.into_iter().find(|(name, _)| of(name).is_some());
    told.map(|(_, kind)| Cow::Borrowed(kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_protocol_is_found_from_a_frame() {
        for (text, protocol) in [
            (
                r#"{"method":"login","args":[],"kwargs":{},"callId":"1"}"#,
                Some(Protocol::Snek),
            ),
            (
                r#"{"event":"message","channel_uid":"c"}"#,
                Some(Protocol::Snek),
            ),
            (r#"{"ok":true,"version":"0.1.0"}"#, Some(Protocol::Exoclaw)),
            (r#"{"id":"1","method":"ping"}"#, Some(Protocol::Exoclaw)),
            (
                r#"{"type":"registration","payload":{}}"#,
                Some(Protocol::SmartHole),
            ),
            (
                r#"{"type":"CONNECT","payload":{}}"#,
                Some(Protocol::ConnectOnion),
            ),
            (
                r#"{"type":"tool_call","id":"e","ts":1}"#,
                Some(Protocol::ConnectOnion),
            ),
            (
                r#"{"id":"rpc_1","type":"status.get"}"#,
                Some(Protocol::Acolyte),
            ),
            ("{}", None),
            ("nonsense", None),
        ] {
            assert_eq!(Protocol::of_frame(text), protocol, "{text}");
        }
    }

    #[test]
    fn the_kind_of_a_frame_is_its_common_name() {
        for (text, kind) in [
            (
                r#"{"id":"1","type":"chat.start","payload":{}}"#,
                Some("chat.start"),
            ),
            (r#"{"event":"x","type":"chat.event"}"#, Some("chat.event")),
            (r#"{"method":"p\u0069ng"}"#, Some("ping")),
            (r#"{"id":"1","result":null}"#, Some("result")),
            (
                r#"{"callId":"1","success":true,"data":null}"#,
                Some("answer"),
            ),
            (r#"{"ok":true}"#, Some("hello")),
            ("{}", None),
            ("[]", None),
            ("{", None),
        ] {
            assert_eq!(tag(text).as_deref(), kind, "{text}");
        }
    }
}
