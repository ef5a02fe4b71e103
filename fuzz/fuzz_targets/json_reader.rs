//! Our JSON reader and `serde_json` read the same.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| bodies::json::reader(text));
