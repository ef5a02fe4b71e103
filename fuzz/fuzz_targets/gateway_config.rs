//! A text is read as the configuration of the gateway.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| bodies::run("gateway_config", input));
