//! Servers mounted into axum: [`host`] runs one, [`check`] compares it with one on a socket.

use std::fmt::Debug;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::extract::{ConnectInfo, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::middleware::map_request;
use axum::routing::get;
use futures_util::{SinkExt as _, StreamExt as _};
use rpc_core::Outgoing;
use rpc_core::net::DrainReport;
use rpc_core::net::server::{HttpConfig, PeerAddr, ServerLimits, Service};
use rpc_core::net::ws::{WsDialer, WsStream};
use rpc_core::net::{DialError, Dialer as _, Message};
use tower_http::cors::CorsLayer;
use tower_http::timeout::TimeoutLayer;
use tower_http::trace::TraceLayer;

use super::fail;

/// How long a request may take.
const TIMEOUT: Duration = Duration::from_millis(100);
/// How long a drain may take: longer than anything that works.
const DRAIN: Duration = Duration::from_secs(5);

/// An extension that a layer adds to every request.
#[derive(Clone, Copy)]
struct FromLayer(&'static str);

/// What a handler knows of a request: the header `x-name`, and the extension of a layer of [`host`].
#[must_use]
pub fn described(parts: &Parts) -> String {
    let header = parts.headers.get("x-name").map(|it| it.to_str());
    let header = header.map_or("", |it| it.unwrap_or("not a text"));
    let extension = parts.extensions.get::<FromLayer>();
    format!("{header} and {}", extension.map_or("none", |from| from.0))
}

/// Serves `service` in axum behind layers, beside the routes `/hello` and `/slow`. Returns the address.
///
/// # Panics
/// If there is no port.
pub async fn host(service: Service) -> SocketAddr {
    let app = Router::new()
        .route("/hello", get(|| async { "hello" }))
        .route("/slow", get(std::future::pending::<()>))
        .fallback_service(service)
        .layer(map_request(add_peer))
        .layer((
            TraceLayer::new_for_http(),
            TimeoutLayer::with_status_code(StatusCode::REQUEST_TIMEOUT, TIMEOUT),
            CorsLayer::permissive(),
        ));
    let listener = must(tokio::net::TcpListener::bind("127.0.0.1:0").await);
    let address = must(listener.local_addr());
    let app = app.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(axum::serve(listener, app).into_future());
    address
}

async fn add_peer(ConnectInfo(peer): ConnectInfo<SocketAddr>, mut request: Request) -> Request {
    let extensions = request.extensions_mut();
    extensions.insert(PeerAddr(peer));
    extensions.insert(FromLayer("a layer"));
    request
}

/// Checks that a mounted server refuses, answers and drains as one on a socket does, which is at the
/// URL `own`. `mount` makes one that runs, with these changes to its HTTP configuration, and returns
/// what drains it. WebSockets are at `path` and end with the code `close`.
///
/// # Panics
/// If one of that is not so.
pub async fn check<D: AsyncFnOnce(Duration) -> DrainReport>(
    own: &str,
    path: &str,
    close: u16,
    mount: impl Fn(&dyn Fn(HttpConfig) -> HttpConfig) -> (Service, D),
) {
    let (service, drain) = mount(&|http| http);
    let address = host(service).await;
    let dialer = must(WsDialer::new(&format!("ws://{address}{path}")));
    let own = must(WsDialer::new(own));
    let foreign = dialer.clone().with_header("origin", "https://else.example");
    assert_eq!(status(&must(foreign)).await, 403, "a foreign origin");
    for path in [path, "/", "/healthz", "/nowhere"] {
        assert_eq!(page(&dialer, path).await, page(&own, path).await, "{path}");
    }

    let mut line = must(dialer.dial().await);
    assert_eq!(page(&dialer, "/slow").await.0, 408, "a layer");
    must(line.send(Outgoing::Ping("still there?".into())).await);
    while !matches!(next(&mut line).await, Message::Pong(_)) {}
    let (report, code) = tokio::join!(drain(DRAIN), closed(&mut line));
    assert_eq!(code, Some(close), "the Close");
    assert_eq!((report.finished, report.aborted), (1, 0), "drained");
    assert_eq!(status(&dialer).await, 503, "after the drain");
    let hello = (200, "hello".to_owned());
    assert_eq!(page(&dialer, "/hello").await, hello, "the host");

    // Where no one has logged in the oldest makes room.
    let limits: [fn(&mut ServerLimits); 3] = [
        |limits| limits.max_websockets = Some(1),
        |limits| limits.max_connections = 1,
        |limits| limits.max_connections_per_ip = Some(1),
    ];
    for limit in limits {
        let (service, _) = mount(&|mut http| {
            limit(&mut http.limits);
            http
        });
        let address = host(service).await;
        let dialer = must(WsDialer::new(&format!("ws://{address}{path}")));
        let mut line = must(dialer.dial().await);
        let _newer = must(dialer.dial().await);
        assert_eq!(closed(&mut line).await, Some(1013), "the oldest");
    }
}

fn must<T, E: Debug>(outcome: Result<T, E>) -> T {
    outcome.unwrap_or_else(|error| fail(&format!("{error:?}")))
}

/// The status that refuses an upgrade.
async fn status(dialer: &WsDialer) -> u16 {
    match dialer.dial().await {
        Err(DialError::Status { status, .. }) => status,
        other => fail(&format!("not refused: {other:?}")),
    }
}

async fn page(dialer: &WsDialer, path: &str) -> (u16, String) {
    let (status, body) = must(dialer.get(path, 65_536).await);
    (status, String::from_utf8_lossy(&body).into_owned())
}

async fn next(line: &mut WsStream) -> Message {
    must(must(line.next().await.ok_or("the connection ends")))
}

/// The code of the Close that comes.
async fn closed(line: &mut WsStream) -> Option<u16> {
    loop {
        if let Message::Close(frame) = next(line).await {
            return frame.map(|frame| frame.code);
        }
    }
}
