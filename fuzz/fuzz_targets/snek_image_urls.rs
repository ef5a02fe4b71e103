//! Texts with addresses of images: the specification's pattern, and messages to a model.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| bodies::snek::image_urls(text));
