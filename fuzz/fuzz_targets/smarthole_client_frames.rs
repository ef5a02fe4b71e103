//! A text is decoded as a frame of a SmartHole client.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| bodies::run("smarthole_client_frames", input));
