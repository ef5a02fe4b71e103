//! A list of operations drives the Snek client machine.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| snek_proto::fuzzing::client_conn(input));
