//! A list of operations drives the SmartHole hub.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| bodies::smarthole::hub(input));
