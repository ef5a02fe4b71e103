//! A text is decoded as a frame of a ConnectOnion client.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| bodies::connectonion::client_frames(text));
