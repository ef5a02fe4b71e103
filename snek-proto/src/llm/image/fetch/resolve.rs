//! [`Resolver`], and the filter that every lookup goes through.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::config::FetchConfig;

/// A resolver of host names: implement it as `async fn`.
pub trait Resolver: Send + Sync + 'static {
    /// Returns the addresses of a host. It may return any address: those that are not allowed are
    /// removed afterwards.
    ///
    /// # Errors
    /// The error of the lookup.
    ///
    /// # Cancel safety
    /// The future is dropped when the deadline passes.
    fn resolve(&self, host: &str) -> impl Future<Output = io::Result<Vec<IpAddr>>> + Send;
}

/// The resolver of the operating system.
pub(super) struct SystemResolver;

impl Resolver for SystemResolver {
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        let found = tokio::net::lookup_host((host, 0)).await?;
        Ok(found.map(|address| address.ip()).collect())
    }
}

/// The reason why a name has no address to connect to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum LookupError {
    #[error("{0} is not public")]
    Private(IpAddr),
    #[error("{0}")]
    Failed(String),
}

/// A resolver that returns only allowed addresses. The connector has no other source of addresses,
/// so a later lookup with another result does no harm.
pub(super) struct Filter<R> {
    pub(super) config: Arc<FetchConfig>,
    pub(super) resolver: Arc<R>,
}

impl<R: Resolver> Resolve for Filter<R> {
    fn resolve(&self, name: Name) -> Resolving {
        let (config, resolver) = (Arc::clone(&self.config), Arc::clone(&self.resolver));
        Box::pin(async move {
            let found = resolver.resolve(name.as_str()).await;
            let found = found.map_err(|error| LookupError::Failed(error.to_string()))?;
            let allowed: Vec<_> = found
                .iter()
                .filter(|address| config.allows(**address))
                // Port 0 stands for the port of the URL.
                .map(|address| SocketAddr::new(*address, 0))
                .collect();
            if allowed.is_empty() {
                return Err(match found.first() {
                    Some(address) => LookupError::Private(*address),
                    None => LookupError::Failed("the name has no address".to_owned()),
                }
                .into());
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}
