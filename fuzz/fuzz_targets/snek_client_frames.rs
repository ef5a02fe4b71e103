//! Frames that a Snek client sends: decoding, encoding, decoding again.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| snek_proto::fuzzing::client_frames(input));
