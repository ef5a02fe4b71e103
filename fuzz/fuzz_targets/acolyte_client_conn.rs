//! A list of operations drives the Acolyte client machine.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| bodies::acolyte::client_conn(input));
