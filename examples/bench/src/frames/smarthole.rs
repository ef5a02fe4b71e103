//! SmartHole: what a user said, on its way to a client.

use std::borrow::Cow;
use std::hint::black_box;

use serde::{Deserialize, Serialize};
use smarthole_proto::frame::ServerFrame;

use super::{kept, parse, reading, repeat, write, writing};
use crate::text;
use crate::work::Work;

fn frame() -> String {
    let content = text::json(&text::words(45));
    format!(
        r#"{{"type":"message","payload":{{"id":"msg-1770000000000-1f2e3d4c","text":{content},"timestamp":"2026-11-22T18:00:00.000Z","metadata":{{"inputMethod":"text","directRouted":false}}}}}}"#
    )
}

#[expect(dead_code, reason = "reading them is all that is measured")]
#[derive(Debug, Deserialize)]
#[serde(tag = "type", content = "payload", rename_all = "snake_case")]
enum Owned {
    Message {
        id: String,
        text: String,
        timestamp: String,
        metadata: OwnedMetadata,
    },
    RegistrationResponse {
        success: bool,
        message: Option<String>,
        code: Option<String>,
    },
}

#[expect(dead_code, reason = "reading them is all that is measured")]
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct OwnedMetadata {
    input_method: String,
    direct_routed: bool,
    confidence: Option<f64>,
    routing_reason: Option<String>,
}

/// The tag borrows, what is delivered does not.
#[derive(Debug, Serialize, Deserialize)]
struct Delivered<'a> {
    #[serde(borrow, rename = "type")]
    tag: Cow<'a, str>,
    payload: Message,
}

#[derive(Debug, Serialize, Deserialize)]
struct Message {
    id: String,
    text: String,
    timestamp: String,
    metadata: Metadata,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    input_method: String,
    direct_routed: bool,
}

pub(super) fn works() -> Vec<Work> {
    vec![
        reading(
            "decode SmartHole message, 210 B",
            210,
            frame,
            |text, limits| ServerFrame::decode(text, limits).unwrap(),
            |frame: ServerFrame| frame,
        )
        .hot::<Owned, Owned>(
            frame,
            || text::subscription(&frame()),
            || text::logged(&frame()),
        )
        .beside("sonic-rs", |n| {
            repeat(n, &frame(), |text| {
                let frame: Delivered<'_> = sonic_rs::from_str(text).unwrap();
                assert!(frame.tag == "message");
                black_box(frame.payload);
            });
        })
        .allocating(3.0),
        writing(
            "encode SmartHole message, 210 B",
            210,
            frame,
            |n, text, buffer| write(n, &parse::<ServerFrame>(text), buffer),
            kept::<Delivered<'_>>,
        ),
    ]
}
