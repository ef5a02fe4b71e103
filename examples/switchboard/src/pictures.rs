//! [`Pictures`]: fetching the images that a message names.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::{StreamExt as _, stream};
use snek_proto::limits::MAX_CONCURRENT_REQUESTS;
use snek_proto::llm::image::{Image, extract_urls};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

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

/// The images of one server on this machine, over plain HTTP, which needs no HTTP
/// library. Use feature `fetch` for anything else.
#[derive(Clone, Copy, Debug)]
pub struct FromHere(SocketAddr);

impl FromHere {
    /// Creates a source for the server at this address.
    ///
    /// # Errors
    /// The reason why the address is invalid.
    pub fn new(address: &str) -> Result<Self, String> {
        let address: SocketAddr = address
            .parse()
            .map_err(|_| format!("{address} is no address with a port"))?;
        let here = IpAddr::is_loopback(&address.ip());
        here.then_some(Self(address))
            .ok_or_else(|| format!("{address} is not on this machine"))
    }
}

#[async_trait]
impl Pictures for FromHere {
    async fn fetch(&self, url: &str) -> Result<Image, String> {
        const MAX: u64 = 1024 * 1024;
        let rest = url.strip_prefix("http://").unwrap_or_default();
        let path = match rest.split_once('/') {
            Some((host, path)) if host == self.0.to_string() => path,
            _ => return Err(format!("only http://{}/ is asked for images", self.0)),
        };
        let get = async {
            let mut socket = TcpStream::connect(self.0).await?;
            let request = format!(
                "GET /{path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n",
                self.0
            );
            socket.write_all(request.as_bytes()).await?;
            let mut answer = Vec::new();
            socket.take(MAX).read_to_end(&mut answer).await?;
            Ok::<_, std::io::Error>(answer)
        };
        let answer = match tokio::time::timeout(Duration::from_secs(5), get).await {
            Ok(answer) => answer.map_err(|error| error.to_string())?,
            Err(_) => return Err("no answer in time".to_owned()),
        };
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n");
        let end = end.ok_or("this is no answer of a web server")?;
        if !answer.starts_with(b"HTTP/1.1 200 ") {
            return Err("the server has no such image".to_owned());
        }
        let body = answer.get(end + 4..).unwrap_or_default();
        Ok(Image::new(url, body.to_vec()))
    }
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
    async fn each_image_is_fetched_once_and_failures_are_left_out() {
        let text = "http://h/a.png http://h/bad.png http://h/b.gif http://h/a.png";
        let images = of_text(&Fake, text).await;
        let urls: Vec<_> = images.iter().map(|image| &*image.url).collect();
        assert_eq!(urls, ["http://h/a.png", "http://h/b.gif"]);
        let many: String = (0..50).map(|n| format!("http://h/{n}.png ")).collect();
        assert_eq!(of_text(&Fake, &many).await.len(), MAX_IMAGES);
    }

    #[tokio::test]
    async fn images_from_here_come_from_one_server_only() {
        assert!(FromHere::new("192.168.1.1:80").is_err());
        assert!(FromHere::new("localhost").is_err());
        let here = FromHere::new("127.0.0.1:9").unwrap();
        for url in [
            "http://h/a.png",
            "https://127.0.0.1:9/a.png",
            "http://127.0.0.1:90/a.png",
        ] {
            let error = here.fetch(url).await.unwrap_err();
            assert!(error.contains("only http://127.0.0.1:9/"), "{error}");
        }
    }
}
