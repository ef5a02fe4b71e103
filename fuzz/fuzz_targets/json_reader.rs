//! Our JSON reader and `serde_json` read the same.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| rpc_core::fuzzing::json_reader(input));
