//! Texts whose names are broken up and whose drive links are completed.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| bodies::run("snek_sanitize", input));
