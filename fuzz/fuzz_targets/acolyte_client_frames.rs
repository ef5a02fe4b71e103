//! Any text as a frame of an Acolyte client.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| bodies::run("acolyte_client_frames", input));
