//! Any text as a frame of an Acolyte server.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| bodies::acolyte::server_frames(text));
