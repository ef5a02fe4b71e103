//! Acolyte: a piece of a model's text in the chat that it belongs to.

use std::borrow::Cow;
use std::hint::black_box;

use acolyte_proto::frame::ServerFrame;
use serde::{Deserialize, Serialize};

use super::{hot, kept};
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

pub(super) fn works() -> [Work; 2] {
    let sonic = |text: &str| {
        let frame: Delivered<'_> = sonic_rs::from_str(text).unwrap();
        assert!(frame.tag == "chat.event" && frame.event.tag == "text-delta");
        black_box((frame.id, frame.event.text));
    };
    let [read, written] = hot::<_, Owned, _>(
        "Acolyte text event, 110 B",
        100,
        frame,
        |text, limits| ServerFrame::decode(text, limits).unwrap(),
        sonic,
        kept::<Delivered<'_>>,
    );
    [read.allocating(1.0), written]
}
