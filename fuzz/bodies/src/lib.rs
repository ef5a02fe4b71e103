//! Bodies of the fuzz targets: any bytes go in, and the rules that a target stands for must hold.
//!
//! The same code runs under libFuzzer, over the seeds, and under proptest beside the bodies.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "a broken rule has to stop the fuzzer"
)]

pub mod acolyte;
mod calls;
pub mod connectonion;
pub mod exoclaw;
mod frames;
pub mod json;
mod machine;
mod plain;
mod script;
pub mod smarthole;
pub mod snek;
pub mod sse;

use Body::{Bytes, Text};

/// What a target does with its input.
#[derive(Clone, Copy, Debug)]
pub enum Body {
    /// It reads any bytes.
    Bytes(fn(&[u8])),
    /// It reads text; other bytes are nothing to it.
    Text(fn(&str)),
}

impl Body {
    /// Does it.
    ///
    /// # Panics
    /// If a rule is broken.
    pub fn run(self, input: &[u8]) {
        match self {
            Bytes(body) => body(input),
            Text(body) => {
                if let Ok(text) = std::str::from_utf8(input) {
                    body(text);
                }
            }
        }
    }
}

/// Every fuzz target and its body.
#[rustfmt::skip]
pub const TARGETS: [(&str, Body); 34] = [
    ("acolyte_client_conn", Bytes(acolyte::client_conn)),
    ("acolyte_client_frames", Text(acolyte::client_frames)),
    ("acolyte_server_conn", Bytes(acolyte::server_conn)),
    ("acolyte_server_frames", Text(acolyte::server_frames)),
    ("acolyte_sse", Bytes(acolyte::sse)),
    ("connectonion_canonical", Text(connectonion::canonical)),
    ("connectonion_client_conn", Bytes(connectonion::client_conn)),
    ("connectonion_client_frames", Text(connectonion::client_frames)),
    ("connectonion_jsonl", Bytes(connectonion::jsonl)),
    ("connectonion_server_conn", Bytes(connectonion::server_conn)),
    ("connectonion_server_frames", Text(connectonion::server_frames)),
    ("exoclaw_client_conn", Bytes(exoclaw::client_conn)),
    ("exoclaw_client_frames", Text(exoclaw::client_frames)),
    ("exoclaw_pair", Bytes(exoclaw::pair)),
    ("exoclaw_server_conn", Bytes(exoclaw::server_conn)),
    ("exoclaw_server_frames", Text(exoclaw::server_frames)),
    ("exoclaw_session_key", Bytes(exoclaw::session_key)),
    ("json_reader", Text(json::reader)),
    ("json_writer", Bytes(json::writer)),
    ("smarthole_client_conn", Bytes(smarthole::client_conn)),
    ("smarthole_client_frames", Text(smarthole::client_frames)),
    ("smarthole_direct", Text(smarthole::direct)),
    ("smarthole_hub", Bytes(smarthole::hub)),
    ("smarthole_server_conn", Bytes(smarthole::server_conn)),
    ("smarthole_server_frames", Text(smarthole::server_frames)),
    ("smarthole_validate", Text(smarthole::validate)),
    ("snek_client_conn", Bytes(snek::client_conn)),
    ("snek_client_frames", Text(snek::client_frames)),
    ("snek_image_urls", Text(snek::image_urls)),
    ("snek_sanitize", Text(snek::sanitize)),
    ("snek_server_conn", Bytes(snek::server_conn)),
    ("snek_server_frames", Text(snek::server_frames)),
    ("snek_toolloop", Bytes(snek::toolloop)),
    ("sse", Bytes(sse::sse)),
];
