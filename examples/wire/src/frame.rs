//! `Frame`: what a text is as a frame of a protocol: its kind, its id, its members in words, and whether the types
//! of the protocol's crate read it.

use std::borrow::Cow;

use acolyte_proto::event::Event;
use acolyte_proto::frame as acolyte;
use acolyte_proto::http::StreamFrame;
use connectonion_proto::frame as connectonion;
use exoclaw_proto::frame as exoclaw;
use rpc_core::json::each_member;
use rpc_core::testing::Side;
use rpc_core::{DecodeError, Json, Limits};
use serde::Serialize;
use smarthole_proto::frame as smarthole;
use snek_proto::frame as snek;

use super::Protocol;

/// What ConnectOnion hosts and clients send beside what the specification has: frames of hosts, and of the encrypted
/// transport.
const BESIDE: &str =
    "AGENT_PROFILE DASHBOARD_SNAPSHOT SEAL SEALED SEALED_OK turn_result user_message";
/// Members whose own members are shown in their place.
const BOXES: [&str; 5] = ["data", "event", "params", "payload", "request"];
/// Members that need no name where they are the only one.
const ALONE: &str = "args content data output prompt result text token";
/// Words end behind so many bytes where long texts are shortened.
const MAX_WORDS: usize = 2048;

/// A frame, looked at from outside.
#[derive(Debug, Default)]
pub(crate) struct Frame<'a> {
    /// What people call it, such as `chat.send`; with a slash before what it carries.
    pub(crate) kind: Cow<'a, str>,
    /// The id of the call or message that it belongs to.
    pub(crate) id: Option<Cow<'a, str>>,
    pub(super) members: Vec<(Cow<'a, str>, &'a str)>,
}

/// Returns whether a word is one of these, which have spaces between them.
pub(crate) fn is_one(word: &str, of: &str) -> bool {
    of.split_ascii_whitespace().any(|it| it == word)
}

/// Returns the text of a raw string or number; `None` for other values.
pub(crate) fn scalar(raw: &str) -> Option<Cow<'_, str>> {
    match raw.strip_prefix('"').and_then(|it| it.strip_suffix('"')) {
        Some(inner) if !inner.contains('\\') => Some(Cow::Borrowed(inner)),
        Some(_) => serde_json::from_str(raw).ok().map(Cow::Owned),
        None => raw
            .starts_with(|c: char| c.is_ascii_digit() || c == '-')
            .then_some(Cow::Borrowed(raw)),
    }
}

/// Returns the raw value of a member below an object, by the names on the way.
pub(crate) fn member<'a>(text: &'a str, path: &[&str]) -> Option<&'a str> {
    let mut value = text;
    for name in path {
        let mut found = None;
        each_member(value, |known, raw| {
            if known == *name {
                found = Some(raw);
            }
        })
        .ok()?;
        value = found?;
    }
    Some(value)
}

/// Returns the text of a member below an object.
pub(crate) fn text_of<'a>(text: &'a str, path: &[&str]) -> Option<Cow<'a, str>> {
    scalar(member(text, path)?)
}

impl<'a> Frame<'a> {
    /// Looks at a text; `None` if it is no JSON object.
    pub(crate) fn new(protocol: Protocol, from: Side, text: &'a str) -> Option<Self> {
        let mut members = Vec::with_capacity(8);
        each_member(text, |name, raw| members.push((name, raw))).ok()?;
        let mut frame = Self {
            members,
            ..Self::default()
        };
        frame.id = frame.scalar(if protocol == Protocol::Snek {
            "callId"
        } else {
            "id"
        });
        let tag = |name: &str| scalar(frame.raw(name).filter(|raw| raw.starts_with('"'))?);
        let kind = match (protocol, from) {
            (Protocol::Snek, Side::Client) => tag("method"),
            (Protocol::Snek, Side::Server) => {
                tag("event").or_else(|| frame.raw("callId").map(|_| "answer".into()))
            }
            (Protocol::Exoclaw, Side::Client) => {
                tag("method").or_else(|| frame.raw("token").map(|_| "token".into()))
            }
            (Protocol::Exoclaw, Side::Server) => tag("event").or_else(|| {
                let kinds = [("error", "error"), ("ok", "hello"), ("result", "result")];
                let has = |name: &str| {
                    frame
                        .raw(name)
                        .is_some_and(|raw| raw != "null" || name == "result")
                };
                kinds
                    .into_iter()
                    .find(|(name, _)| has(name))
                    .map(|(_, kind)| kind.into())
            }),
            (Protocol::SmartHole, _) => {
                let payload = frame.raw("payload").unwrap_or("{}");
                let kind = tag("type");
                let of = if kind.as_deref() == Some("response") {
                    "messageId"
                } else {
                    "id"
                };
                let (id, inner) = (text_of(payload, &[of]), text_of(payload, &["type"]));
                frame.id = id;
                match inner.filter(|_| of == "messageId") {
                    Some(inner) => Some(format!("response/{inner}").into()),
                    None => kind,
                }
            }
            (Protocol::ConnectOnion, _) => {
                frame.id = None;
                frame.scalar("type")
            }
            (Protocol::Acolyte, _) => {
                let inner = frame
                    .raw("event")
                    .and_then(|event| text_of(event, &["type"]));
                match (tag("type"), inner) {
                    (Some(kind), Some(inner)) if kind == "chat.event" => {
                        Some(format!("{kind}/{inner}").into())
                    }
                    (kind, _) => kind,
                }
            }
        };
        frame.kind = kind.unwrap_or(Cow::Borrowed("?"));
        Some(frame)
    }

    /// Returns the raw value of a member.
    pub(crate) fn raw(&self, name: &str) -> Option<&'a str> {
        let found = self.members.iter().rev().find(|(known, _)| known == name);
        found.map(|(_, raw)| *raw)
    }

    fn scalar(&self, name: &str) -> Option<Cow<'a, str>> {
        scalar(self.raw(name)?)
    }

    /// Returns the id and the members in words, without the kind. Long ones are cut if `shortens`.
    pub(crate) fn words(&self, shortens: bool) -> String {
        let mut words = String::with_capacity(128);
        words.push_str(self.id.as_deref().unwrap_or_default());
        let most = if shortens { MAX_WORDS } else { usize::MAX };
        tell(&self.members, &mut words, most);
        words
    }
}

/// Adds members in words. Leaves out those without information, or shown elsewhere.
fn tell(members: &[(Cow<'_, str>, &str)], words: &mut String, most: usize) {
    let is_told = |(name, raw): &&(Cow<'_, str>, &str)| {
        let is_elsewhere = match &**name {
            "type" | "id" | "callId" | "method" | "messageId" => true,
            name => name == "event" && raw.starts_with('"'),
        };
        !is_elsewhere && !matches!(*raw, "null" | "{}" | "[]")
    };
    let told: Vec<_> = members.iter().filter(is_told).collect();
    for (name, raw) in &told {
        if words.len() > most {
            return;
        }
        let mut inner: Vec<(Cow<'_, str>, &str)> = Vec::new();
        if BOXES.contains(&&**name)
            && raw.starts_with('{')
            && each_member(raw, |name, raw| inner.push((name, raw))).is_ok()
        {
            tell(&inner, words, most);
            continue;
        }
        if !words.is_empty() {
            words.push(' ');
        }
        if told.len() > 1 || !is_one(name, ALONE) {
            words.push_str(name);
            words.push('=');
        }
        match raw.len() > most {
            true => words.push_str(rpc_core::text::beginning(raw, most)),
            false => words.push_str(raw),
        }
    }
}

/// Why a text is not a frame of its protocol.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// What is wrong.
    pub error: String,
    /// The byte of the text where it is wrong, from 0.
    pub at: usize,
}

impl Fault {
    fn decode(text: &str, error: &DecodeError) -> Self {
        // What is no JSON is wrong at one place for all protocols.
        let broken = Json::new(text).err();
        let error = broken.as_ref().unwrap_or(error);
        let line = text.split_inclusive('\n').take(error.line() - 1);
        let before: usize = line.map(str::len).sum();
        let words = error.to_string();
        // The place is shown, not described.
        let mut words = words.split(" (line ").next().unwrap_or_default().to_owned();
        if let Some(frame) = error.frame() {
            words = format!("{words}, in `{frame}`");
        }
        if !error.path().is_empty() {
            words = format!("{words}, at {}", error.path().join("."));
        }
        Self {
            error: words,
            at: (before + error.column() - 1).min(text.len()),
        }
    }

    /// An error somewhere in a member of the frame.
    fn inside(text: &str, name: &str, error: &impl ToString) -> Self {
        let raw = member(text, &[name]);
        Self {
            error: error.to_string(),
            at: raw.map_or(0, |raw| {
                raw.as_ptr().addr().saturating_sub(text.as_ptr().addr())
            }),
        }
    }
}

/// What the types of a protocol's crate say of a frame.
#[derive(Debug)]
pub(crate) struct Typed {
    /// Whether they know its kind.
    pub(crate) is_known: bool,
    /// The frame as they write it, without the members that they do not know; if it is wanted.
    pub(crate) written: Option<String>,
}

/// Reads a frame with the types of its protocol's crate. `is_first` if the client has said nothing before.
pub(crate) fn typed(
    (protocol, from, is_sse): (Protocol, Side, bool),
    text: &str,
    is_first: bool,
    writes: bool,
) -> Result<Typed, Fault> {
    let limits = Limits::unlimited();
    let wrong = |error: DecodeError| Fault::decode(text, &error);
    fn told(is_known: bool, frame: &impl Serialize, writes: bool) -> Typed {
        let json = writes.then(|| Json::of(frame).ok()).flatten();
        Typed {
            is_known,
            written: json.map(|json| json.get().to_owned()),
        }
    }
    Ok(match (protocol, from) {
        (Protocol::Snek, Side::Client) => {
            let frame = snek::ClientFrame::decode(text, &limits).map_err(wrong)?;
            let call = frame
                .call()
                .map_err(|it| Fault::inside(text, "args", &it))?;
            told(!matches!(call, snek::Call::Unknown { .. }), &frame, writes)
        }
        (Protocol::Snek, Side::Server) => {
            let frame = snek::ServerFrame::decode(text, &limits).map_err(wrong)?;
            match frame.into_event().transpose().map_err(wrong)? {
                Some(event) => told(!matches!(event, snek::Event::Unknown(_)), &event, writes),
                None => Typed {
                    is_known: true,
                    written: writes
                        .then(|| r#"{"callId":0,"success":0,"data":0,"error":0}"#.to_owned()),
                },
            }
        }
        (Protocol::Exoclaw, Side::Client) => {
            let frame = exoclaw::ClientFrame::decode(text, &limits).or_else(|error| {
                let token = exoclaw::Token::decode(text, &limits)
                    .ok()
                    .filter(|_| is_first);
                token.map(exoclaw::ClientFrame::Token).ok_or(error)
            });
            let frame = frame.map_err(wrong)?;
            let mut is_known = true;
            if let exoclaw::ClientFrame::Request(request) = &frame {
                is_known = !matches!(request.call, exoclaw::Call::Unknown { .. });
                if let Some(refusal) = request.call.refusal(&limits)
                    && exoclaw::Method::parse(request.call.tag()).is_some()
                {
                    return Err(Fault::inside(text, "params", &refusal));
                }
            }
            told(is_known, &frame, writes)
        }
        (Protocol::Exoclaw, Side::Server) => {
            let frame = exoclaw::ServerFrame::decode(text, &limits).map_err(wrong)?;
            let is_unknown = matches!(&frame, exoclaw::ServerFrame::Stream { event, .. }
                if matches!(event, exoclaw::StreamEvent::Unknown { .. }));
            told(!is_unknown, &frame, writes)
        }
        (Protocol::SmartHole, Side::Client) => {
            let frame = smarthole::ClientFrame::decode(text, &limits).map_err(wrong)?;
            let is_known = match &frame {
                smarthole::ClientFrame::Registration(payload) => {
                    let checked = smarthole_proto::validate::payload(payload.get());
                    checked.map_err(|it| Fault::inside(text, "payload", &it))?;
                    true
                }
                smarthole::ClientFrame::Response(response) => {
                    !matches!(response.answer, smarthole::Answer::Unknown { .. })
                }
                _ => false,
            };
            told(is_known, &frame, writes)
        }
        (Protocol::SmartHole, Side::Server) => {
            let frame = smarthole::ServerFrame::decode(text, &limits).map_err(wrong)?;
            let is_known = matches!(
                frame,
                smarthole::ServerFrame::RegistrationResponse(_)
                    | smarthole::ServerFrame::Message(_)
            );
            told(is_known, &frame, writes)
        }
        (Protocol::ConnectOnion, Side::Client) => {
            let frame = connectonion::ClientFrame::decode(text, &limits).map_err(wrong)?;
            let is_unknown = matches!(frame, connectonion::ClientFrame::Unknown { .. });
            told(!is_unknown || is_one(frame.name(), BESIDE), &frame, writes)
        }
        (Protocol::ConnectOnion, Side::Server) => {
            let frame = connectonion::ServerFrame::decode(text, &limits).map_err(wrong)?;
            let is_unknown = match &frame {
                connectonion::ServerFrame::Unknown { .. } => true,
                connectonion::ServerFrame::Event(event) => {
                    matches!(event.kind, connectonion::EventKind::Unknown { .. })
                }
                _ => false,
            };
            told(!is_unknown || is_one(frame.name(), BESIDE), &frame, writes)
        }
        (Protocol::Acolyte, Side::Client) => {
            let frame = acolyte::ClientFrame::decode(text, &limits);
            told(true, &frame.map_err(|error| wrong(error.into()))?, writes)
        }
        (Protocol::Acolyte, Side::Server) if is_sse => {
            let mut frame = StreamFrame::decode(text, &limits).map_err(wrong)?;
            let is_known = match &mut frame {
                StreamFrame::Event(event) => known_event(event),
                StreamFrame::Error(error) => known_detail(error),
                StreamFrame::Done(_) => true,
                _ => false,
            };
            told(is_known, &frame, writes)
        }
        (Protocol::Acolyte, Side::Server) => {
            let frame = acolyte::ServerFrame::decode(text, &limits);
            let mut frame = frame.map_err(|error| wrong(error.into()))?;
            let is_known = match &mut frame.answer {
                acolyte::Answer::Status(status) => {
                    status.extra = acolyte::Extra::default();
                    true
                }
                acolyte::Answer::Event(event) => known_event(event),
                acolyte::Answer::Failed(error) => known_detail(error),
                answer => !matches!(answer, acolyte::Answer::Unknown { .. }),
            };
            told(is_known, &frame, writes)
        }
    })
}

/// Forgets the unknown members that Acolyte's types keep. Returns whether the event is known.
fn known_event(event: &mut Event) -> bool {
    match event {
        Event::ToolResult(result) => result.extra = acolyte::Extra::default(),
        Event::Error(error) => return known_detail(error),
        _ => {}
    }
    !matches!(event, Event::Unknown { .. })
}

fn known_detail(error: &mut acolyte_proto::error::AppError) -> bool {
    if let Some(detail) = &mut error.detail {
        detail.extra = acolyte::Extra::default();
    }
    true
}
