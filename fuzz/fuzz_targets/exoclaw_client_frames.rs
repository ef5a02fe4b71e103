//! A text is decoded as a frame of an Exoclaw client.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| bodies::exoclaw::client_frames(text));
