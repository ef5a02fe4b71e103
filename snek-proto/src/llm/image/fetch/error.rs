//! [`FetchError`].

use std::net::IpAddr;
use std::time::Duration;

use super::resolve::LookupError;

/// The reason why an image was not fetched. No variant contains the requested URL, which may hold
/// secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The address, or one that it redirected to, is not a URL. A retry does not help.
    #[error("not a URL: {why}")]
    BadUrl {
        /// The reason.
        why: String,
    },
    /// The address, or one that it redirected to, is neither `http` nor `https`. A retry does not
    /// help.
    #[error("the scheme {scheme} is not supported")]
    Scheme {
        /// The scheme.
        scheme: String,
    },
    /// The host, or one that it redirected to, is neither on the public internet nor allowed. It
    /// was not contacted. A retry does not help.
    #[error("{address} is not a public address")]
    PrivateAddress {
        /// The host's address; the first one, if it has several.
        address: IpAddr,
    },
    /// The host's name has no address. A retry may help.
    #[error("the name was not found: {message}")]
    Lookup {
        /// The error of the lookup.
        message: String,
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
    /// The connection or the server's HTTP failed. A retry may help.
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
            Self::Lookup { .. } | Self::TimedOut { .. } | Self::Transport { .. } => true,
            Self::Status { code } => matches!(code, 408 | 429 | 500..=599),
            Self::BadUrl { .. }
            | Self::Scheme { .. }
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
}

impl From<reqwest::Error> for FetchError {
    fn from(error: reqwest::Error) -> Self {
        let error = error.without_url();
        let mut message = error.to_string();
        let mut source = std::error::Error::source(&error);
        while let Some(inner) = source {
            match inner.downcast_ref::<LookupError>() {
                Some(LookupError::Private(address)) => {
                    return Self::PrivateAddress { address: *address };
                }
                Some(LookupError::Failed(message)) => {
                    let message = message.clone();
                    return Self::Lookup { message };
                }
                None => {}
            }
            message = format!("{message}: {inner}");
            source = inner.source();
        }
        Self::Transport { message }
    }
}
