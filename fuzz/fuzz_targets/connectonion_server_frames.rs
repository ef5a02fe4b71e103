//! A text is decoded as a frame of a ConnectOnion host.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| bodies::connectonion::server_frames(text));
