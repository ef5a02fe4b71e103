//! Recordings as the wire tool prints them, beside a quick printer: each line and each text in it as a `Value`.

use std::hint::black_box;
use std::io::Write as _;

use serde_json::{Value, json};
use switchboard_wire::decode::{Options, decode};

use crate::text;
use crate::work::Work;

/// Lines of a recording.
const LINES: u64 = 200;

pub(crate) fn works() -> Vec<Work> {
    vec![
        printing("print a recording, 100 B a frame", 12),
        printing("print a recording, 1 KB a frame", 1_000),
    ]
}

/// A chat whose answer comes in pieces of so many bytes.
fn printing(name: &'static str, bytes: usize) -> Work {
    let whole = chat(bytes);
    let text = whole.clone();
    let size = (100 + bytes as u64) * LINES;
    Work::new(name, size, move |n| {
        for _ in 0..n {
            let mut out = Vec::new();
            let count = decode(&Options::default(), black_box(&*whole), &mut out, |_| {});
            assert_eq!(count.expect("memory").problems, 0);
            black_box(out);
        }
    })
    .beside(PRINTER, move |n| {
        for _ in 0..n {
            black_box(printed(black_box(&text)));
        }
    })
}

/// The name of the quick printer.
const PRINTER: &str = "a printer";

fn printed(recording: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for line in recording
        .split(|byte| *byte == b'\n')
        .filter(|it| !it.is_empty())
    {
        let mut entry: Value = serde_json::from_slice(line).expect("JSON");
        if let Some(Value::String(frame)) = entry.get_mut("data")
            && let Ok(frame) = serde_json::from_str::<Value>(frame)
        {
            entry["data"] = frame;
        }
        writeln!(out, "{entry}").expect("memory");
    }
    out
}

fn chat(bytes: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let mut at = 0;
    let mut line = |from: &str, frame: Value| {
        at += 1;
        let at = f64::from(at) / 1000.0;
        let frame =
            json!({"at": at, "conn": 1, "dir": from, "kind": "text", "data": frame.to_string()});
        writeln!(out, "{frame}").expect("memory");
    };
    let id = "0f1e2d3c4b5a6978";
    line("s2c", json!({"ok": true, "version": "0.1.0"}));
    let params =
        json!({"channel": "websocket", "account": "user-123", "peer": "main", "content": "Hello"});
    line(
        "c2s",
        json!({"id": id, "method": "chat.send", "params": params}),
    );
    for _ in 0..LINES {
        line(
            "s2c",
            json!({"id": id, "event": "text", "data": text::words(bytes)}),
        );
    }
    line("s2c", json!({"id": id, "event": "done"}));
    out
}
