//! Frames that a Snek server sends: decoding, encoding, decoding again.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| bodies::snek::server_frames(text));
