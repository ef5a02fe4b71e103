//! A list of operations drives the queue of an Acolyte connection.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| bodies::acolyte::queue(input));
