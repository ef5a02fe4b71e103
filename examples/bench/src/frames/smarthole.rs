//! SmartHole: what a user said, on its way to a client.

use std::borrow::Cow;
use std::hint::black_box;

use rpc_core::Limits;
use serde::{Deserialize, Serialize};
use smarthole_proto::frame::ServerFrame;

use super::{
    read_jsonrpsee, read_owned, read_rmcp, read_value, write_ours, write_serde, write_sonic,
    written_as,
};
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

fn parsed(text: &str) -> Delivered<'_> {
    serde_json::from_str(text).unwrap()
}

pub(super) fn works() -> Vec<Work> {
    vec![
        Work::new("1", "decode SmartHole message, 210 B", 210, |n| {
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
                assert!(frame.tag == "message");
                black_box(frame.payload);
            }
        })
        .allocating(3.0),
        Work::new("4", "encode SmartHole message, 210 B", 210, |n| {
            let text = frame();
            write_ours(n, &ServerFrame::decode(&text, &Limits::default()).unwrap());
        })
        .beside("to_writer", |n| write_serde(n, &parsed(&frame())))
        .beside("sonic-rs", |n| write_sonic(n, &parsed(&frame())))
        .allocating(0.0),
    ]
}

pub(super) fn assert_same() {
    let text = frame();
    let ours = ServerFrame::decode(&text, &Limits::default()).unwrap();
    written_as(&text, &ours, &parsed(&text));
}
