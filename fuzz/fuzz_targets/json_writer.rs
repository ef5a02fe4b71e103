//! Any value of serde's data model is written as `serde_json` writes it, or refused as it refuses it.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| bodies::json::writer(input));
