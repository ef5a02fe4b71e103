//! [`Pictures`]: fetching the images that a message names.

use std::fmt;

use async_trait::async_trait;
use futures_util::{StreamExt as _, stream};
use snek_proto::limits::MAX_CONCURRENT_REQUESTS;
use snek_proto::llm::image::{Image, extract_urls};

/// Most images to fetch for one message; the others stay addresses.
const MAX_IMAGES: usize = 8;

/// A source of images.
#[async_trait]
pub trait Pictures: Send + Sync + fmt::Debug {
    /// Fetches the image at this address.
    ///
    /// # Errors
    /// The reason of the failure, for a log.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    async fn fetch(&self, url: &str) -> Result<Image, String>;
}

/// Fetches the images that a text names, each once, in the order of the text. Logs and skips those
/// that cannot be fetched.
///
/// # Cancel safety
/// Cancel-safe.
pub async fn of_text(pictures: &dyn Pictures, text: &str) -> Vec<Image> {
    let mut urls: Vec<String> = Vec::new();
    for url in extract_urls(text) {
        if urls.len() < MAX_IMAGES && urls.iter().all(|known| known != url) {
            urls.push(url.to_owned());
        }
    }
    stream::iter(urls)
        .map(|url| async move {
            let image = pictures.fetch(&url).await;
            let image = image.inspect_err(|error| tracing::warn!(%url, %error, "not fetched"));
            image.ok()
        })
        .buffered(MAX_CONCURRENT_REQUESTS)
        .filter_map(|image| async move { image })
        .collect()
        .await
}

#[cfg(feature = "fetch")]
#[async_trait]
impl Pictures for snek_proto::llm::image::fetch::ImageFetcher {
    async fn fetch(&self, url: &str) -> Result<Image, String> {
        let fetched = Self::fetch(self, url).await;
        fetched.map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Fake;

    #[async_trait]
    impl Pictures for Fake {
        async fn fetch(&self, url: &str) -> Result<Image, String> {
            match url.contains("bad") {
                true => Err("bad".to_owned()),
                false => Ok(Image::new(url, url.as_bytes().to_vec())),
            }
        }
    }

    #[tokio::test]
    async fn each_image_is_fetched_once_and_failures_are_omitted() {
        let text = "http://h/a.png http://h/bad.png http://h/b.gif http://h/a.png";
        let images = of_text(&Fake, text).await;
        let urls: Vec<_> = images.iter().map(|image| &*image.url).collect();
        assert_eq!(urls, ["http://h/a.png", "http://h/b.gif"]);
        let many: String = (0..50).map(|n| format!("http://h/{n}.png ")).collect();
        assert_eq!(of_text(&Fake, &many).await.len(), MAX_IMAGES);
    }
}
