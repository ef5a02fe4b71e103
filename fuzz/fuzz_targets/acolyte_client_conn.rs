//! A list of operations drives the Acolyte client machine.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| bodies::run("acolyte_client_conn", input));
