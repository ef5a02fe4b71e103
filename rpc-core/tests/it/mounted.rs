//! A server behind an HTTP server of another crate, by hand.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{FutureExt as _, stream};
use http::{Request, StatusCode};
use rpc_core::net::server::{
    Accepted, Body, Guards, HttpConfig, PeerAddr, PeerPolicy, ProtocolServer, ServerLimits,
    ServerProtocol, Service,
};
use tokio::sync::Notify;
use tower_service::Service as _;

use crate::server::Server;

fn mount(config: HttpConfig) -> (ProtocolServer<impl ServerProtocol>, Service) {
    Server::mount(|_| async {}, config)
}

fn request(body: Body) -> Request<Body> {
    let request = Request::post("/").header("host", "localhost");
    request.body(body).unwrap()
}

fn upgrade() -> Request<Body> {
    let request = Request::get("/")
        .header("host", "localhost")
        .header("connection", "Upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
    request.body(Body::stream(stream::pending())).unwrap()
}

async fn status(service: &mut Service, request: Request<Body>) -> StatusCode {
    service.call(request).await.unwrap().status()
}

fn echo() -> HttpConfig {
    HttpConfig::default().with_http(|request: Request<Bytes>, _| async move {
        http::Response::new(Body::from(request.into_body()))
    })
}

#[tokio::test]
async fn a_peer_without_an_address_passes_no_policy() {
    let guards = Guards {
        peers: PeerPolicy::LocalhostOnly,
        ..Guards::default()
    };
    let (_server, mut service) = mount(HttpConfig { guards, ..echo() });
    assert_eq!(status(&mut service, request("".into())).await, 403);
    for (peer, expected) in [("127.0.0.1:1", 200), ("192.0.2.1:1", 403)] {
        let mut request = request("".into());
        let peer = PeerAddr(peer.parse().unwrap());
        request.extensions_mut().insert(peer);
        assert_eq!(status(&mut service, request).await, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn endless_and_oversized_bodies_are_answered() {
    let (server, mut service) = mount(echo());
    let endless = Body::stream(stream::pending());
    assert_eq!(status(&mut service, request(endless)).await, 408);
    let large = stream::repeat(Bytes::from_static(&[0; 1024]));
    assert_eq!(
        status(&mut service, request(Body::stream(large))).await,
        413
    );
    assert_eq!(server.counters().open(), 0);
}

#[tokio::test]
async fn a_request_counts_until_its_answer_is_sent() {
    let limits = ServerLimits {
        max_connections: 1,
        ..ServerLimits::default()
    };
    let (server, mut service) = mount(HttpConfig { limits, ..echo() });
    let first = service.call(request("hello".into())).await.unwrap();
    assert_eq!(server.counters().open(), 1);
    let second = service.call(request("hello".into())).await.unwrap();
    assert_eq!(second.status(), 503);
    assert_eq!(second.headers()["retry-after"], "1");
    drop(first);
    assert_eq!(status(&mut service, request("hello".into())).await, 200);
}

#[tokio::test]
async fn the_oldest_incomplete_request_makes_room() {
    let limits = ServerLimits {
        max_connections: 1,
        ..ServerLimits::default()
    };
    let (_server, mut service) = mount(HttpConfig { limits, ..echo() });
    let endless = service.call(request(Body::stream(stream::pending())));
    let mut endless = pin!(endless);
    assert!(endless.as_mut().now_or_never().is_none());
    assert_eq!(status(&mut service, request("hello".into())).await, 200);
    let Ok::<_, Infallible>(answer) = endless.await;
    assert_eq!(answer.status(), 503);
}

#[tokio::test]
async fn a_host_without_upgrades_gets_501() {
    let (server, mut service) = mount(HttpConfig::default());
    assert_eq!(status(&mut service, upgrade()).await, 501);
    let counters = server.counters();
    assert_eq!((counters.open(), counters.websockets()), (0, 0));
}

#[tokio::test]
async fn a_client_lost_during_its_upgrade_leaves_nothing_behind() {
    let served = Arc::new(Notify::new());
    let called = Arc::clone(&served);
    let serve = move |_: Accepted| {
        called.notify_one();
        async {}
    };
    let (server, mut service) = Server::mount(serve, HttpConfig::default());
    let (counters, handle) = (server.counters(), server.handle());
    let mut request = upgrade();
    // What hyper gives a host whose connection it drops.
    let gone = hyper::upgrade::on(Request::new(()));
    request.extensions_mut().insert(gone);
    assert_eq!(status(&mut service, request).await, 101);
    assert_eq!(counters.websockets(), 1);
    let serving = server.run();
    let (report, _) = tokio::join!(serving, handle.drain(std::time::Duration::from_secs(5)));
    assert_eq!((report.finished, report.aborted), (1, 0));
    assert_eq!((counters.open(), counters.websockets()), (0, 0));
    assert!(served.notified().now_or_never().is_none());
    assert_eq!(status(&mut service, upgrade()).await, 503);
}

#[tokio::test]
async fn a_dropped_server_stops_answering() {
    let (server, mut service) = mount(echo());
    drop(server);
    assert_eq!(status(&mut service, request("".into())).await, 503);
}
