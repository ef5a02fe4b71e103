//! A text gets its canonical forms.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| bodies::run("connectonion_canonical", input));
