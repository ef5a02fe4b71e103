//! Our JSON reader and `serde_json` read the same.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| bodies::run("json_reader", input));
