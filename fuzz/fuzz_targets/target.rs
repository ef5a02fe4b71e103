//! Every fuzz target: its name says which body.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| bodies::run(env!("CARGO_BIN_NAME"), input));
