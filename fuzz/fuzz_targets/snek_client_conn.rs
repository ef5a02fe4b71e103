//! A list of operations drives the Snek client machine.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| bodies::snek::client_conn(input));
