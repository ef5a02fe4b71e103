//! Vectors of images: addresses in texts, MIME types, messages.

use serde_json::to_value;
use snek_proto::llm::image::{Image, ImageFormat, detect_mime, extract_urls};

use super::run;

fn unhex(hex: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(byte).collect()
}

#[test]
fn image_urls_match_the_vectors() {
    run("images", |vector| {
        let found = extract_urls(vector.str("text"));
        assert_eq!(found, vector.strs("urls"), "{}", vector.name());
    });
}

#[test]
fn mime_types_match_the_vectors() {
    run("mime", |vector| {
        let bytes = unhex(vector.str("hex"));
        let mime = detect_mime(vector.str("file"), &bytes);
        assert_eq!(mime, vector.str("mime"), "{}", vector.name());
    });
}

#[test]
fn image_messages_match_the_vectors() {
    run("formats", |vector| {
        let format = match vector.str("format") {
            "deepseek" => ImageFormat::DeepSeek,
            _ => ImageFormat::OpenAi,
        };
        let images: Vec<_> = vector
            .get("images")
            .as_array()
            .unwrap()
            .iter()
            .map(|image| {
                let text = |member: &str| image[member].as_str().unwrap();
                Image::new(text("url"), unhex(text("hex")))
            })
            .collect();
        let message = format.message(vector.str("text"), &images);
        let message = to_value(message).unwrap();
        assert_eq!(&message, vector.get("message"), "{}", vector.name());
    });
}
