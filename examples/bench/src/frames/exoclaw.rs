//! Exoclaw: what a chat says, and payloads that are passed through.

use std::borrow::Cow;
use std::hint::black_box;

use exoclaw_proto::codec::encode_event;
use exoclaw_proto::frame::{Request, ServerFrame};
use rpc_core::Limits;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use sonic_rs::LazyValue;

use super::{kept, parse, reading, repeat, writing};
use crate::text;
use crate::work::Work;

const USAGE: &str =
    r#"{"id":"0f1e2d3c4b5a6978","event":"usage","data":{"input_tokens":150,"output_tokens":42}}"#;
const CHAT_SEND: &str = r#"{"id":"0f1e2d3c4b5a6978","method":"chat.send","params":{"channel":"websocket","account":"user-123","peer":"main","content":"Hello, how are you?"}}"#;

/// An event in its envelope, as a user derives it.
#[expect(dead_code, reason = "reading them is all that is measured")]
#[derive(Debug, Deserialize)]
struct Owned {
    id: String,
    #[serde(flatten)]
    event: Event,
}

#[expect(dead_code, reason = "reading them is all that is measured")]
#[derive(Debug, Deserialize)]
#[serde(tag = "event", content = "data", rename_all = "snake_case")]
enum Event {
    Text(String),
    ToolUse {
        id: String,
        name: String,
        input: Value,
    },
    ToolResult {
        tool_use_id: String,
        content: String,
        #[serde(default)]
        is_error: bool,
    },
    Usage {
        input_tokens: u64,
        output_tokens: u64,
    },
    Done,
    Error(String),
}

/// What sonic-rs reads fastest: the payload is lazy, what is delivered is copied.
#[expect(dead_code, reason = "reading them is all that is measured")]
#[derive(Debug, Deserialize)]
struct Lazy<'a> {
    id: String,
    #[serde(borrow)]
    event: Cow<'a, str>,
    #[serde(borrow)]
    data: LazyValue<'a>,
}

/// What is written: a payload of any type in its envelope.
#[derive(Serialize, Deserialize)]
struct Written<D> {
    id: String,
    event: String,
    data: D,
}

#[derive(Serialize, Deserialize)]
struct Tool {
    id: String,
    name: String,
    input: Box<RawValue>,
}

#[derive(Serialize, Deserialize)]
struct Usage {
    input_tokens: u64,
    output_tokens: u64,
}

fn event(text: &str) -> String {
    let text = text::json(text);
    format!(r#"{{"id":"0f1e2d3c4b5a6978","event":"text","data":{text}}}"#)
}

fn small() -> String {
    event(&text::words(45))
}

fn long() -> String {
    event(&text::words(970))
}

fn code() -> String {
    event(&text::code(970))
}

fn huge() -> String {
    event(&text::words(200_000))
}

fn result() -> String {
    format!(
        r#"{{"id":"0f1e2d3c4b5a6978","result":{}}}"#,
        text::sessions()
    )
}

fn tool() -> String {
    format!(
        r#"{{"id":"0f1e2d3c4b5a6978","event":"tool_use","data":{{"id":"call_1","name":"search","input":{}}}}}"#,
        text::sessions()
    )
}

fn read(name: &'static str, bytes: u64, text: fn() -> String) -> Work {
    reading(
        name,
        bytes,
        text,
        |text, limits| ServerFrame::decode(text, limits).unwrap(),
        |frame: ServerFrame| frame,
    )
}

fn raw(name: &'static str, text: fn() -> String) -> Work {
    Work::new(name, 200_000, move |n| {
        let limits = Limits::default();
        repeat(n, &text(), |text| {
            ServerFrame::decode(text, &limits).unwrap()
        });
    })
    .beside("serde_json scan", move |n| super::scan(n, &text()))
    .allocating(1.0)
}

fn written<D: Serialize + for<'de> Deserialize<'de> + 'static>(
    name: &'static str,
    bytes: u64,
    text: fn() -> String,
) -> Work {
    let ours = |n, text: &str, buffer: &mut String| {
        let ServerFrame::Stream { id, event } = parse(text) else {
            panic!("{text} is not an event");
        };
        for _ in 0..n {
            buffer.clear();
            encode_event(buffer, black_box(&id), black_box(&event)).unwrap();
            black_box(&buffer[..]);
        }
    };
    writing(name, bytes, text, ours, kept::<Written<D>>)
}

/// What sonic-rs writes, beside the others.
fn sonic_writes(work: Work, text: fn() -> String) -> Work {
    work.beside("sonic-rs", move |n| {
        let text: &str = text().leak();
        let frame: Written<String> = kept(text);
        let mut buffer = Vec::with_capacity(2 * text.len() + 256);
        for _ in 0..n {
            buffer.clear();
            sonic_rs::to_writer(&mut buffer, black_box(&frame)).unwrap();
            black_box(&buffer[..]);
        }
        assert!(buffer == text.as_bytes(), "it is written otherwise");
    })
}

pub(super) fn works() -> Vec<Work> {
    vec![
        read("decode Exoclaw text event, 100 B", 100, small)
            .hot::<Owned, Event>(
                small,
                || {
                    let text = text::json(&text::words(45));
                    text::subscription(&format!(r#"{{"event":"text","data":{text}}}"#))
                },
                || text::progress(&text::words(45)),
            )
            .beside("sonic-rs", |n| {
                repeat(n, &small(), |text| {
                    let frame: Lazy<'_> = sonic_rs::from_str(text).unwrap();
                    assert!(frame.event == "text");
                    black_box(sonic_rs::from_str::<String>(frame.data.as_raw_str()).unwrap());
                    black_box(frame);
                });
            })
            .allocating(1.0),
        read("decode Exoclaw text event, 1 KB", 1_000, long).allocating(1.0),
        read("decode Exoclaw usage event", 100, || USAGE.to_owned()).allocating(0.0),
        reading(
            "decode Exoclaw chat.send",
            100,
            || CHAT_SEND.to_owned(),
            |text, limits| Request::decode(text, limits).unwrap(),
            |request: Request| request,
        )
        .allocating(0.0),
        read("decode Exoclaw text event with escapes, 1 KB", 1_000, code).allocating(2.0),
        read("decode Exoclaw text event, 200 KB", 200_000, huge)
            .beside("serde derive", |n| repeat(n, &huge(), parse::<Owned>))
            .allocating(1.0),
        raw("Exoclaw result left raw, 200 KB", result),
        raw("Exoclaw tool input left raw, 200 KB", tool),
        written::<String>("encode Exoclaw text event, 100 B", 100, small),
        written::<String>("encode Exoclaw text event, 1 KB", 1_000, long),
        sonic_writes(
            written::<String>("encode Exoclaw text event with escapes, 1 KB", 1_000, code),
            code,
        ),
        sonic_writes(
            written::<String>("encode Exoclaw text event, 200 KB", 200_000, huge),
            huge,
        ),
        written::<Tool>(
            "encode Exoclaw tool use, raw input of 200 KB",
            200_000,
            tool,
        ),
        written::<Usage>("encode Exoclaw usage event", 100, || USAGE.to_owned()),
    ]
}
