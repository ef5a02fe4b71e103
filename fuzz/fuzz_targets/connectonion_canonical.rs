//! A text gets its canonical forms.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| bodies::connectonion::canonical(text));
