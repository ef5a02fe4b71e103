//! Texts become keys of sessions.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| bodies::exoclaw::session_key(input));
