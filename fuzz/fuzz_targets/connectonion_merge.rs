//! Of two copies of a session the newer one is taken.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| bodies::connectonion::merge(text));
