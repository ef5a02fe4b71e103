//! A text is decoded as a frame of a ConnectOnion client.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| bodies::run("connectonion_client_frames", input));
