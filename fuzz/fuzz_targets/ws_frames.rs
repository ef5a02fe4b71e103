//! Bytes of a WebSocket give the same messages as with tungstenite, which reads what we write.
#![no_main]

#[path = "../bodies/ws_frames.rs"]
mod fuzzing;

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzzing::ws_frames(input));
