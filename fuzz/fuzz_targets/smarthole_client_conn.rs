//! A list of operations drives the SmartHole client machine.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| bodies::smarthole::client_conn(input));
