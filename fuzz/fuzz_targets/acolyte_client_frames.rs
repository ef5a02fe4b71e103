//! Any text as a frame of an Acolyte client.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| bodies::acolyte::client_frames(text));
