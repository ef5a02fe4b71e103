//! Texts whose names are broken up and whose drive links are completed.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| bodies::snek::sanitize(text));
