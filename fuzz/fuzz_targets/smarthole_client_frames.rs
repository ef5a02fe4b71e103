//! A text is decoded as a frame of a SmartHole client.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| bodies::smarthole::client_frames(text));
