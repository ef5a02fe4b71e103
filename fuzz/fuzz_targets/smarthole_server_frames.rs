//! A text is decoded as a frame of a SmartHole server.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| bodies::smarthole::server_frames(text));
