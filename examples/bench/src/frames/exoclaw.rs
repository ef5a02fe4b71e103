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

use super::{kept, parse, raw, reading, repeat, writing};
use crate::goals::{self, WRITE, WRITE_LONG, WRITER};
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

fn small() -> String {
    text::exoclaw_text(&text::words(45))
}

fn long() -> String {
    text::exoclaw_text(&text::words(970))
}

fn code() -> String {
    text::exoclaw_text(&text::code(970))
}

fn huge() -> String {
    text::exoclaw_text(&text::words(200_000))
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

fn decode(text: &str, limits: &Limits) -> ServerFrame {
    ServerFrame::decode(text, limits).unwrap()
}

fn read(name: &str, bytes: u64, text: fn() -> String) -> Work {
    reading(name, bytes, text, decode, |frame: ServerFrame| frame)
}

fn written<D: Serialize + for<'de> Deserialize<'de> + 'static>(
    name: &str,
    bytes: u64,
    least: f64,
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
    writing(name, bytes, least, text, ours, kept::<Written<D>>)
}

/// What sonic-rs writes, beside the others.
fn sonic_writes(work: Work, text: fn() -> String) -> Work {
    work.beside("sonic-rs", goals::SONIC, move |n| {
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

fn payload() -> String {
    let text = text::json(&text::words(45));
    format!(r#"{{"event":"text","data":{text}}}"#)
}

pub(super) fn works() -> Vec<Work> {
    let sonic = |text: &str| {
        let frame: Lazy<'_> = sonic_rs::from_str(text).unwrap();
        assert!(frame.event == "text");
        black_box(sonic_rs::from_str::<String>(frame.data.as_raw_str()).unwrap());
        black_box(frame);
    };
    let progress = || text::progress(&text::words(45));
    let copied = "1.40 would be 1,456,000 instructions of 1,466,000: 20,000 are the copy that is delivered, which the scan does \
        not make";
    let searched = "1.40 would be 1,454,000 instructions of 1,572,000: 104,000 look for halves of surrogate pairs, 20,000 are \
        the copy; the scan does neither";
    let appended = "of 6,640 instructions go 4,100 to append 60 escapes and the runs between them, each with a look for room, 1,400 \
        to find where a run ends, 770 to copy";
    let unfilled = "it writes into memory that it has not filled, which safe code cannot";
    let escapes = written::<String>(
        "encode Exoclaw text event with escapes, 1 KB",
        1_000,
        WRITE,
        code,
    );
    let long_text = written::<String>(
        "encode Exoclaw text event, 200 KB",
        200_000,
        WRITE_LONG,
        huge,
    );
    vec![
        read("decode Exoclaw text event, 100 B", 100, small)
            .hot::<Owned, Event>(small, payload, progress, sonic)
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
            .beside("serde derive", goals::LONG, |n| {
                repeat(n, &huge(), parse::<Owned>)
            })
            .allocating(1.0),
        raw("Exoclaw result left raw, 200 KB", result, decode).missed(
            "serde_json scan",
            1.37,
            copied,
        ),
        raw("Exoclaw tool input left raw, 200 KB", tool, decode).missed(
            "serde_json scan",
            1.27,
            searched,
        ),
        written::<String>("encode Exoclaw text event, 100 B", 100, WRITE, small),
        written::<String>("encode Exoclaw text event, 1 KB", 1_000, WRITER, long),
        sonic_writes(escapes, code)
            .missed("to_writer", 1.82, appended)
            .missed("sonic-rs", 0.61, unfilled),
        sonic_writes(long_text, huge),
        written::<Tool>(
            "encode Exoclaw tool use, raw input of 200 KB",
            200_000,
            WRITER,
            tool,
        ),
        written::<Usage>("encode Exoclaw usage event", 100, WRITER, || {
            USAGE.to_owned()
        }),
    ]
}
