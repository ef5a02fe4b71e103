//! [`WsDialer`]: opens a page's WebSockets to one of several servers.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{HeaderMap, Request};

use super::config::WsConfig;
use super::fetch::fetch;
use super::stream::WsStream;
use super::url::{Target, ascii, urls};
use crate::error::CloseReason;
use crate::net::dial::{DialError, Dialer};
use crate::net::link::entropy;
use crate::net::time;

/// Dials one URL of a list, any number of times. An attempt tries the URLs in turn until one connects; the
/// next attempt goes on behind it. Each client begins anywhere in the list. Clones share their position in it.
#[derive(Clone)]
pub struct WsDialer {
    /// At least one.
    pub(super) targets: Vec<Target>,
    next: Arc<AtomicUsize>,
    pub(super) config: WsConfig,
}

impl WsDialer {
    /// Creates a dialer for a `ws` or `wss` URL (`http` and `https` mean the same), or for several,
    /// separated by commas as [`urls`](super::urls) reads them.
    ///
    /// # Errors
    /// [`DialError::BadUrl`] if one of the URLs cannot be dialled: another scheme, a fragment, a user or
    /// a password.
    pub fn new(url: &str) -> Result<Self, DialError> {
        let targets = urls(url).map(|url| {
            let target = Target::parse(url)?;
            match target.login {
                Some(_) => Err(target.bad("a page cannot send a user or a password")),
                None => Ok(target),
            }
        });
        let first = u32::try_from(entropy() >> 32).unwrap_or_default();
        Ok(Self {
            targets: targets.collect::<Result<_, _>>()?,
            next: Arc::new(AtomicUsize::new(first as usize)),
            config: WsConfig::default(),
        })
    }

    /// Dials the URLs as listed. Starts the round again.
    #[must_use]
    pub fn in_listed_order(mut self) -> Self {
        self.next = Arc::default();
        self
    }

    /// Returns the headers of a request over HTTP.
    ///
    /// # Errors
    /// Only natively, where the host is one of them.
    pub fn headers(&self) -> Result<HeaderMap, DialError> {
        Ok(self.config.headers.clone())
    }

    /// Returns the index of the URL whose turn it is.
    #[must_use]
    pub fn next_node(&self) -> usize {
        self.next.load(Ordering::Relaxed) % self.targets.len()
    }

    /// Passes the turn on, unless it is another URL's already.
    pub fn leave(&self, node: usize) {
        if self.next_node() == node {
            self.next.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Fetches a document from the server whose turn it is by a plain HTTP GET, which has to allow the
    /// page's origin. `path` begins with a slash. Returns the status and at most `max` bytes.
    ///
    /// # Errors
    /// [`DialError`]: [`BadUrl`](DialError::BadUrl) for an invalid path,
    /// [`Handshake`](DialError::Handshake) for a too large reply.
    ///
    /// # Cancel safety
    /// Dropping the future aborts the request.
    pub async fn get(&self, path: &str, max: usize) -> Result<(u16, Vec<u8>), DialError> {
        let (node, after) = (self.next_node(), self.config.connect_timeout);
        let target = &self.targets[node];
        let scheme = if target.is_tls { "https" } else { "http" };
        let url = format!("{scheme}://{}{}", target.authority, ascii(path));
        let request = Request::get(url).body(Bytes::new());
        let request = request.map_err(|_| target.bad("the path is none"))?;
        let work = async {
            let (head, mut body) = fetch(request).await?.into_parts();
            let mut whole = Vec::new();
            while let Some(piece) = body.next().await
                && whole.len() <= max
            {
                whole.extend_from_slice(&piece?);
            }
            Ok::<_, CloseReason>((head.status.as_u16(), whole))
        };
        match time::timeout(after, work).await {
            Ok(Ok((_, whole))) if whole.len() > max => {
                let why = format!("the answer has more than {max} bytes");
                Err(DialError::Handshake(why))
            }
            Ok(Ok(got)) => Ok(got),
            Ok(Err(reason)) => {
                self.leave(node);
                Err(target.unreachable(io::Error::other(reason.to_string())))
            }
            Err(_) => Err(DialError::TimedOut { after }),
        }
    }

    async fn open(&self) -> Result<WsStream, DialError> {
        let mut left = self.targets.len();
        loop {
            left -= 1;
            let node = self.next_node();
            self.leave(node);
            match WsStream::open(&self.targets[node], &self.config).await {
                Err(DialError::Unreachable { .. }) if left > 0 => {}
                done => return done,
            }
        }
    }
}

impl Dialer for WsDialer {
    type Transport = WsStream;

    async fn dial(&self) -> Result<WsStream, DialError> {
        let after = self.config.connect_timeout;
        let opened = time::timeout(after, self.open()).await;
        opened.unwrap_or(Err(DialError::TimedOut { after }))
    }
}
