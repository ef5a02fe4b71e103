//! ConnectOnion: the result of a tool, the most frequent event of a run.

use std::borrow::Cow;
use std::hint::black_box;

use connectonion_proto::frame::ServerFrame;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sonic_rs::OwnedLazyValue;

use super::{hot, kept};
use crate::text;
use crate::work::Work;

fn frame() -> String {
    let result = text::json(&text::words(45));
    format!(
        r#"{{"type":"tool_result","tool_id":"call_1","name":"search","args":{{"query":"fox"}},"status":"completed","result":{result},"timing_ms":0.5,"id":"8c2c6c1e-5d5e-4f0e-9a39-0b8f3a0d1c55","ts":1770000000.5,"session_id":"3f2a9f0e-7f34-4f4f-8a57-2f9f8d1a7b10"}}"#
    )
}

#[expect(dead_code, reason = "reading them is all that is measured")]
#[derive(Debug, Deserialize)]
struct Owned {
    id: String,
    ts: f64,
    session_id: String,
    #[serde(flatten)]
    event: Event,
}

#[expect(dead_code, reason = "reading them is all that is measured")]
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event {
    ToolCall {
        tool_id: String,
        name: String,
        args: Value,
        status: String,
    },
    ToolResult {
        tool_id: String,
        name: String,
        args: Value,
        status: String,
        result: String,
        timing_ms: f64,
    },
    Thinking {
        content: String,
    },
    Assistant {
        content: String,
    },
}

/// The tag borrows, what is delivered does not.
#[derive(Debug, Serialize, Deserialize)]
struct Delivered<'a, J> {
    #[serde(borrow, rename = "type")]
    tag: Cow<'a, str>,
    tool_id: String,
    name: String,
    args: J,
    status: String,
    result: String,
    timing_ms: f64,
    id: String,
    ts: f64,
    session_id: String,
}

/// What the tool was given. sonic-rs cannot write raw values of serde_json, so that the peers have a
/// type for it.
#[derive(Debug, Serialize, Deserialize)]
struct Query {
    query: String,
}

pub(super) fn works() -> [Work; 2] {
    let sonic = |text: &str| {
        let frame: Delivered<'_, OwnedLazyValue> = sonic_rs::from_str(text).unwrap();
        assert!(frame.tag == "tool_result");
        black_box(frame);
    };
    let [read, written] = hot::<_, Owned, _>(
        "ConnectOnion tool result, 290 B",
        290,
        frame,
        |text, limits| ServerFrame::decode(text, limits).unwrap(),
        sonic,
        kept::<Delivered<'_, Query>>,
    );
    let why = "3.0 times jsonrpsee would be 6,370 instructions, 9.0 times rmcp 5,120, fewer than sonic-rs takes (6,550): of \
        6,480 go 1,760 to seven texts, three of them allocated, 1,740 to eleven names, 390 to two fractions, 300 to a raw \
        value, 1,000 to moving and dropping the event";
    let read = read.missed("jsonrpsee", 2.9, why).missed("rmcp", 7.0, why);
    [read.allocating(3.0), written]
}
