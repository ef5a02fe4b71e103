//! Texts with addresses of images: the specification's pattern, and messages to a model.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| bodies::run("snek_image_urls", input));
