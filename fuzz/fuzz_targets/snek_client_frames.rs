//! Frames that a Snek client sends: decoding, encoding, decoding again.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| bodies::run("snek_client_frames", input));
