//! A list of operations drives the Snek server machine.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| bodies::snek::server_conn(input));
