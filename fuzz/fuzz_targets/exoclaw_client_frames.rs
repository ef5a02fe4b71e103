//! A text is decoded as a frame of an Exoclaw client.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| bodies::run("exoclaw_client_frames", input));
