//! [`FetchError`].

use std::net::IpAddr;
use std::time::Duration;

use super::resolve::LookupError;

/// Why an image was not fetched. No variant holds the address that was asked for, which may carry
/// secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The address, or one that it led to, is no URL. Never worth a retry.
    #[error("not a URL: {why}")]
    BadUrl {
        /// What is wrong with it.
        why: String,
    },
    /// The address, or one that it led to, is neither `http` nor `https`. Never worth a retry.
    #[error("the scheme {scheme} is not fetched")]
    Scheme {
        /// The scheme.
        scheme: String,
    },
    /// The host, or one that it led to, is not on the public internet, and not allowed. It was
    /// not contacted. Never worth a retry.
    #[error("{address} is not a public address")]
    PrivateAddress {
        /// The host's address; the first one, if it has several.
        address: IpAddr,
    },
    /// The host's name has no address. A retry may help.
    #[error("the name was not found: {message}")]
    Lookup {
        /// What the lookup said.
        message: String,
    },
    /// The server led on and on. Not worth a retry.
    #[error("more than {max} redirects")]
    TooManyRedirects {
        /// The limit.
        max: usize,
    },
    /// The server answered with another status than 200. A retry may help if it is 429 or 5xx.
    #[error("the server answered {code}")]
    Status {
        /// The HTTP status.
        code: u16,
    },
    /// The image has more bytes than are taken. Not worth a retry.
    #[error("the image has more than {max} bytes")]
    TooLarge {
        /// The limit.
        max: usize,
    },
    /// The image did not come in time. A retry may help.
    #[error("the image did not come within {after:?}")]
    TimedOut {
        /// The deadline.
        after: Duration,
    },
    /// The connection or the server's HTTP failed. A retry may help.
    #[error("fetching failed: {message}")]
    Transport {
        /// What the HTTP client said.
        message: String,
    },
    /// The HTTP client cannot be set up: TLS has no roots, for instance.
    #[error("the HTTP client cannot be set up: {message}")]
    Setup {
        /// What is missing.
        message: String,
    },
}

impl FetchError {
    /// Whether the same address may be fetched later. Nothing happens twice by that.
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

    /// Whether the GET request need not be tried after this happened to the HEAD request.
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
