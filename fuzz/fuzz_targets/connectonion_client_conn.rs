//! A list of operations drives the ConnectOnion client machine.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| bodies::connectonion::client_conn(input));
