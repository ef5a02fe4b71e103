//! Messages with images to a language model.

use std::collections::HashMap;

use super::Image;
use super::urls::{find_urls, is_space};
use crate::llm::chat::{Block, ChatMessage};

/// The format of images in a message (Snek specification, section 11).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ImageFormat {
    /// A text block first, then one block per image, in order.
    ///
    /// The addresses of the images, and white space at both ends, are removed from the text. The
    /// address of an image that is not there, because it could not be fetched, stays. A text of
    /// nothing but addresses becomes an empty text block.
    #[default]
    OpenAi,
    /// One text block, in which `[image: data:…;base64,…]` replaces every occurrence of an image's
    /// address.
    ///
    /// The address of an image that is not there stays; an image whose address is not in the text
    /// is appended.
    DeepSeek,
}

impl ImageFormat {
    /// Combines a text and its images into a person's message. Without images the content is the
    /// text itself.
    #[must_use]
    pub fn message(self, text: &str, images: &[Image]) -> ChatMessage {
        match self {
            Self::OpenAi => to_openai(text, images),
            Self::DeepSeek => to_deepseek(text, images),
        }
    }
}

fn to_openai(text: &str, images: &[Image]) -> ChatMessage {
    if images.is_empty() {
        return ChatMessage::user(text);
    }
    let mut rest = String::with_capacity(text.len());
    replace(text, images, &mut rest, |_, _| {});
    let mut blocks = Vec::with_capacity(images.len() + 1);
    blocks.push(Block::Text(rest.trim_matches(is_space).to_owned()));
    blocks.extend(images.iter().map(|image| {
        let mut url = String::new();
        image.push_data_url(&mut url);
        Block::ImageUrl(url)
    }));
    ChatMessage::user(blocks)
}

fn to_deepseek(text: &str, images: &[Image]) -> ChatMessage {
    fn push(out: &mut String, image: &Image) {
        out.push_str("[image: ");
        image.push_data_url(out);
        out.push(']');
    }

    if images.is_empty() {
        return ChatMessage::user(text);
    }
    let mut whole = String::with_capacity(text.len());
    let used = replace(text, images, &mut whole, push);
    for image in images {
        if !used.contains_key(&*image.url) {
            if !whole.is_empty() {
                whole.push(' ');
            }
            push(&mut whole, image);
        }
    }
    ChatMessage::user(vec![Block::Text(whole)])
}

/// Copies the text, and calls `put` for each address of an image. Returns the images found, by
/// address.
fn replace<'i>(
    text: &str,
    images: &'i [Image],
    out: &mut String,
    put: impl Fn(&mut String, &Image),
) -> HashMap<&'i str, &'i Image> {
    let mut by_url = HashMap::with_capacity(images.len());
    for image in images {
        by_url.entry(&*image.url).or_insert(image);
    }
    let mut met = HashMap::new();
    let mut copied = 0;
    for range in find_urls(text) {
        let url = text.get(range.clone()).unwrap_or_default();
        if let Some((url, image)) = by_url.get_key_value(url) {
            out.push_str(text.get(copied..range.start).unwrap_or_default());
            put(out, image);
            copied = range.end;
            met.insert(*url, *image);
        }
    }
    out.push_str(text.get(copied..).unwrap_or_default());
    met
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::chat::Content;

    fn image(url: &str) -> Image {
        Image::new(url, b"GIF".as_slice())
    }

    fn blocks(message: ChatMessage) -> Vec<Block> {
        match message.content {
            Content::Blocks(blocks) => blocks,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn fetched_urls_are_removed_from_the_text() {
        let text = " a http://x/1.gif  b http://x/2.gif, ![](http://x/1.gif) ";
        let message = ImageFormat::default().message(text, &[image("http://x/1.gif")]);
        let data = "data:image/gif;base64,R0lG".to_owned();
        let expected = [
            Block::Text("a   b http://x/2.gif, ![]()".into()),
            Block::ImageUrl(data),
        ];
        assert_eq!(blocks(message), expected);
    }

    #[test]
    fn references_replace_the_urls_in_place() {
        let text = " http://x/1.gif http://x/2.gif http://x/1.gif";
        let message = to_deepseek(text, &[image("http://x/1.gif"), image("http://y/3.gif")]);
        let tag = "[image: data:image/gif;base64,R0lG]";
        let expected = format!(" {tag} http://x/2.gif {tag} {tag}");
        assert_eq!(blocks(message), [Block::Text(expected)]);
    }

    #[test]
    fn a_text_without_images_is_unchanged() {
        for format in [ImageFormat::OpenAi, ImageFormat::DeepSeek] {
            let message = format.message(" http://x/1.gif ", &[]);
            assert_eq!(message, ChatMessage::user(" http://x/1.gif "));
        }
    }

    #[test]
    fn a_lone_url_yields_an_empty_text_block() {
        let message = to_openai("http://x/1.gif", &[image("http://x/1.gif")]);
        assert_eq!(blocks(message)[0], Block::Text(String::new()));
    }
}
