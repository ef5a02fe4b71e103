//! Images in messages (Snek specification, section 11): finding their addresses, detecting their
//! types, and passing them to a language model.
//!
//! ```
//! use snek_proto::llm::image::{self, Image, ImageFormat};
//!
//! let text = "what is this? https://example.com/cat.png";
//! let urls = image::extract_urls(text);
//! let images: Vec<_> = urls
//!     .into_iter()
//!     .map(|url| Image::new(url, b"fetched by you".as_slice()))
//!     .collect();
//! let message = ImageFormat::OpenAi.message(text, &images);
//! assert_eq!(message.content.text(), "what is this?");
//! ```

#[cfg(feature = "fetch")]
pub mod fetch;
mod format;
mod mime;
mod urls;

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

pub use format::ImageFormat;
pub use mime::detect_mime;
pub use urls::extract_urls;

/// A fetched image. Clones share the contents.
#[derive(Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Image {
    /// Its address, as it is in the text.
    pub url: Arc<str>,
    /// Its MIME type.
    pub mime: &'static str,
    /// Its contents.
    pub bytes: Bytes,
}

impl Image {
    /// Creates an image, with the type from [`detect_mime`].
    pub fn new(url: impl Into<Arc<str>>, bytes: impl Into<Bytes>) -> Self {
        let (url, bytes) = (url.into(), bytes.into());
        let mime = detect_mime(&url, &bytes);
        Self { url, mime, bytes }
    }

    /// Writes the image as a `data:` URL.
    fn push_data_url(&self, out: &mut String) {
        out.reserve("data:;base64,".len() + self.mime.len() + self.bytes.len().div_ceil(3) * 4);
        out.push_str("data:");
        out.push_str(self.mime);
        out.push_str(";base64,");
        STANDARD.encode_string(&self.bytes, out);
    }
}

rpc_core::debug_fields!([] Image, this => {
    url: this.url,
    mime: this.mime,
    bytes: this.bytes.len(),
});
