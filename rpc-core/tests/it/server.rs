//! The server over real sockets: guards, limits, upgrades, drain.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use http::{Request, Response, StatusCode};
use rpc_core::net::DrainReport;
use rpc_core::net::server::{
    Accepted, Counters, Guards, HttpConfig, ProtocolServer, ServerHandle, ServerLimits,
    ServerProtocol,
};
use rpc_core::net::ws::{WsConfig, WsDialer, WsStream};
use rpc_core::net::{DialError, Dialer as _, Message};
use rpc_core::{CloseFrame, Outgoing, Text};
use switchboard_testing::faults::upgrade_request;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

const DEADLINE: Duration = Duration::from_millis(300);

pub struct Running {
    pub address: std::net::SocketAddr,
    pub shutdown: ServerHandle,
    pub counters: Arc<Counters>,
    task: JoinHandle<DrainReport>,
}

impl Running {
    fn url(&self) -> String {
        format!("ws://{}/rpc.ws", self.address)
    }

    pub async fn dial(&self) -> Result<WsStream, DialError> {
        WsDialer::new(&self.url()).unwrap().dial().await
    }

    /// Sends a request as it is and reads to the end.
    pub async fn ask(&self, request: &str) -> String {
        let mut tcp = TcpStream::connect(self.address).await.unwrap();
        tcp.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        tcp.read_to_string(&mut answer).await.unwrap();
        answer
    }

    pub async fn status(&self, request: &str) -> String {
        self.ask(request)
            .await
            .chars()
            .skip("HTTP/1.1 ".len())
            .take(3)
            .collect()
    }
}

/// Echoes text until the peer or the server goes.
async fn echo(mut accepted: Accepted) {
    loop {
        tokio::select! {
            message = accepted.socket.next() => match message {
                Some(Ok(Message::Text(text))) if text.as_str() == "panic" => panic!("asked to"),
                Some(Ok(Message::Text(text))) => {
                    accepted.socket.send(Outgoing::Text(text)).await.unwrap();
                }
                Some(Ok(_)) => {}
                Some(Err(_)) | None => break,
            },
            () = accepted.cancellation.cancelled() => {
                let goodbye = Outgoing::Close(CloseFrame::new(CloseFrame::GOING_AWAY, "drain"));
                let _ = accepted.socket.send(goodbye).await;
                let _ = accepted.socket.close().await;
                break;
            }
        }
    }
}

/// A server whose connections a function serves.
pub type Server<F> = ProtocolServer<Served<F>>;

pub struct Served<F>(F);

impl<F, R> ServerProtocol for Served<F>
where
    F: Fn(Accepted) -> R + Send + Sync + 'static,
    R: Future<Output = ()> + Send + 'static,
{
    type App = F;
    type Options = HttpConfig;

    fn new(app: F, options: HttpConfig) -> (Arc<Self>, HttpConfig) {
        (Arc::new(Self(app)), options)
    }

    fn serve(self: Arc<Self>, accepted: Accepted) -> impl Future<Output = ()> + Send + 'static {
        (self.0)(accepted)
    }
}

pub async fn start(config: HttpConfig) -> Running {
    start_with(config, echo).await
}

pub async fn start_with<H, F>(config: HttpConfig, handler: H) -> Running
where
    H: Fn(Accepted) -> F + Send + Sync + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let server = Server::bind("127.0.0.1:0", handler, config).await.unwrap();
    Running {
        address: server.local_addr(),
        shutdown: server.handle(),
        counters: server.counters(),
        task: tokio::spawn(server.run()),
    }
}

pub fn limits(change: impl FnOnce(&mut ServerLimits)) -> HttpConfig {
    let mut config = HttpConfig::default();
    change(&mut config.limits);
    config
}

pub fn upgrade(headers: &str) -> String {
    upgrade_request("/rpc.ws", headers)
}

pub async fn exchange(ws: &mut WsStream, text: &str) -> Message {
    ws.send(Outgoing::Text(Text::from(text))).await.unwrap();
    ws.next().await.unwrap().unwrap()
}

#[tokio::test]
async fn an_upgraded_connection_reaches_the_handler() {
    let server = start(HttpConfig {
        paths: vec!["/rpc.ws".into()],
        ..HttpConfig::default()
    })
    .await;
    let mut ws = server.dial().await.unwrap();
    assert_eq!(
        exchange(&mut ws, "hello").await,
        Message::Text(Text::from("hello"))
    );
    assert_eq!(server.counters.upgraded(), 1);
    assert_eq!(server.counters.open(), 1);
}

#[tokio::test]
async fn frames_sent_together_with_the_request_are_not_lost() {
    let server = start(HttpConfig::default()).await;
    let mut tcp = TcpStream::connect(server.address).await.unwrap();
    let mut bytes = upgrade("").into_bytes();
    bytes.extend_from_slice(b"\x81\x82\0\0\0\0hi");
    tcp.write_all(&bytes).await.unwrap();
    let mut got = Vec::new();
    while !got.ends_with(b"\x81\x02hi") {
        assert_ne!(tcp.read_buf(&mut got).await.unwrap(), 0, "{got:?}");
    }
    assert!(got.starts_with(b"HTTP/1.1 101 "));
}

#[tokio::test]
async fn a_plain_get_gets_a_helpful_response() {
    let server = start(HttpConfig {
        paths: vec!["/rpc.ws".into()],
        ..HttpConfig::default()
    })
    .await;
    let answer = server
        .ask("GET /rpc.ws HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await;
    assert!(answer.starts_with("HTTP/1.1 426 "), "{answer}");
    assert!(answer.contains("upgrade: websocket") && answer.contains("WebSocket client"));
    assert_eq!(
        server
            .status("GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n")
            .await,
        "404"
    );
    let elsewhere = upgrade("").replace("/rpc.ws", "/x");
    assert_eq!(server.status(&elsewhere).await, "404");
}

#[tokio::test]
async fn plain_requests_go_to_the_callers_service() {
    let service = |request: Request<Bytes>, peer: std::net::SocketAddr| async move {
        assert!(peer.ip().is_loopback());
        let body = format!("{} {}", request.uri().path(), request.body().len());
        Response::new(Bytes::from(body))
    };
    let config = limits(|limits| limits.max_body_bytes = 5).with_http(service);
    let server = start(config).await;
    let answer = server
        .ask("POST /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello")
        .await;
    assert!(answer.ends_with("/health 5"), "{answer}");
    let chunked = "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n\
                   3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n";
    assert_eq!(server.status(chunked).await, "413");
    let long = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 6\r\n\r\nabcdef";
    assert_eq!(server.status(long).await, "413");
    let broken = "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n\
                  zz\r\nabc\r\n0\r\n\r\n";
    assert_eq!(server.status(broken).await, "400");
    server.dial().await.unwrap();
}

#[tokio::test]
async fn a_foreign_origin_is_refused_and_a_listed_one_passes() {
    let guards = Guards::default()
        .with_allowed_origin("https://app.example.com")
        .unwrap();
    let server = start(HttpConfig {
        guards,
        ..HttpConfig::default()
    })
    .await;
    assert_eq!(
        server
            .status(&upgrade("Origin: https://evil.example\r\n"))
            .await,
        "403"
    );
    assert_eq!(server.status(&upgrade("Origin: null\r\n")).await, "403");
    assert_eq!(server.counters.rejected(), 2);
    let dialer = WsDialer::new(&server.url()).unwrap();
    let dialer = dialer
        .with_header("Origin", "https://app.example.com")
        .unwrap();
    dialer.dial().await.unwrap();
}

#[tokio::test]
async fn a_foreign_host_is_refused_for_plain_requests_too() {
    let server = start(HttpConfig::default()).await;
    let rebound = upgrade("").replace("Host: localhost", "Host: evil.example");
    assert_eq!(server.status(&rebound).await, "403");
    assert_eq!(
        server
            .status("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n")
            .await,
        "403"
    );
    assert_eq!(server.status("GET / HTTP/1.1\r\n\r\n").await, "400");
}

#[tokio::test]
async fn the_upgrade_hook_authenticates_and_passes_extensions() {
    #[derive(Clone)]
    struct User(&'static str);
    let config = HttpConfig::default().with_on_upgrade(|parts, _| {
        if parts
            .headers
            .get("authorization")
            .is_some_and(|value| value == "Bearer good")
        {
            parts.extensions.insert(User("alice"));
            Ok(Some("acolyte.v1".to_owned()))
        } else {
            Err((StatusCode::UNAUTHORIZED, "no token".to_owned()))
        }
    });
    let config = config.with_on_upgrade(|parts, _| {
        parts.extensions.insert(7_u8); // behind the first
        Ok(None)
    });
    let server = start_with(config, |mut accepted: Accepted| async move {
        let user = accepted.parts.extensions.get::<User>().unwrap().0;
        assert_eq!(accepted.parts.extensions.get(), Some(&7_u8));
        let text = Text::from(user);
        accepted.socket.send(Outgoing::Text(text)).await.unwrap();
        let _ = accepted.socket.next().await;
    })
    .await;
    let error = server.dial().await.unwrap_err();
    assert!(
        matches!(error, DialError::Status { status: 401, .. }),
        "{error:?}"
    );
    let dialer = WsDialer::new(&server.url()).unwrap();
    let dialer = dialer.with_header("Authorization", "Bearer good").unwrap();
    let dialer = dialer.with_subprotocol("secret.1").unwrap();
    let mut ws = dialer
        .with_subprotocol("acolyte.v1")
        .unwrap()
        .dial()
        .await
        .unwrap();
    assert_eq!(ws.subprotocol(), Some("acolyte.v1"));
    let greeting = ws.next().await.unwrap().unwrap();
    assert_eq!(greeting, Message::Text(Text::from("alice")));
}

#[tokio::test]
async fn without_a_hook_the_first_common_subprotocol_is_selected() {
    let ours = WsConfig::default()
        .with_subprotocol("b")
        .and_then(|c| c.with_subprotocol("a"));
    let config = HttpConfig {
        ws: ours.unwrap(),
        ..HttpConfig::default()
    };
    let server = start(config).await;
    let dialer = WsDialer::new(&server.url()).unwrap();
    let dialer = dialer
        .with_subprotocol("a")
        .and_then(|d| d.with_subprotocol("b"))
        .unwrap();
    let ws = dialer.dial().await.unwrap();
    assert_eq!(ws.subprotocol(), Some("b"));
}

#[tokio::test]
async fn a_subprotocol_that_was_not_offered_is_never_sent() {
    let config = HttpConfig::default().with_on_upgrade(|_, _| Ok(Some("other".to_owned())));
    let server = start(config).await;
    let ws = server.dial().await.unwrap();
    assert_eq!(ws.subprotocol(), None);
}

#[tokio::test]
async fn a_bad_upgrade_gets_a_reason() {
    let server = start(HttpConfig::default()).await;
    let answer = server
        .ask(&upgrade("").replace("Version: 13", "Version: 8"))
        .await;
    assert!(answer.starts_with("HTTP/1.1 426 "), "{answer}");
    assert!(answer.contains("sec-websocket-version: 13"), "{answer}");
    let keyless = upgrade("").replace("dGhlIHNhbXBsZSBub25jZQ==", "x");
    assert_eq!(server.status(&keyless).await, "400");
    let with_body = upgrade("Content-Length: 3\r\n") + "abc";
    assert_eq!(server.status(&with_body).await, "400");
}

#[tokio::test]
async fn websockets_over_their_cap_get_503() {
    let service = |_: Request<Bytes>, _: std::net::SocketAddr| async {
        Response::new(Bytes::from_static(b"served"))
    };
    let config = limits(|limits| limits.max_websockets = Some(2)).with_http(service);
    let server = start(config).await;
    // All at once: two get a place, whoever they are.
    let dials = (0..6).map(|_| server.dial());
    let dialled = futures_util::future::join_all(dials).await;
    let (open, refused): (Vec<_>, Vec<_>) = dialled.into_iter().partition(Result::is_ok);
    assert_eq!((open.len(), refused.len()), (2, 4));
    for error in refused.into_iter().filter_map(Result::err) {
        assert!(matches!(error, DialError::Status { status: 503, .. }));
    }
    assert_eq!(server.counters.websockets(), 2);
    let answer = server.ask(&upgrade("")).await;
    let why = "\r\n\r\nService Unavailable: Max connections reached";
    assert!(answer.ends_with(why), "{answer}");
    let plain = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    assert!(server.ask(plain).await.ends_with("served"));
    drop(open);
    while server.dial().await.is_err() {}
}

#[tokio::test]
async fn a_refused_upgrade_frees_its_permit() {
    let config = limits(|limits| limits.max_websockets = Some(1))
        .with_on_upgrade(|_, _| Err((StatusCode::UNAUTHORIZED, "no".to_owned())));
    let server = start(config).await;
    for _ in 0..3 {
        assert_eq!(server.status(&upgrade("")).await, "401");
    }
    assert_eq!(server.counters.websockets(), 0);
}

#[tokio::test]
async fn a_slow_header_times_out() {
    let server = start(limits(|l| l.header_timeout = Duration::from_millis(50))).await;
    for start in ["", "GET / HTTP/1.1\r\nHost: loc"] {
        let mut tcp = TcpStream::connect(server.address).await.unwrap();
        tcp.write_all(start.as_bytes()).await.unwrap();
        let mut rest = Vec::new();
        tcp.read_to_end(&mut rest).await.unwrap();
        assert!(!rest.starts_with(b"HTTP/1.1 2"));
    }
}

#[tokio::test]
async fn limits_can_be_maximal() {
    let running = start(limits(|l| {
        l.header_timeout = Duration::MAX;
        l.handshake_timeout = Duration::MAX;
        l.max_connections = usize::MAX;
        l.max_header_bytes = usize::MAX;
        l.max_body_bytes = usize::MAX;
    }))
    .await;
    let mut ws = running.dial().await.unwrap();
    assert_eq!(exchange(&mut ws, "hi").await, Message::Text("hi".into()));
    assert_eq!(running.counters.panicked(), 0);
}

#[tokio::test]
async fn a_slow_body_times_out() {
    let service = |_: Request<Bytes>, _| async { Response::new(Bytes::new()) };
    let limits = |l: &mut ServerLimits| l.handshake_timeout = Duration::from_millis(50);
    let server = start(self::limits(limits).with_http(service)).await;
    let answer = server
        .ask("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nabc")
        .await;
    assert_eq!(answer, "");
}

#[tokio::test]
async fn an_oversized_header_gets_431() {
    let server = start(limits(|limits| limits.max_header_bytes = 1000)).await;
    let request = upgrade(&format!("x: {}\r\n", "y".repeat(2000)));
    assert_eq!(server.status(&request).await, "431");
}

#[tokio::test]
async fn a_panic_in_a_handler_ends_one_connection_only() {
    let server = start(HttpConfig::default()).await;
    let mut doomed = server.dial().await.unwrap();
    let mut other = server.dial().await.unwrap();
    doomed
        .send(Outgoing::Text(Text::from("panic")))
        .await
        .unwrap();
    while let Some(Ok(_)) = doomed.next().await {}
    assert_eq!(
        exchange(&mut other, "still here").await,
        Message::Text(Text::from("still here"))
    );
    server.dial().await.unwrap();
    assert_eq!(server.counters.panicked(), 1);
}

#[tokio::test]
async fn a_drain_closes_connections_and_reports() {
    let server = start(HttpConfig::default()).await;
    let mut ws = server.dial().await.unwrap();
    let idle = TcpStream::connect(server.address).await.unwrap();
    while server.counters.open() < 2 {
        tokio::task::yield_now().await;
    }
    let report = server.shutdown.drain(DEADLINE).await;
    assert_eq!((report.finished, report.aborted), (2, 0));
    let close = ws.next().await.unwrap().unwrap();
    assert_eq!(close, Message::Close(Some(CloseFrame::new(1001, "drain"))));
    assert!(TcpStream::connect(server.address).await.is_err());
    assert_eq!(server.task.await.unwrap(), report);
    assert_eq!(server.shutdown.drain(DEADLINE).await, report);
    drop(idle);
}

#[tokio::test]
async fn a_drain_aborts_unresponsive_handlers() {
    let server = start_with(HttpConfig::default(), |accepted: Accepted| async move {
        let _held = accepted;
        std::future::pending::<()>().await;
    })
    .await;
    let mut ws = server.dial().await.unwrap();
    let report = server.shutdown.drain(Duration::from_millis(20)).await;
    assert_eq!((report.finished, report.aborted), (0, 1));
    assert!(!matches!(ws.next().await, Some(Ok(_))));
}

#[tokio::test]
async fn dropping_the_server_cuts_all_connections() {
    let server = start(HttpConfig::default()).await;
    let mut ws = server.dial().await.unwrap();
    server.task.abort();
    assert!(!matches!(ws.next().await, Some(Ok(_))));
    assert_eq!(
        server.shutdown.drain(DEADLINE).await,
        DrainReport::default()
    );
}

#[tokio::test]
async fn a_drain_does_not_wait_for_the_rest_of_a_request() {
    let service = |_: Request<Bytes>, _: std::net::SocketAddr| async {
        Response::new(Bytes::from_static(b"served"))
    };
    let server = start(HttpConfig::default().with_http(service)).await;
    let mut waiting = Vec::new();
    for start in [
        "",
        "GET /rpc.ws HTTP/1.1\r\nHost: loc",
        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nhalf",
    ] {
        let mut tcp = TcpStream::connect(server.address).await.unwrap();
        tcp.write_all(start.as_bytes()).await.unwrap();
        waiting.push(tcp);
    }
    while server.counters.open() < waiting.len() {
        tokio::task::yield_now().await;
    }
    // Far less than the deadlines of requests.
    let report = server.shutdown.drain(Duration::from_secs(5)).await;
    assert_eq!((report.finished, report.aborted), (3, 0));
}
