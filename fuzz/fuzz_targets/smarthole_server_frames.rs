//! A text is decoded as a frame of a SmartHole server.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| smarthole_proto::fuzzing::server_frames(input));
