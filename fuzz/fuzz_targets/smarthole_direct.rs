//! A text is split by direct routing, and its client found.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| bodies::run("smarthole_direct", input));
