//! Acolyte: a piece of a model's text in the chat that it belongs to.

use std::borrow::Cow;
use std::hint::black_box;

use acolyte_proto::frame::ServerFrame;
use rpc_core::Limits;
use serde::{Deserialize, Serialize};

use super::{
    read_jsonrpsee, read_owned, read_rmcp, read_value, write_ours, write_serde, write_sonic,
    written_as,
};
use crate::text;
use crate::work::Work;

const ID: &str = "rpc_1f2e3d4c5b6a";

fn frame() -> String {
    let content = text::json(&text::words(45));
    format!(
        r#"{{"id":"{ID}","type":"chat.event","event":{{"type":"text-delta","text":{content}}}}}"#
    )
}

#[derive(Debug, Serialize, Deserialize)]
struct Owned {
    id: String,
    #[serde(flatten)]
    answer: Answer,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type")]
enum Answer {
    #[serde(rename = "chat.accepted")]
    Accepted {
        #[serde(rename = "taskId")]
        task_id: String,
    },
    #[serde(rename = "chat.event")]
    Event { event: Event },
    #[serde(rename = "chat.done")]
    Done { reply: serde_json::Value },
    #[serde(rename = "chat.error")]
    Error { error: String },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
enum Event {
    TextDelta {
        text: String,
    },
    Reasoning {
        text: String,
    },
    ToolCall {
        #[serde(rename = "toolCallId")]
        id: String,
        #[serde(rename = "toolName")]
        name: String,
        args: serde_json::Value,
    },
    Usage {
        #[serde(rename = "inputTokens")]
        input: u64,
        #[serde(rename = "outputTokens")]
        output: u64,
    },
}

/// The tags borrow, what is delivered does not.
#[derive(Debug, Serialize, Deserialize)]
struct Delivered<'a> {
    id: String,
    #[serde(borrow, rename = "type")]
    tag: Cow<'a, str>,
    #[serde(borrow)]
    event: Delta<'a>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Delta<'a> {
    #[serde(borrow, rename = "type")]
    tag: Cow<'a, str>,
    text: String,
}

pub(super) fn works() -> Vec<Work> {
    vec![
        Work::new("1", "decode Acolyte text event, 110 B", 100, |n| {
            let (text, limits) = (frame(), Limits::default());
            for _ in 0..n {
                black_box(ServerFrame::decode(black_box(&text), &limits).unwrap());
            }
        })
        .beside("serde derive", |n| read_owned::<Owned>(n, &frame()))
        .beside("our types, serde_json", |n| {
            read_owned::<ServerFrame>(n, &frame())
        })
        .beside("serde_json::Value", |n| read_value::<Owned>(n, &frame()))
        .beside("jsonrpsee", |n| read_jsonrpsee::<Owned>(n, &frame()))
        .beside("rmcp", |n| read_rmcp(n, &frame()))
        .beside("sonic-rs", |n| {
            let text = frame();
            for _ in 0..n {
                let frame: Delivered<'_> = sonic_rs::from_str(black_box(&text)).unwrap();
                assert!(frame.tag == "chat.event" && frame.event.tag == "text-delta");
                black_box((frame.id, frame.event.text));
            }
        })
        .allocating(1.0),
        Work::new("4", "encode Acolyte text event, 110 B", 100, |n| {
            let text = frame();
            write_ours(n, &ServerFrame::decode(&text, &Limits::default()).unwrap());
        })
        .beside("to_writer", |n| {
            write_serde(n, &serde_json::from_str::<Delivered<'_>>(&frame()).unwrap());
        })
        .beside("sonic-rs", |n| {
            write_sonic(n, &serde_json::from_str::<Delivered<'_>>(&frame()).unwrap());
        })
        .allocating(0.0),
    ]
}

pub(super) fn assert_same() {
    let text = frame();
    let ours = ServerFrame::decode(&text, &Limits::default()).unwrap();
    written_as(
        &text,
        &ours,
        &serde_json::from_str::<Delivered<'_>>(&text).unwrap(),
    );
}
