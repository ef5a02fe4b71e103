//! [`FetchConfig`].

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use rpc_core::net::tls::TlsConfig;

use super::address::is_public;
use super::resolve::{Resolver, SystemResolver};
use crate::limits::{MAX_CONCURRENT_REQUESTS, MEDIA_HUNT_FETCH_TIMEOUT, MEDIA_HUNT_HEAD_TIMEOUT};

rpc_core::config! {
    /// What an [`ImageFetcher`](super::ImageFetcher) may do.
    #[derive(Clone)]
    pub struct FetchConfig {
        /// Whether a HEAD request goes first, so that an image that is too large is not begun. What
        /// else it says is not believed. Default yes.
        pub head: bool = true => with_head,
        /// How long the HEAD request may take, redirects included. Default 5 s.
        pub head_timeout: Duration = MEDIA_HUNT_HEAD_TIMEOUT => with_head_timeout,
        /// How long fetching may take as a whole, redirects included. Default 30 s.
        pub timeout: Duration = MEDIA_HUNT_FETCH_TIMEOUT => with_timeout,
        /// Most bytes of an image, counted as they come. Default 10 MiB.
        pub max_bytes: usize = 10 * 1024 * 1024 => with_max_bytes,
        /// Most redirects that are followed. Default 5.
        pub max_redirects: usize = 5 => with_max_redirects,
        /// Most requests at a time of one fetcher and its clones. Default 10; 0 counts as 1.
        pub max_concurrent: usize = MAX_CONCURRENT_REQUESTS => with_max_concurrent,
        /// Most images that are fetched for one text. Default 10.
        pub max_images: usize = 10 => with_max_images,
        /// Whether hosts that are not [public](super::is_public) may be asked. Default no: addresses
        /// come from strangers, and would reach into your network.
        pub allow_private: bool = false => with_allow_private,
        /// Addresses that may be asked though they are not public: your own image server's. Default
        /// none.
        pub allowed: Vec<IpAddr> = Vec::new(),
        /// Who looks names up. Default the operating system.
        pub resolver: Arc<dyn Resolver> = Arc::new(SystemResolver),
        /// Which servers are trusted. Default those that the operating system trusts.
        pub tls: Option<TlsConfig> = None => with_tls(TlsConfig),
    }
}

impl FetchConfig {
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
