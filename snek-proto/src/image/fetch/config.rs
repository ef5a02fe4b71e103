//! [`FetchConfig`].

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use rpc_core::net::tls::TlsConfig;

use super::address::is_public;
use super::resolve::{Resolver, SystemResolver};
use crate::limits::{MAX_CONCURRENT_REQUESTS, MEDIA_HUNT_FETCH_TIMEOUT, MEDIA_HUNT_HEAD_TIMEOUT};

/// What an [`ImageFetcher`](super::ImageFetcher) may do.
#[derive(Clone)]
#[non_exhaustive]
pub struct FetchConfig {
    /// Whether a HEAD request goes first, so that an image that is too large is not begun. What
    /// else it says is not believed. Default yes.
    pub head: bool,
    /// How long the HEAD request may take, redirects included. Default 5 s.
    pub head_timeout: Duration,
    /// How long fetching may take as a whole, redirects included. Default 30 s.
    pub timeout: Duration,
    /// Most bytes of an image, counted as they come. Default 10 MiB.
    pub max_bytes: usize,
    /// Most redirects that are followed. Default 5.
    pub max_redirects: usize,
    /// Most requests at a time of one fetcher and its clones. Default 10.
    pub max_concurrent: usize,
    /// Most images that are fetched for one text. Default 10.
    pub max_images: usize,
    /// Whether hosts that are not [public](super::is_public) may be asked. Default no: addresses
    /// come from strangers, and would reach into your network.
    pub allow_private: bool,
    /// Addresses that may be asked though they are not public: your own image server's. Default
    /// none.
    pub allowed: Vec<IpAddr>,
    /// Who looks names up. Default the operating system.
    pub resolver: Arc<dyn Resolver>,
    /// Which servers are trusted. Default those that the operating system trusts.
    pub tls: Option<TlsConfig>,
}

impl Default for FetchConfig {
    fn default() -> Self {
        Self {
            head: true,
            head_timeout: MEDIA_HUNT_HEAD_TIMEOUT,
            timeout: MEDIA_HUNT_FETCH_TIMEOUT,
            max_bytes: 10 * 1024 * 1024,
            max_redirects: 5,
            max_concurrent: MAX_CONCURRENT_REQUESTS,
            max_images: 10,
            allow_private: false,
            allowed: Vec::new(),
            resolver: Arc::new(SystemResolver),
            tls: None,
        }
    }
}

impl FetchConfig {
    /// Sets [`head`](Self::head).
    #[must_use]
    pub const fn with_head(mut self, head: bool) -> Self {
        self.head = head;
        self
    }

    /// Sets [`head_timeout`](Self::head_timeout).
    #[must_use]
    pub const fn with_head_timeout(mut self, timeout: Duration) -> Self {
        self.head_timeout = timeout;
        self
    }

    /// Sets [`timeout`](Self::timeout).
    #[must_use]
    pub const fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets [`max_bytes`](Self::max_bytes).
    #[must_use]
    pub const fn with_max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Sets [`max_redirects`](Self::max_redirects).
    #[must_use]
    pub const fn with_max_redirects(mut self, redirects: usize) -> Self {
        self.max_redirects = redirects;
        self
    }

    /// Sets [`max_concurrent`](Self::max_concurrent); at least 1.
    #[must_use]
    pub const fn with_max_concurrent(mut self, requests: usize) -> Self {
        self.max_concurrent = if requests == 0 { 1 } else { requests };
        self
    }

    /// Sets [`max_images`](Self::max_images).
    #[must_use]
    pub const fn with_max_images(mut self, images: usize) -> Self {
        self.max_images = images;
        self
    }

    /// Sets [`allow_private`](Self::allow_private).
    #[must_use]
    pub const fn with_allow_private(mut self, allow: bool) -> Self {
        self.allow_private = allow;
        self
    }

    /// Adds to [`allowed`](Self::allowed).
    #[must_use]
    pub fn with_allowed(mut self, address: IpAddr) -> Self {
        self.allowed.push(address);
        self
    }

    /// Sets [`resolver`](Self::resolver).
    #[must_use]
    pub fn with_resolver(mut self, resolver: impl Resolver) -> Self {
        self.resolver = Arc::new(resolver);
        self
    }

    /// Sets [`tls`](Self::tls).
    #[must_use]
    pub fn with_tls(mut self, tls: TlsConfig) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Whether a connection to this address may be made.
    #[must_use]
    pub fn allows(&self, address: IpAddr) -> bool {
        self.allow_private || is_public(address) || self.allowed.contains(&address)
    }
}

impl fmt::Debug for FetchConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FetchConfig")
            .field("head", &self.head)
            .field("head_timeout", &self.head_timeout)
            .field("timeout", &self.timeout)
            .field("max_bytes", &self.max_bytes)
            .field("max_redirects", &self.max_redirects)
            .field("max_concurrent", &self.max_concurrent)
            .field("max_images", &self.max_images)
            .field("allow_private", &self.allow_private)
            .field("allowed", &self.allowed)
            .finish_non_exhaustive()
    }
}
