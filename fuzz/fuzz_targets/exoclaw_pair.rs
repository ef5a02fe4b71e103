//! A list of operations drives both Exoclaw machines on one line.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| bodies::exoclaw::pair(input));
