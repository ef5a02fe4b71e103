//! Frames that a Snek client sends: decoding, encoding, decoding again.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| bodies::snek::client_frames(text));
