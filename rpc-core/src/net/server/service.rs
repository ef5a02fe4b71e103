//! [`Service`]: a server as a tower service, for an HTTP server of yours.

use std::convert::Infallible;
use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response, StatusCode};
use hyper::upgrade::OnUpgrade;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::timeout;

use super::body::Body;
use super::connection::{Arrival, upgraded};
use super::http1::{answer, busy, plain};
use super::permits::{Refusal, Slots};
use super::run::Shared;
use crate::sync::Mutex;

/// The address of a peer that is not known.
pub(super) const UNKNOWN: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0));

/// The extension of a request with the address of its peer, for a [`Service`].
///
/// Without it the address is unspecified (`0.0.0.0:0`): a
/// [`PeerPolicy`](super::PeerPolicy) other than `Any` refuses the request, and limits per address do
/// not count it. In axum, fill it from `ConnectInfo` in a layer in front:
///
/// ```text
/// async fn peer(ConnectInfo(peer): ConnectInfo<SocketAddr>, mut request: Request) -> Request {
///     request.extensions_mut().insert(PeerAddr(peer));
///     request
/// }
///
/// let app = app.layer(axum::middleware::map_request(peer));
/// axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>()).await
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerAddr(pub SocketAddr);

/// A [mounted](super::ProtocolServer::mount) server as a
/// [`tower::Service`](https://docs.rs/tower-service/0.3/tower_service/trait.Service.html) for any HTTP/1 server with
/// upgrades, such as axum. Cheap to clone.
///
/// It checks and answers requests as the server on a socket does, except for what belongs to the
/// connection, which is the host's: TLS, `max_header_bytes`, the timeouts for headers and writes, and
/// `TCP_NODELAY`, which you should set. [`max_connections`](super::ServerLimits::max_connections)
/// counts WebSockets and the requests that are being answered. A request that is late gets 408.
///
/// Upgraded connections run in [`ProtocolServer::run`](super::ProtocolServer::run) and end with it. Once the server
/// drains or is dropped, requests get 503; dropping the service ends nothing.
#[derive(Clone, Debug)]
pub struct Service {
    pub(super) shared: Arc<Shared>,
    pub(super) slots: Arc<Mutex<Slots>>,
    pub(super) arrivals: UnboundedSender<Arrival>,
}

impl Service {
    async fn answer<B: hyper::body::Body>(self, mut request: Request<B>) -> Response<Body> {
        let on_upgrade = request.extensions_mut().remove::<OnUpgrade>();
        let peer = request.extensions().get::<PeerAddr>();
        let peer = peer.map_or(UNKNOWN, |peer| peer.0);
        let config = &self.shared.config;
        let taken = {
            let mut slots = self.slots.lock();
            slots.take(peer, &config.guards)
        };
        let (opening, evicted) = match taken {
            Ok(taken) => taken,
            Err(refusal) => return busy(refusal),
        };
        let agreed = Mutex::new(None);
        let answer = answer(&self.shared, peer, request, &opening, &agreed);
        let answer = tokio::select! {
            biased;
            answer = timeout(config.limits.handshake_timeout, answer) => answer.unwrap_or_else(|_| {
                tracing::debug!(%peer, "no request in time");
                plain(StatusCode::REQUEST_TIMEOUT, "the request is too slow")
            }),
            () = evicted.wait() => return busy(Refusal::ServerFull),
        };
        opening.finish();
        let agreed = agreed.lock().take();
        let Some(agreed) = agreed.filter(|_| opening.is_finished()) else {
            return answer.map(|body| body.holding(opening.take_slot()));
        };
        let Some(on_upgrade) = on_upgrade else {
            tracing::warn!("the HTTP server in front does not offer upgrades");
            return plain(StatusCode::NOT_IMPLEMENTED, "no upgrades here");
        };
        let upgraded = upgraded(self.shared, on_upgrade, agreed, peer, opening);
        match self.arrivals.send(Box::pin(upgraded)) {
            Ok(()) => answer,
            Err(_) => plain(StatusCode::SERVICE_UNAVAILABLE, "the server has ended"),
        }
    }
}

impl<B: hyper::body::Body + Send + 'static> tower_service::Service<Request<B>> for Service {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let answer = self.clone().answer(request);
        Box::pin(async move { Ok(answer.await) })
    }
}
