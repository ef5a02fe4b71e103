//! [`FetchError`].

use std::net::IpAddr;
use std::time::Duration;

use super::resolve::LookupError;

/// The reason why an image was not fetched. No variant contains the requested URL, which may hold
/// secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The address, or one that it redirected to, is not a URL of `http` or `https`. A retry does not help.
    #[error("not a URL of http or https: {why}")]
    BadUrl {
        /// The reason.
        why: String,
    },
    /// The host, or one that it redirected to, is neither on the public internet nor allowed. It
    /// was not contacted. A retry does not help.
    #[error("{address} is not a public address")]
    PrivateAddress {
        /// The host's address; the first one, if it has several.
        address: IpAddr,
    },
    /// The server redirected too often. A retry does not help.
    #[error("more than {max} redirects")]
    TooManyRedirects {
        /// The limit.
        max: usize,
    },
    /// The server answered with a status other than 200. A retry may help if it is 429 or 5xx.
    #[error("the server answered {code}")]
    Status {
        /// The HTTP status.
        code: u16,
    },
    /// The image has more bytes than the limit. A retry does not help.
    #[error("the image has more than {max} bytes")]
    TooLarge {
        /// The limit.
        max: usize,
    },
    /// The image did not arrive in time. A retry may help.
    #[error("the image did not arrive within {after:?}")]
    TimedOut {
        /// The deadline.
        after: Duration,
    },
    /// The lookup of the name, the connection or the server's HTTP failed. A retry may help.
    #[error("fetching failed: {message}")]
    Transport {
        /// The error of the HTTP client.
        message: String,
    },
    /// The HTTP client cannot be set up, for example because TLS has no roots.
    #[error("the HTTP client cannot be set up: {message}")]
    Setup {
        /// The reason.
        message: String,
    },
}

impl FetchError {
    /// Returns whether a later fetch of the same address may succeed. Fetching twice is harmless.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::TimedOut { .. } | Self::Transport { .. } => true,
            Self::Status { code } => matches!(code, 408 | 429 | 500..=599),
            Self::BadUrl { .. }
            | Self::PrivateAddress { .. }
            | Self::TooManyRedirects { .. }
            | Self::TooLarge { .. }
            | Self::Setup { .. } => false,
        }
    }

    /// Returns whether the GET request is pointless after this error of the HEAD request.
    pub(super) const fn is_final(&self) -> bool {
        matches!(self, Self::PrivateAddress { .. } | Self::TooLarge { .. })
    }

    pub(super) fn of(error: reqwest::Error) -> Self {
        let error = error.without_url();
        let mut message = error.to_string();
        let mut source = std::error::Error::source(&error);
        while let Some(inner) = source {
            if let Some(LookupError::Private(address)) = inner.downcast_ref() {
                return Self::PrivateAddress { address: *address };
            }
            message = format!("{message}: {inner}");
            source = inner.source();
        }
        Self::Transport { message }
    }
}
