//! Texts become keys of sessions.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| exoclaw_proto::fuzzing::session_key(input));
