//! The file of a storage is read, however it was cut.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| bodies::connectonion::jsonl(input));
