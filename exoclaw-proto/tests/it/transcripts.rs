//! Recordings of a real gateway, played to the codec and to the client.

use std::collections::HashMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use exoclaw_proto::client::{ClientConfig, ClientConn, ClientEvent};
use exoclaw_proto::frame::{Request, ServerFrame, StreamEvent};
use exoclaw_proto::id::CallId;
use rpc_core::{CloseFrame, Disconnect, Incoming, Limits, Machine};
use serde_json::Value;
use switchboard_testing::json::assert_same;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts")
}

/// The recordings by name, in order.
fn recordings() -> Vec<(String, Vec<Value>)> {
    let mut files: Vec<_> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let read = |path: PathBuf| {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let text = std::fs::read_to_string(path).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        (name, lines.collect())
    };
    files.into_iter().map(read).collect()
}

/// One recorded connection, played to a client that asks what was asked.
struct Played {
    conn: ClientConn,
    now: Instant,
    /// The client's ids by the recorded ones.
    ids: HashMap<String, CallId>,
    names: HashMap<CallId, String>,
}

impl Played {
    fn new(lines: &[&Value]) -> Self {
        let first = lines
            .iter()
            .find(|line| line["dir"] == "c2s" && line["kind"] == "text");
        let token = first
            .and_then(|line| line["data"].as_str())
            .and_then(|text| serde_json::from_str::<Value>(text).ok())
            .and_then(|frame| frame["token"].as_str().map(str::to_owned));
        let mut config = ClientConfig::default();
        if let Some(token) = token {
            config.token = Some(token.into());
        }
        let now = Instant::now();
        Self {
            conn: ClientConn::new(config, 7, now),
            now,
            ids: HashMap::new(),
            names: HashMap::new(),
        }
    }

    fn ask(&mut self, text: &str) {
        let Ok(request) = Request::decode(text, &Limits::default()) else {
            return;
        };
        if let Ok(id) = self.conn.request(&request.call, self.now) {
            let name = request.id.text().into_owned();
            self.ids.insert(name.clone(), id);
            self.names.insert(id, name);
        }
    }

    fn recv(&mut self, text: &str) {
        let frame: Value = serde_json::from_str(text).unwrap();
        let name = frame["id"].as_str();
        let ours = name.and_then(|name| Some((name, self.ids.get(name)?)));
        let text = match ours {
            Some((name, id)) => {
                let (theirs, ours) = (Value::from(name), Value::from(id.to_string()));
                text.replace(&format!("\"id\":{theirs}"), &format!("\"id\":{ours}"))
            }
            None => text.to_owned(),
        };
        self.conn.handle_message(Incoming::Text(&text), self.now);
    }

    fn step(&mut self, line: &Value) {
        let data = line["data"].as_str().unwrap_or_default();
        match (line["dir"].as_str(), line["kind"].as_str()) {
            (Some("c2s"), Some("text")) => self.ask(data),
            (Some("c2s"), Some("close")) => self.conn.close(self.now),
            (Some("s2c"), Some("text")) => self.recv(data),
            (Some("s2c"), Some("close")) => {
                let code = line["code"].as_u64().and_then(|code| code.try_into().ok());
                let frame = code.map(|code| CloseFrame::new(code, ""));
                self.conn
                    .handle_disconnect(Disconnect::PeerClosed(frame), self.now);
            }
            (Some("s2c"), Some("eof")) => self.conn.handle_disconnect(Disconnect::Eof, self.now),
            _ => {}
        }
    }

    fn write_reports(&mut self, to: &mut String) {
        while let Some(event) = self.conn.poll_event() {
            let name = |id: &CallId| &self.names[id];
            let line = match &event {
                ClientEvent::Ready(hello) => format!("ready {}", hello.version().unwrap()),
                ClientEvent::Reply {
                    id,
                    result: Ok(answer),
                } => format!("{} answer {}", name(id), answer.get()),
                ClientEvent::Reply {
                    id,
                    result: Err(error),
                } => format!("{} {error}", name(id)),
                ClientEvent::Chat { id, event } => format!("{} {}", name(id), step(event)),
                ClientEvent::ChatEnded {
                    id,
                    result: Ok(summary),
                } => format!("{} done {summary:?}", name(id)),
                ClientEvent::ChatEnded {
                    id,
                    result: Err(error),
                } => format!("{} failed: {error}", name(id)),
                ClientEvent::GatewayError(error) => format!("gateway: {error}"),
                ClientEvent::Warning(error) => format!("warning: {error}"),
                ClientEvent::Closed(reason) => format!("closed: {reason}"),
                other => format!("{other:?}"),
            };
            writeln!(to, "  {line}").unwrap();
        }
    }
}

fn step(event: &StreamEvent) -> String {
    match event {
        StreamEvent::Text(text) => format!("text {text:?}"),
        StreamEvent::ToolUse(tool) => {
            format!("tool_use {} {} {}", tool.id, tool.name, tool.input.get())
        }
        StreamEvent::ToolResult(result) => format!(
            "tool_result {} {:?} {}",
            result.tool_use_id, result.content, result.is_error
        ),
        StreamEvent::Usage(usage) => {
            format!("usage {} {}", usage.input_tokens, usage.output_tokens)
        }
        other => format!("{other:?}"),
    }
}

#[test]
fn every_recorded_frame_round_trips() {
    let limits = Limits::default();
    let mut count = 0;
    for (name, lines) in recordings() {
        for line in &lines {
            if line["dir"] != "s2c" || line["kind"] != "text" {
                continue;
            }
            let text = line["data"].as_str().unwrap();
            let frame = ServerFrame::decode(text, &limits)
                .unwrap_or_else(|error| panic!("{name}: {error}: {text}"));
            assert_same(&serde_json::to_string(&frame).unwrap(), text);
            count += 1;
        }
    }
    assert!(count > 100, "{count}");
}

#[test]
fn recorded_conversations_become_events() {
    for (name, lines) in recordings() {
        let mut conns: Vec<&str> = Vec::new();
        for conn in lines.iter().filter_map(|line| line["conn"].as_str()) {
            if conn != "-" && !conns.contains(&conn) {
                conns.push(conn);
            }
        }
        let mut reported = String::new();
        for conn in conns {
            let lines: Vec<_> = lines.iter().filter(|line| line["conn"] == conn).collect();
            let mut played = Played::new(&lines);
            writeln!(reported, "connection {conn}").unwrap();
            for line in lines {
                played.step(line);
                played.write_reports(&mut reported);
            }
            writeln!(reported, "  ({} stray frames)", played.conn.stray_frames()).unwrap();
        }
        insta::assert_snapshot!(name, reported);
    }
}
