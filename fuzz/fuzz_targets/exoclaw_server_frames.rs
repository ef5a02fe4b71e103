//! A text is decoded as a frame of an Exoclaw server.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| bodies::exoclaw::server_frames(text));
