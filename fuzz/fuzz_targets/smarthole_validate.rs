//! A text is validated as the payload of a registration.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| bodies::smarthole::validate(text));
