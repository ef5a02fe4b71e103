//! A text is validated as the payload of a registration.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| bodies::run("smarthole_validate", input));
