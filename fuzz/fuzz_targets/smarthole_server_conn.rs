//! A list of operations drives the SmartHole server machine.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| bodies::smarthole::server_conn(input));
