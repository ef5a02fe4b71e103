//! A list of operations drives the Acolyte server machine.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| bodies::acolyte::server_conn(input));
