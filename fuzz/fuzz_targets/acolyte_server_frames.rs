//! Any text as a frame of an Acolyte server.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| bodies::run("acolyte_server_frames", input));
