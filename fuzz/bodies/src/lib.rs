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

macro_rules! targets {
    ($($module:ident: $($kind:ident $body:ident),+;)+) => {
        &[$($((concat!(stringify!($module), "_", stringify!($body)), $kind($module::$body)),)+)+
            ("sse", Bytes(sse::sse))]
    };
}

/// Every fuzz target and its body, the function of that name.
pub const TARGETS: &[(&str, Body)] = targets! {
    acolyte: Bytes client_conn, Text client_frames, Bytes server_conn, Text server_frames, Bytes sse;
    connectonion: Text canonical, Bytes client_conn, Text client_frames, Bytes jsonl,
        Bytes server_conn, Text server_frames;
    exoclaw: Bytes client_conn, Text client_frames, Bytes pair, Bytes server_conn,
        Text server_frames, Bytes session_key;
    json: Text reader, Bytes writer;
    smarthole: Bytes client_conn, Text client_frames, Text direct, Bytes hub, Bytes server_conn,
        Text server_frames, Text validate;
    snek: Bytes client_conn, Text client_frames, Text image_urls, Text sanitize, Bytes server_conn,
        Text server_frames, Bytes toolloop;
};

/// Does what the target of this name does.
///
/// # Panics
/// If there is none of that name, or a rule is broken.
pub fn run(target: &str, input: &[u8]) {
    match TARGETS.iter().find(|(name, _)| *name == target) {
        Some((_, body)) => body.run(input),
        None => panic!("no target is called {target}"),
    }
}
