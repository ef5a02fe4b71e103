//! A list of operations drives the Exoclaw client machine.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| bodies::exoclaw::client_conn(input));
