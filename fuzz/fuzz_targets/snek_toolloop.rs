//! Answers of a model and results of tools drive the tool loop.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| bodies::snek::toolloop(input));
