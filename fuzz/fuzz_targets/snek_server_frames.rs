//! Frames that a Snek server sends: decoding, encoding, decoding again.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| bodies::run("snek_server_frames", input));
