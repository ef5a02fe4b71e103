//! [`ImageFetcher`]: downloads images safely (feature `fetch`).
//!
//! The addresses come from chat messages, so anyone can choose them. A fetcher therefore contacts
//! public hosts only, checks every redirect and every address that it connects to,
//! bounds size and time, sends no cookies or credentials, and ignores proxies from the environment.

mod address;
mod config;
mod error;
mod resolve;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use futures_util::{StreamExt as _, stream};
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_LENGTH, LOCATION};
use reqwest::{Client, Method, Response, Url, redirect};
use rpc_core::net::http::compressed;
use rpc_core::net::tls::TlsConfig;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::{Image, extract_urls};
use crate::limits::MAX_CONCURRENT_REQUESTS;
use resolve::{Filter, SystemResolver};

pub use config::FetchConfig;
pub use error::FetchError;
pub use resolve::Resolver;

/// The most bytes allocated for an image before its first byte arrives, whatever the server
/// announces.
const FIRST_ROOM: usize = 64 * 1024;
/// Most redirects to follow.
const MAX_REDIRECTS: usize = 5;
/// Most images to fetch for one text.
const MAX_IMAGES: usize = 10;

/// A downloader of images. Cheap to clone; clones share their connections and the limit on
/// requests.
///
/// ```
/// use snek_proto::llm::image::{ImageFormat, fetch::{FetchConfig, FetchError, ImageFetcher}};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), FetchError> {
/// # let text = "nothing to fetch";
/// let fetcher = ImageFetcher::new(FetchConfig::default())?; // once
/// let images = fetcher.prepare(text).await;
/// let message = ImageFormat::OpenAi.message(text, &images); // what was not fetched stays in the text
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ImageFetcher {
    client: Client,
    config: Arc<FetchConfig>,
    requests: Arc<Semaphore>,
}

impl ImageFetcher {
    /// Creates a fetcher, without connecting to anything yet. The operating system resolves names.
    ///
    /// # Errors
    /// [`FetchError::Setup`] if TLS cannot be set up on this machine; trying again does not help.
    pub fn new(config: FetchConfig) -> Result<Self, FetchError> {
        Self::with_resolver(config, SystemResolver)
    }

    /// Creates a fetcher with another resolver of names.
    ///
    /// # Errors
    /// [`FetchError::Setup`] if TLS cannot be set up on this machine; trying again does not help.
    pub fn with_resolver(config: FetchConfig, resolver: impl Resolver) -> Result<Self, FetchError> {
        let setup = |message| FetchError::Setup { message };
        let tls = match &config.tls {
            Some(tls) => tls.clone(),
            None => TlsConfig::platform().map_err(|error| setup(error.to_string()))?,
        };
        let config = Arc::new(config);
        let client = Client::builder()
            .user_agent(concat!("snek-proto/", env!("CARGO_PKG_VERSION")))
            // Every hop is checked here before it is made.
            .redirect(redirect::Policy::none())
            .no_proxy()
            .referer(false)
            .dns_resolver(Filter {
                config: Arc::clone(&config),
                resolver: Arc::new(resolver),
            })
            .tls_backend_preconfigured((**tls.as_rustls()).clone())
            .build()
            .map_err(|error| setup(error.to_string()))?;
        Ok(Self {
            client,
            config,
            requests: Arc::new(Semaphore::new(MAX_CONCURRENT_REQUESTS)),
        })
    }

    /// Fetches one image. Its address and contents determine its type; the server's `Content-Type`
    /// is ignored. Waits while too many requests are in progress; the time limits exclude that
    /// wait.
    ///
    /// # Errors
    /// [`FetchError`]; [`is_retryable`](FetchError::is_retryable) says whether a retry may help.
    ///
    /// # Cancel safety
    /// Dropping the future ends the request.
    pub async fn fetch(&self, url: &str) -> Result<Image, FetchError> {
        let start = Url::parse(url).map_err(|error| FetchError::BadUrl {
            why: error.to_string(),
        })?;
        self.check(&start)?;
        // It is never closed.
        let _permit = self.requests.acquire().await;
        if self.config.head {
            self.look(start.clone()).await?;
        }
        let after = self.config.timeout;
        let read = timeout(after, self.read(start)).await;
        let bytes = read.map_err(|_| FetchError::TimedOut { after })??;
        Ok(Image::new(url, bytes))
    }

    /// Concurrently fetches the images that a text names, and returns them in the order of the
    /// text. An address that occurs twice is fetched once and returned twice. Images that cannot be
    /// fetched and those beyond the tenth are left out; a message
    /// made of the text and the images keeps their addresses.
    ///
    /// # Cancel safety
    /// Dropping the future ends all requests.
    pub async fn prepare(&self, text: &str) -> Vec<Image> {
        let urls = extract_urls(text);
        let mut places: HashMap<&str, usize> = HashMap::new();
        let mut distinct = Vec::new();
        for url in &urls {
            if places.len() < MAX_IMAGES && !places.contains_key(url) {
                places.insert(url, distinct.len());
                distinct.push(*url);
            }
        }
        // Futures do nothing until they are polled, so all of them may be made at once.
        let fetches = distinct.into_iter().map(|url| self.try_fetch(url));
        let fetches: Vec<_> = fetches.collect();
        let width = MAX_CONCURRENT_REQUESTS;
        let images: Vec<_> = stream::iter(fetches).buffered(width).collect().await;
        let found = urls.into_iter();
        let found = found.filter_map(|url| images.get(*places.get(url)?)?.clone());
        found.take(MAX_IMAGES).collect()
    }

    async fn try_fetch(&self, url: &str) -> Option<Image> {
        self.fetch(url)
            .await
            .inspect_err(|error| tracing::debug!(%error, "an image was not fetched"))
            .ok()
    }

    /// Asks for the size. Fails only if the GET request would be pointless.
    async fn look(&self, start: Url) -> Result<(), FetchError> {
        let look = async {
            let response = self.follow(Method::HEAD, start).await?;
            if response.status().is_success() {
                self.check_announced(&response)?;
            }
            Ok::<_, FetchError>(())
        };
        match timeout(self.config.head_timeout, look).await {
            Ok(Err(error)) if error.is_final() => Err(error),
            Ok(Err(error)) => {
                tracing::debug!(%error, "a HEAD request failed");
                Ok(())
            }
            Ok(Ok(())) | Err(_) => Ok(()),
        }
    }

    async fn read(&self, start: Url) -> Result<Vec<u8>, FetchError> {
        let mut response = self.follow(Method::GET, start).await?;
        let code = response.status().as_u16();
        if code != 200 {
            return Err(FetchError::Status { code });
        }
        let max = self.config.max_bytes;
        let announced = self.check_announced(&response)?;
        let mut bytes = Vec::with_capacity(announced.unwrap_or(0).min(FIRST_ROOM));
        while let Some(chunk) = response.chunk().await.map_err(FetchError::of)? {
            if chunk.len() > max - bytes.len() {
                return Err(FetchError::TooLarge { max });
            }
            bytes.extend_from_slice(&chunk);
        }
        match compressed(response.headers(), &bytes) {
            Some(message) => Err(FetchError::Transport { message }),
            None => Ok(bytes),
        }
    }

    /// Sends a request and follows redirects.
    async fn follow(&self, method: Method, start: Url) -> Result<Response, FetchError> {
        let mut url = start;
        for _ in 0..=MAX_REDIRECTS {
            self.check(&url)?;
            let request = self.client.request(method.clone(), url.clone());
            let request = request.header(ACCEPT, "image/*");
            let request = request.header(ACCEPT_ENCODING, "identity");
            let response = request.send().await.map_err(FetchError::of)?;
            let Some(next) = target(&response, &url)? else {
                return Ok(response);
            };
            url = next;
        }
        Err(FetchError::TooManyRedirects { max: MAX_REDIRECTS })
    }

    /// Checks whether this URL may be requested. Names are checked when they are resolved; a
    /// literal address is never resolved.
    fn check(&self, url: &Url) -> Result<(), FetchError> {
        if !matches!(url.scheme(), "http" | "https") {
            let why = format!("its scheme is {}", url.scheme());
            return Err(FetchError::BadUrl { why });
        }
        let host = url.host_str().unwrap_or_default();
        let literal = host.trim_start_matches('[').trim_end_matches(']');
        match literal.parse::<IpAddr>() {
            Ok(address) if !self.config.allows(address) => {
                Err(FetchError::PrivateAddress { address })
            }
            _ => Ok(()),
        }
    }

    fn check_announced(&self, response: &Response) -> Result<Option<usize>, FetchError> {
        let max = self.config.max_bytes;
        let header = response.headers().get(CONTENT_LENGTH);
        let Some(length) = header.and_then(|value| value.to_str().ok()?.parse::<u64>().ok()) else {
            return Ok(None);
        };
        match usize::try_from(length) {
            Ok(length) if length <= max => Ok(Some(length)),
            _ => Err(FetchError::TooLarge { max }),
        }
    }
}

/// Returns the target of a redirect.
fn target(response: &Response, from: &Url) -> Result<Option<Url>, FetchError> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let Some(location) = response.headers().get(LOCATION) else {
        return Ok(None);
    };
    let bad = |why: String| FetchError::BadUrl { why };
    let location = std::str::from_utf8(location.as_bytes()).map_err(|why| bad(why.to_string()))?;
    let url = from.join(location).map_err(|why| bad(why.to_string()))?;
    Ok(Some(url))
}
