//! A text is split by direct routing, and its client found.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| bodies::smarthole::direct(text));
