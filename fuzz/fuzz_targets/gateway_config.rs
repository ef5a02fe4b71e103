//! A text is read as the configuration of the gateway.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| bodies::gateway::config(text));
