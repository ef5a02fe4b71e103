//! A text is decoded as a frame of a ConnectOnion host.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| bodies::run("connectonion_server_frames", input));
