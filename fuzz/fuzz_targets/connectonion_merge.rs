//! Of two copies of a session the newer one is taken.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| bodies::run("connectonion_merge", input));
