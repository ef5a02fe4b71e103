//! Answers to HTTP requests: guards, the upgrade, the caller's own service.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Poll;

use bytes::{Buf as _, BufMut as _, Bytes};
use http::header::{self, HeaderName, HeaderValue};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use tokio::time::sleep;

use super::HttpConfig;
use super::body::{Body, reply};
use super::brake::Attempt;
use super::permits::{Opening, Permit, Refusal};
use super::run::Shared;
use super::upgrade::detach;
use crate::net::ws::{
    EXPLANATION, NoRoom, Receive, accept_key, grow, is_meant, is_upgrade, offers,
};
use crate::sync::Mutex;

/// What the handler learns about the upgraded request.
#[derive(Debug)]
pub(super) struct Agreed {
    pub(super) peer: SocketAddr,
    pub(super) parts: Parts,
    pub(super) permit: Permit,
}

/// Serves one connection, which carries one request.
pub(super) struct Exchange {
    pub(super) shared: Arc<Shared>,
    pub(super) peer: SocketAddr,
    /// Filled once a request was upgraded.
    pub(super) agreed: Arc<Mutex<Option<Agreed>>>,
    /// Finished once the whole request has arrived.
    pub(super) opening: Arc<Opening>,
    /// Set once the reply is streamed.
    pub(super) streams: Arc<AtomicBool>,
}

impl hyper::service::Service<Request<Incoming>> for Exchange {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let (shared, peer) = (Arc::clone(&self.shared), self.peer);
        let agreed = Arc::clone(&self.agreed);
        let (opening, streams) = (Arc::clone(&self.opening), Arc::clone(&self.streams));
        Box::pin(async move {
            let mut answer = answer(&shared, peer, request, &opening, &agreed).await;
            // A refusal has not waited for the rest.
            opening.finish();
            if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
                // One request per connection, so that an idle one never holds a permit.
                answer = with(answer, header::CONNECTION, "close");
            }
            streams.store(answer.body().is_streamed(), Ordering::Relaxed);
            Ok(answer)
        })
    }
}

/// Answers a request, and notes in `agreed` if it is upgraded. Slows down who guesses what the answer depends on.
pub(super) async fn answer<B: hyper::body::Body>(
    shared: &Shared,
    peer: SocketAddr,
    request: Request<B>,
    opening: &Opening,
    agreed: &Mutex<Option<Agreed>>,
) -> Response<Body> {
    let HttpConfig { brake, guards, .. } = &shared.config;
    let caller = guards.caller(peer, request.headers());
    let (mut parts, body) = request.into_parts();
    // It refers to the connection, which is taken back in another way.
    parts.extensions.remove::<hyper::upgrade::OnUpgrade>();
    let mut attempt = match shared.config.guessable(&parts, peer) {
        // One of the headers has it.
        Some(secret) => match brake
            .attempt(caller, secret, format!("{:?}", parts.headers))
            .await
        {
            Ok(attempt) => Some(attempt),
            Err(error) => return plain(StatusCode::TOO_MANY_REQUESTS, error.to_string()),
        },
        None => None,
    };
    let request = Request::from_parts(parts, body);
    let checking = decide(shared, peer, caller, request, opening, agreed, &mut attempt);
    let answer = checking.await;
    if answer.status() == StatusCode::UNAUTHORIZED {
        match attempt {
            Some(attempt) => attempt.wrong(),
            None => sleep(brake.wrong(caller)).await,
        }
    }
    answer
}

async fn decide<B: hyper::body::Body>(
    shared: &Shared,
    peer: SocketAddr,
    caller: IpAddr,
    request: Request<B>,
    opening: &Opening,
    agreed: &Mutex<Option<Agreed>>,
    attempt: &mut Option<Attempt>,
) -> Response<Body> {
    let config = &shared.config;
    let (mut parts, body) = request.into_parts();
    let mut client = None;
    if is_upgrade(&parts)
        && let Some((tickets, offered)) = config.ticket_in(parts.uri.path())
    {
        client = tickets.redeem(offered);
        if client.is_none() {
            sleep(config.brake.wrong(caller)).await;
        }
    }
    if client.is_none()
        && let Err((status, why)) = config.guards.check(&parts, peer)
    {
        shared.counters.count_rejected();
        tracing::debug!(%peer, status = status.as_u16(), why, "request refused");
        return plain(status, why);
    }
    if shared.cancellation.is_cancelled() {
        return plain(
            StatusCode::SERVICE_UNAVAILABLE,
            "the server is shutting down",
        );
    }
    let path_upgrades = client.is_some() || config.is_upgrade_path(parts.uri.path());
    if path_upgrades && (is_upgrade(&parts) || is_meant(&parts)) {
        if !opening.finish() {
            return busy(Refusal::ServerFull);
        }
        return upgrade(shared, peer, parts, client, opening, agreed);
    }
    if config.hooks.http.is_some() {
        if let Some(refusal) = config.authorize(&parts, peer) {
            return refusal;
        }
        // The rest may take long.
        *attempt = None;
        let max = config.limits.max_body_bytes;
        let limit = Arc::new(AtomicUsize::new(max));
        let receive = Receive::new(&shared.receiving, caller, &limit);
        let body = match collect(body, max, receive).await {
            Ok(body) => body,
            Err((status, why)) => return plain(status, why),
        };
        if !opening.finish() {
            return busy(Refusal::ServerFull);
        }
        parts.extensions.insert(shared.cancellation.clone());
        if let Some(service) = config.http(Request::from_parts(parts, body), peer) {
            let answer = service.await;
            if answer.status().is_informational() {
                return plain(StatusCode::INTERNAL_SERVER_ERROR, "no answer");
            }
            let is_known = answer.status() != StatusCode::NOT_FOUND;
            if is_known || !path_upgrades || config.paths.is_empty() {
                return answer;
            }
            return upgrade_required();
        }
        return not_found(config);
    }
    if path_upgrades && parts.method == Method::GET {
        return upgrade_required();
    }
    not_found(config)
}

/// Says where WebSockets are: behind another server the path may be another one than expected.
fn not_found(config: &HttpConfig) -> Response<Body> {
    let paths = config.paths.join(", ");
    plain(
        StatusCode::NOT_FOUND,
        format!("not found; WebSockets are at {paths}"),
    )
}

fn upgrade_required() -> Response<Body> {
    let answer = plain(StatusCode::UPGRADE_REQUIRED, EXPLANATION);
    with(answer, header::UPGRADE, "websocket")
}

/// Upgrades a request, which another server sends for this client if there is one.
fn upgrade(
    shared: &Shared,
    mut peer: SocketAddr,
    mut parts: Parts,
    client: Option<(SocketAddr, Parts)>,
    opening: &Opening,
    agreed: &Mutex<Option<Agreed>>,
) -> Response<Body> {
    let key = match accept_key(&parts) {
        Ok(key) => key,
        Err((status, why)) => {
            shared.counters.count_rejected();
            tracing::debug!(%peer, status = status.as_u16(), why, "upgrade refused");
            return with(plain(status, why), header::SEC_WEBSOCKET_VERSION, "13");
        }
    };
    let is_passed_on = client.is_some();
    if let Some(client) = client {
        (peer, parts) = client;
        if let Err(refusal) = opening.count_for(peer.ip().to_canonical()) {
            return busy(refusal);
        }
    }
    let (counters, limits) = (&shared.counters, &shared.config.limits);
    let permit = Permit::take(counters, limits).or_else(|| {
        let made = opening.make_place(counters);
        made.then(|| Permit::take(counters, limits)).flatten()
    });
    let Some(permit) = permit else {
        tracing::debug!(%peer, "too many WebSockets");
        return busy(Refusal::NoPlace);
    };
    let subprotocol = match shared.config.decide(&mut parts, peer) {
        Ok(subprotocol) => subprotocol,
        Err((status, body)) => {
            shared.counters.count_rejected();
            tracing::debug!(%peer, status = status.as_u16(), "upgrade refused by the application");
            let is_refusal = status.is_client_error() || status.is_server_error();
            let status = if is_refusal {
                status
            } else {
                StatusCode::INTERNAL_SERVER_ERROR
            };
            return plain(status, body);
        }
    };
    let mut response = Response::new(Body::from(Bytes::new()));
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::SEC_WEBSOCKET_ACCEPT, key);
    // A client has to refuse a subprotocol that it did not offer.
    let subprotocol = subprotocol.filter(|_| !is_passed_on).filter(|name| {
        let offered = offers(&parts.headers, name);
        if !offered {
            tracing::warn!(%peer, "the selected subprotocol was not offered and is left out");
        }
        offered
    });
    if let Some(Ok(name)) = subprotocol.as_deref().map(HeaderValue::from_str) {
        headers.insert(header::SEC_WEBSOCKET_PROTOCOL, name);
    }
    detach(&mut parts);
    *agreed.lock() = Some(Agreed {
        peer,
        parts,
        permit,
    });
    response
}

/// Returns the refusal of a request for which there is no room, or of a peer that is not served.
pub(super) fn busy(refusal: Refusal) -> Response<Body> {
    let (status, why) = refusal.answer();
    match status {
        StatusCode::SERVICE_UNAVAILABLE => with(plain(status, why), header::RETRY_AFTER, "1"),
        _ => plain(status, why),
    }
}

fn with(mut answer: Response<Body>, name: HeaderName, value: &'static str) -> Response<Body> {
    let value = HeaderValue::from_static(value);
    answer.headers_mut().insert(name, value);
    answer
}

/// Returns a plain text reply.
pub(super) fn plain(status: StatusCode, body: impl Into<Bytes>) -> Response<Body> {
    // Without a blank, as known servers of our protocols write it.
    reply(status, "text/plain;charset=utf-8", body)
}

/// Returns the whole body, or the reply if the body is larger than `max` or incomplete.
async fn collect<B: hyper::body::Body>(
    body: B,
    max: usize,
    mut receive: Receive,
) -> Result<Bytes, (StatusCode, &'static str)> {
    let too_large = (StatusCode::PAYLOAD_TOO_LARGE, "the body is too large");
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if announced > max {
        return Err(too_large);
    }
    let refusal = |why| match why {
        NoRoom::Ever { .. } => too_large,
        NoRoom::Now => (
            StatusCode::SERVICE_UNAVAILABLE,
            "there is no room for the body at present",
        ),
        NoRoom::Late => (StatusCode::REQUEST_TIMEOUT, "the body is too slow"),
    };
    let mut body = pin!(body);
    let (mut whole, mut wanted) = (Vec::new(), announced);
    loop {
        poll_fn(|cx| receive.poll_grow(cx, wanted))
            .await
            .map_err(refusal)?;
        let frame = poll_fn(|cx| match body.as_mut().poll_frame(cx) {
            Poll::Pending => receive.poll_wait(cx).map_err(refusal).map_ok(|()| None),
            Poll::Ready(frame) => Poll::Ready(Ok(frame)),
        });
        let Some(frame) = frame.await? else {
            return Ok(whole.into());
        };
        let frame = frame.map_err(|_| (StatusCode::BAD_REQUEST, "the body breaks off"))?;
        if let Ok(data) = frame.into_data() {
            wanted = announced.max(whole.len() + data.remaining());
            if wanted > max {
                return Err(too_large);
            }
            grow(&mut whole, data.remaining());
            whole.put(data);
        }
    }
}
