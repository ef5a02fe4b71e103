//! SmartHole: what a user said, on its way to a client.

use std::borrow::Cow;
use std::hint::black_box;

use serde::{Deserialize, Serialize};
use smarthole_proto::frame::ServerFrame;

use super::{hot, kept};
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

pub(super) fn works() -> [Work; 2] {
    let sonic = |text: &str| {
        let frame: Delivered<'_> = sonic_rs::from_str(text).unwrap();
        assert!(frame.tag == "message");
        black_box(frame.payload);
    };
    let [read, written] = hot::<_, Owned, _>(
        "SmartHole message, 210 B",
        210,
        frame,
        |text, limits| ServerFrame::decode(text, limits).unwrap(),
        sonic,
        kept::<Delivered<'_>>,
    );
    let why = "1.50 would be 2,920 instructions of 3,460: 800 go to three texts that do not fit inline, as in the derive, 310 to \
        the ends of long names and texts, 1,300 to eight members by name";
    let read = read.missed("serde derive", 1.27, why);
    [read.allocating(3.0), written]
}
