//! The frames in the tests of a crate, as a TypeScript program that assigns each to its type.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use rpc_core::{Limits, json};
use serde::Serialize;
use serde_json::Value;

use crate::known::WRONG;

/// Who sends a frame.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    Client,
    Server,
    /// A server, over HTTP.
    Stream,
}

impl Side {
    /// The type of its frames.
    const fn frame(self) -> &'static str {
        match self {
            Self::Client => "ClientFrame",
            Self::Server => "ServerFrame",
            Self::Stream => "StreamFrame",
        }
    }
}

/// Who sends a frame, and how a crate writes it; `None` if it writes what it has read.
type Written = (Side, Option<Value>);

fn written(side: Side, frame: &impl Serialize) -> Written {
    (side, Some(serde_json::to_value(frame).unwrap()))
}

/// Reads a text as frames of this protocol, without those of unknown types.
fn read(protocol: &str, text: &str) -> Vec<Written> {
    let limits = Limits::default();
    let mut frames = Vec::new();
    match protocol {
        "acolyte" => {
            use acolyte_proto::event::Event;
            use acolyte_proto::frame::{Answer, ClientFrame, ServerFrame};
            use acolyte_proto::http::StreamFrame;
            let client = ClientFrame::decode(text, &limits);
            frames.extend(client.map(|it| written(Side::Client, &it)));
            let server = ServerFrame::decode(text, &limits).ok();
            let server = server.filter(|it| !matches!(it.answer, Answer::Unknown { .. }));
            frames.extend(server.map(|it| written(Side::Server, &it)));
            // Without the id of a request.
            let stream = json::find_member(text, "id").is_none();
            let stream = stream.then(|| StreamFrame::decode(text, &limits).ok());
            let stream = stream
                .flatten()
                .filter(|it| !matches!(it, StreamFrame::Event(Event::Unknown { .. })));
            frames.extend(stream.map(|it| written(Side::Stream, &it)));
        }
        "connectonion" => {
            use connectonion_proto::frame::{ClientFrame, EventKind, ServerFrame};
            let client = ClientFrame::decode(text, &limits).ok();
            let client = client.filter(|it| !matches!(it, ClientFrame::Unknown { .. }));
            frames.extend(client.map(|it| written(Side::Client, &it)));
            let server = ServerFrame::decode(text, &limits).ok();
            let server = server.filter(|it| match it {
                ServerFrame::Unknown { .. } => false,
                ServerFrame::Event(event) => !matches!(event.kind, EventKind::Unknown { .. }),
                _ => true,
            });
            frames.extend(server.map(|it| written(Side::Server, &it)));
        }
        "exoclaw" => {
            use exoclaw_proto::frame::{Call, ClientFrame, ServerFrame, StreamEvent};
            let client = ClientFrame::decode(text, &limits).ok();
            let client = client.filter(|it| match it {
                ClientFrame::Request(request) => !matches!(request.call, Call::Unknown { .. }),
                _ => true,
            });
            frames.extend(client.map(|it| written(Side::Client, &it)));
            let server = ServerFrame::decode(text, &limits).ok();
            let server = server.filter(|it| {
                !matches!(
                    it,
                    ServerFrame::Stream {
                        event: StreamEvent::Unknown { .. },
                        ..
                    }
                )
            });
            frames.extend(server.map(|it| written(Side::Server, &it)));
        }
        "smarthole" => {
            use smarthole_proto::frame::{Answer, ClientFrame, ServerFrame};
            use smarthole_proto::validate::payload;
            let client = ClientFrame::decode(text, &limits).ok();
            let client = client.filter(|it| match it {
                ClientFrame::Registration(raw) => payload(raw.get()).is_ok(),
                ClientFrame::Response(it) => !matches!(it.answer, Answer::Unknown { .. }),
                _ => false,
            });
            frames.extend(client.map(|it| written(Side::Client, &it)));
            let server = ServerFrame::decode(text, &limits).ok();
            let server = server.filter(|it| !matches!(it, ServerFrame::Unknown { .. }));
            frames.extend(server.map(|it| written(Side::Server, &it)));
        }
        "snek" => {
            use snek_proto::frame::{ClientFrame, Event, ServerFrame};
            if let Ok(frame) = ClientFrame::decode(text, &limits) {
                if frame.call().is_ok() {
                    frames.push(written(Side::Client, &frame));
                }
            } else if let Ok(frame) = ServerFrame::decode(text, &limits)
                && json::find_member(text, "method").is_none()
            {
                let event = json::find_member(text, "event");
                let is_nested = event.is_some_and(|it| it.get() == r#""new_message""#);
                match frame.clone().into_event() {
                    Some(Ok(Event::Unknown(_)) | Err(_)) => {}
                    Some(Ok(_)) if is_nested => frames.push((Side::Server, None)),
                    Some(Ok(event)) => frames.push(written(Side::Server, &event)),
                    None if frame.call_id().is_some() => frames.push((Side::Server, None)),
                    None => {}
                }
            }
        }
        _ => panic!("{protocol} is not a protocol"),
    }
    frames
}

pub(crate) struct Frames<'p> {
    protocol: &'p str,
    /// As they were sent, with the file they come from.
    sent: BTreeMap<(Side, String), String>,
    /// As the crate writes them.
    written: BTreeMap<(Side, String), String>,
    /// How many the crate reads otherwise than they were sent, such as a number as an id: these are
    /// checked as the crate writes them only.
    otherwise: usize,
}

impl<'p> Frames<'p> {
    /// Collects every frame in the files of a crate's tests.
    pub(crate) fn collect(protocol: &'p str, folder: &Path) -> Self {
        let mut frames = Self {
            protocol,
            sent: BTreeMap::new(),
            written: BTreeMap::new(),
            otherwise: 0,
        };
        frames.collect_folder(folder, folder);
        frames
    }

    fn collect_folder(&mut self, folder: &Path, top: &Path) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let kind = path
                .extension()
                .and_then(|it| it.to_str())
                .unwrap_or_default();
            if path.is_dir() {
                self.collect_folder(&path, top);
            } else if ["json", "jsonl", "snap"].contains(&kind) {
                let name = path.strip_prefix(top).unwrap().display().to_string();
                let text = fs::read_to_string(&path).unwrap();
                if let Ok(json) = serde_json::from_str(&text) {
                    self.collect_json(&json, &name);
                } else {
                    for line in text.lines() {
                        self.collect_line(line, &name);
                    }
                }
            }
        }
    }

    /// Collects from a line of JSON, or from one of a trace: `+0ms C> {..}`.
    fn collect_line(&mut self, line: &str, name: &str) {
        if let Ok(json) = serde_json::from_str(line) {
            self.collect_json(&json, name);
        } else if let Some(at) = line.find('{').filter(|_| line.contains("> ")) {
            self.add(line.split_at(at).1, name);
        }
    }

    fn collect_json(&mut self, json: &Value, name: &str) {
        match json {
            Value::String(text) if text.trim_start().starts_with('{') => self.add(text, name),
            Value::Array(all) => all.iter().for_each(|it| self.collect_json(it, name)),
            Value::Object(all) => {
                for (member, value) in all {
                    match &**member {
                        // What recordings have instead of a text.
                        "frame" | "msg" | "data"
                            if value.is_object() && all.contains_key("dir") =>
                        {
                            self.add(&value.to_string(), name);
                        }
                        _ => self.collect_json(value, name),
                    }
                }
            }
            _ => {}
        }
    }

    fn add(&mut self, text: &str, name: &str) {
        // What repeats a member is not a literal.
        let Ok(sent) = serde_json::from_str::<Value>(text) else {
            return;
        };
        for (side, written) in read(self.protocol, text) {
            if written.as_ref().is_none_or(|written| agree(&sent, written)) {
                self.sent.insert((side, sent.to_string()), name.to_owned());
            } else {
                self.otherwise += 1;
            }
            if let Some(written) = written {
                self.written
                    .insert((side, written.to_string()), name.to_owned());
            }
        }
    }

    /// How many frames there are.
    pub(crate) fn counts(&self) -> String {
        let (sent, written) = (self.sent.len(), self.written.len());
        let otherwise = self.otherwise;
        format!("{sent} frames as sent, {written} as written; {otherwise} read otherwise")
    }

    /// The program; `types` is where it finds the types.
    pub(crate) fn program(&self, types: &Path) -> String {
        let types = types.display().to_string();
        let types = types.trim_end_matches(".d.ts");
        let mut text = String::from("// Whatever has these members.\n");
        for side in [Side::Client, Side::Server, Side::Stream] {
            if self.sent.keys().any(|it| it.0 == side) {
                let of = side.frame();
                writeln!(text, "import type {{ {of} }} from {types:?};").unwrap();
                writeln!(
                    text,
                    "declare function a{of}<F extends {of}>(sent: F): void;"
                )
                .unwrap();
            }
        }
        for ((side, frame), name) in &self.sent {
            let (of, refused) = (side.frame(), self.refused(frame));
            writeln!(text, "// {name}\n{refused}a{of}({frame});").unwrap();
        }
        text += "// These members and no others.\n";
        for (at, ((side, frame), name)) in self.written.iter().enumerate() {
            let (of, refused) = (side.frame(), self.refused(frame));
            writeln!(
                text,
                "// {name}\n{refused}export const f{at}: {of} = {frame};"
            )
            .unwrap();
        }
        for (_, frame) in WRONG.iter().filter(|it| it.0 == self.protocol) {
            assert!(text.contains(frame), "{frame} is not recorded");
        }
        text
    }

    /// What is in front of a frame that the types must not allow.
    fn refused(&self, frame: &str) -> &'static str {
        match WRONG.contains(&(self.protocol, frame)) {
            true => "// @ts-expect-error\n",
            false => "",
        }
    }
}

/// Whether all members that both have are the same: those with a value.
fn agree(sent: &Value, written: &Value) -> bool {
    match (sent, written) {
        (Value::Object(sent), Value::Object(written)) => sent.iter().all(|(name, value)| {
            let other = written.get(name).filter(|_| !value.is_null());
            other.is_none_or(|other| agree(value, other))
        }),
        (Value::Array(sent), Value::Array(written)) => {
            sent.len() == written.len() && sent.iter().zip(written).all(|(a, b)| agree(a, b))
        }
        (Value::Number(sent), Value::Number(written)) => sent.as_f64() == written.as_f64(),
        _ => sent == written,
    }
}
