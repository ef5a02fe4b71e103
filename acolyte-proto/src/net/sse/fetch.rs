//! [`HttpConnection`]: one exchange over HTTP by the page's `fetch`.

use bytes::Bytes;
use http::{Request, Response, Uri};
use rpc_core::CloseReason;
use rpc_core::net::DialError;
pub(super) use rpc_core::net::ws::FetchBody as Body;
use rpc_core::net::ws::fetch;

use super::{Endpoint, Service};

/// The index of a server's URL.
pub(super) type HttpNode = usize;

impl Service {
    /// Addresses a request to the server whose turn it is. The page connects with the request.
    pub(super) async fn open(
        &self,
        endpoint: Endpoint,
        request: &mut Request<Bytes>,
    ) -> Result<HttpConnection, DialError> {
        let node = self.dialer.next_node();
        if let Some(target) = self.target(node, endpoint) {
            *request.uri_mut() = target;
        }
        request.headers_mut().extend(self.dialer.headers()?);
        Ok(HttpConnection(node))
    }

    /// Lets the next request go to another server.
    pub(super) fn leave(&self, node: &HttpNode) {
        self.dialer.leave(*node);
    }
}

/// Returns the target of a request to a URL that was already checked: all of it.
pub(super) fn target(url: &str) -> Uri {
    url.parse().unwrap_or_default()
}

/// An exchange with one server.
pub(super) struct HttpConnection(HttpNode);

impl HttpConnection {
    pub(super) const fn node(&self) -> HttpNode {
        self.0
    }

    /// Sends a request and waits for the head of the response.
    pub(super) async fn send(
        &mut self,
        request: Request<Bytes>,
    ) -> Result<Response<Body>, CloseReason> {
        fetch(request).await
    }

    /// Returns the next piece of the response; `None` at its end.
    pub(super) async fn next(&mut self, body: &mut Body) -> Option<Result<Bytes, CloseReason>> {
        body.next().await
    }
}
