//! An event stream in any chunking gives the same events, within limits.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| bodies::sse::sse(input));
