//! Any bytes as the body or the stream of an Acolyte chat over HTTP.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| bodies::acolyte::sse(input));
