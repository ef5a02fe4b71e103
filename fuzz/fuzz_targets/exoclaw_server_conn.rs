//! A list of operations drives the Exoclaw server machine.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| bodies::exoclaw::server_conn(input));
