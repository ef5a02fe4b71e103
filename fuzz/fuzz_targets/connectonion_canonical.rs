//! A text gets its canonical forms.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| connectonion_proto::fuzzing::canonical(input));
