//! [`FetchConfig`].

use std::net::IpAddr;
use std::time::Duration;

use rpc_core::net::tls::TlsConfig;

use super::address::is_public;
use crate::limits::{MEDIA_HUNT_FETCH_TIMEOUT, MEDIA_HUNT_HEAD_TIMEOUT};

rpc_core::config! {
    /// The limits and permissions of an [`ImageFetcher`](super::ImageFetcher).
    #[derive(Clone, Debug)]
    pub struct FetchConfig {
        /// Whether to send a HEAD request first, to reject an image that is too large. The rest of
        /// its response is ignored. Default yes.
        pub head: bool = true,
        /// How long the HEAD request may take, redirects included. Default 5 s.
        pub head_timeout: Duration = MEDIA_HUNT_HEAD_TIMEOUT,
        /// How long fetching may take as a whole, redirects included. Default 30 s.
        pub timeout: Duration = MEDIA_HUNT_FETCH_TIMEOUT,
        /// Most bytes of an image, counted as they arrive. Default 10 MiB.
        pub max_bytes: usize = 10 * 1024 * 1024,
        /// Whether to contact hosts that are not on the public internet. Default no: strangers
        /// choose the addresses, and could reach into your network.
        pub allow_private: bool = false,
        /// Addresses to contact although they are not public, such as your own image server.
        /// Default none.
        pub allowed: Vec<IpAddr> = Vec::new(),
        /// The trusted servers. Default: those that the operating system trusts.
        pub tls: Option<TlsConfig> = None,
    }
}

impl FetchConfig {
    /// Returns whether the fetcher may connect to this address.
    pub(super) fn allows(&self, address: IpAddr) -> bool {
        self.allow_private || is_public(address) || self.allowed.contains(&address)
    }
}
