//! Rules of the texts of a bot: the addresses of images, names of bots, links to the drive.

use std::sync::LazyLock;

use regex::Regex;
use snek_proto::llm::chat::Content;
use snek_proto::llm::image::{Image, ImageFormat, detect_mime, extract_urls};
use snek_proto::sanitize::{DEFAULT_DRIVE_BASE, rewrite_drive_urls, sanitize_names};

/// The specification's pattern, with what Python counts as white space.
const PATTERN: &str = concat!(
    r"https?://[^\s\x1c-\x1f]+\.(?:png|jpg|jpeg|gif|bmp|webp|svg)",
    r"(?:\?[^\s\x1c-\x1f]*)?"
);

static COMPILED: LazyLock<Regex> = LazyLock::new(|| Regex::new(PATTERN).expect("a pattern"));

/// Addresses are what the pattern finds, and messages hold every image.
pub fn image_urls(text: &str) {
    let found = extract_urls(text);
    let expected: Vec<_> = COMPILED
        .find_iter(text)
        .map(|found| found.as_str().trim_end_matches(['.', '\'', '"']))
        .collect();
    assert_eq!(found, expected, "addresses differ from the pattern's");
    assert!(
        detect_mime(text, text.as_bytes()).starts_with("image/"),
        "an image has an image's type"
    );

    // Every other address could be fetched.
    let fetched: Vec<_> = found.iter().step_by(2).collect();
    let images: Vec<_> = fetched
        .iter()
        .map(|url| Image::new(**url, b"GIF89a".as_slice()))
        .collect();
    for format in [ImageFormat::OpenAi, ImageFormat::DeepSeek] {
        let message = format.message(text, &images);
        match (&message.content, images.len()) {
            (Content::Text(same), 0) => assert_eq!(same, text, "a text without images changed"),
            (Content::Blocks(blocks), count) if format == ImageFormat::OpenAi => {
                assert_eq!(blocks.len(), count + 1, "one text and one block per image");
            }
            (Content::Blocks(blocks), _) => assert_eq!(blocks.len(), 1, "one text"),
            other => panic!("{other:?}"),
        }
    }
}

/// Breaking names up twice is like once and adds hyphens only; so are drive links.
pub fn sanitize(text: &str) {
    let once = sanitize_names(text);
    assert_eq!(sanitize_names(&once), once, "sanitising again changes more");
    assert_eq!(
        once.replace('-', ""),
        text.replace('-', ""),
        "more than hyphens was added"
    );
    let once = rewrite_drive_urls(text, DEFAULT_DRIVE_BASE);
    assert_eq!(
        rewrite_drive_urls(&once, DEFAULT_DRIVE_BASE),
        once,
        "rewriting again changes more"
    );
}

#[cfg(test)]
mod tests {
    use super::{image_urls, sanitize};

    proptest::proptest! {
        #[test]
        fn texts_keep_their_rules(
            text in r"(snek|Ira|https?://|http://a|\(/drive\.bin|-|_|a|é|x|'|\.|\.png|\.jpe?g|\.webp|\?|/|[\s:/.]|\x1c|\u{a0}|.){0,24}",
        ) {
            image_urls(&text);
            sanitize(&text);
        }
    }
}
