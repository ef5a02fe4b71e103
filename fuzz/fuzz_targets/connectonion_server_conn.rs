//! A list of operations drives the ConnectOnion server machine.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| bodies::connectonion::server_conn(input));
