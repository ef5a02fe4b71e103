//! More connections than there is room for: who makes room, who is refused, and how.

use bytes::Bytes;
use futures_util::SinkExt as _;
use http::{Request, Response};
use rpc_core::net::server::{Accepted, Guards, HttpConfig, PeerPolicy, ServerLimits};
use rpc_core::net::{self, ConnectionHandler, DialError, DriverConfig, Handle, Message, time};
use rpc_core::{CloseReason, Text};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use crate::server::{Running, Server, exchange, limits, start, start_with, upgrade};
use crate::toy::host::{Host, HostEvent};

/// Connects, and waits until the server has taken the connection.
async fn silent(server: &Running) -> TcpStream {
    let before = server.counters.open();
    let tcp = TcpStream::connect(server.address).await.unwrap();
    while server.counters.open() == before {
        tokio::task::yield_now().await;
    }
    tcp
}

/// What is still said to a connection.
async fn rest(tcp: &mut TcpStream) -> String {
    let mut rest = String::new();
    tcp.read_to_string(&mut rest).await.unwrap();
    rest
}

#[tokio::test]
async fn at_the_cap_the_oldest_connection_without_a_request_makes_room() {
    let server = start(limits(|limits| limits.max_connections = 3)).await;
    let mut upgraded = server.dial().await.unwrap();
    let mut oldest = silent(&server).await;
    let mut second = silent(&server).await;
    second
        .write_all(b"GET /rpc.ws HTTP/1.1\r\nHos")
        .await
        .unwrap();

    let mut third = server.dial().await.unwrap();
    let reported = rest(&mut oldest).await;
    assert!(reported.starts_with("HTTP/1.1 503 "), "{reported}");
    assert!(
        reported.ends_with("there are too many connections"),
        "{reported}"
    );
    assert_eq!(server.counters.open(), 3);

    let mut fourth = server.dial().await.unwrap();
    assert!(rest(&mut second).await.starts_with("HTTP/1.1 503 "));
    assert_eq!(server.counters.over_limit(), 2);

    // No one is left who has not asked for anything.
    assert_eq!(server.status(&upgrade("")).await, "503");
    for ws in [&mut upgraded, &mut third, &mut fourth] {
        let echo = exchange(ws, "still here").await;
        assert_eq!(echo, Message::Text(Text::from("still here")));
    }
}

#[tokio::test]
async fn a_connection_awaiting_a_response_is_kept() {
    let service = |_: Request<Bytes>, _: std::net::SocketAddr| async {
        std::future::pending::<Response<Bytes>>().await
    };
    let config = limits(|limits| limits.max_connections = 1).with_http(service);
    let server = start(config).await;
    let mut asks = silent(&server).await;
    let request = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nhi";
    asks.write_all(&request[..request.len() - 1]).await.unwrap();
    let mut next = silent_at_the_cap(&server, &mut asks).await;
    next.write_all(request).await.unwrap();
    while server.status(&upgrade("")).await != "503" {}
    assert_eq!(server.counters.open(), 1);
}

/// The next connection, which has the place of one with half a request.
async fn silent_at_the_cap(server: &Running, evicted: &mut TcpStream) -> TcpStream {
    let next = TcpStream::connect(server.address).await.unwrap();
    assert!(rest(evicted).await.starts_with("HTTP/1.1 503 "));
    next
}

#[tokio::test]
async fn every_refused_connection_gets_503() {
    let server = start(limits(|limits| limits.max_connections = 1)).await;
    let _first = server.dial().await.unwrap();
    let request = upgrade("");
    let asks = (0..300).map(|_| server.status(&request));
    let statuses = futures_util::future::join_all(asks).await;
    assert!(statuses.iter().all(|status| status == "503"));
}

#[tokio::test]
async fn one_address_gets_a_quarter_of_a_public_server() {
    let limits = ServerLimits {
        max_connections: 8,
        ..ServerLimits::default()
    };
    let only_here = Guards {
        peers: PeerPolicy::LocalhostOnly,
        ..Guards::default()
    };
    for (address, guards, most) in [
        ("0.0.0.0:0", Guards::default(), 2),
        ("0.0.0.0:0", only_here, 8),
        ("127.0.0.1:0", Guards::default(), 8),
    ] {
        let config = HttpConfig {
            guards,
            ..HttpConfig::default()
        };
        let config = HttpConfig {
            limits: limits.clone(),
            ..config
        };
        let hold = |accepted: Accepted| async move {
            let _held = accepted;
            std::future::pending::<()>().await;
        };
        let server = Server::bind(address, hold, config).await.unwrap();
        let port = server.local_addr().port();
        let url = format!("ws://127.0.0.1:{port}");
        let running = tokio::spawn(server.run());
        let mut held = Vec::new();
        let error = loop {
            match net::Dialer::dial(&dialer(&url)).await {
                Ok(ws) => held.push(ws),
                Err(error) => break error,
            }
        };
        assert_eq!(held.len(), most, "{address}");
        assert!(matches!(error, DialError::Status { status: 503, .. }));
        running.abort();
    }
}

fn dialer(url: &str) -> net::ws::WsDialer {
    net::ws::WsDialer::new(url).unwrap()
}

#[tokio::test]
async fn connections_of_one_address_evict_each_other() {
    let limits = limits(|limits| limits.max_connections_per_ip = Some(2));
    let server = start(limits).await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
    let mut other = socket.connect(server.address).await.unwrap();
    let mut first = silent(&server).await;
    let _second = silent(&server).await;
    let _third = server.dial().await.unwrap();
    let reported = rest(&mut first).await;
    assert!(
        reported.ends_with("there are too many connections"),
        "{reported}"
    );
    other.write_all(upgrade("").as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    other.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 101");
}

/// A connection of another address, which the server has taken.
async fn silent_stranger(server: &Running) -> TcpStream {
    let before = server.counters.open();
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
    let tcp = socket.connect(server.address).await.unwrap();
    while server.counters.open() == before {
        tokio::task::yield_now().await;
    }
    tcp
}

#[tokio::test]
async fn the_busiest_address_makes_room_first() {
    let limits = limits(|limits| {
        limits.max_connections = 3;
        limits.max_connections_per_ip = Some(3);
    });
    let server = start(limits).await;
    let mut oldest = silent_stranger(&server).await;
    let mut first = silent(&server).await;
    let _second = silent(&server).await;
    let _third = server.dial().await.unwrap();
    assert!(rest(&mut first).await.starts_with("HTTP/1.1 503 "));
    oldest.write_all(upgrade("").as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    oldest.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 101");
}

#[tokio::test]
async fn an_idle_answered_connection_makes_room() {
    let server = start(limits(|limits| limits.max_connections = 1)).await;
    let mut lingers = TcpStream::connect(server.address).await.unwrap();
    let request = b"GET /elsewhere HTTP/1.1\r\nHost: localhost\r\n\r\n";
    lingers.write_all(request).await.unwrap();
    let answer = rest(&mut lingers).await;
    assert!(answer.starts_with("HTTP/1.1 426 "), "{answer}");
    // The server waits for the end of the other side.
    assert_eq!(server.counters.open(), 1);
    let _next = server.dial().await.unwrap();
    assert_eq!(server.counters.over_limit(), 1);
}

#[tokio::test]
async fn an_address_can_be_limited_to_zero_connections() {
    let server = start(limits(|limits| limits.max_connections_per_ip = Some(0))).await;
    assert_eq!(server.status(&upgrade("")).await, "503");
}

#[tokio::test]
async fn a_connection_over_the_cap_gets_503_until_one_ends() {
    let server = start(limits(|limits| limits.max_connections = 1)).await;
    let mut first = server.dial().await.unwrap();
    let error = server.dial().await.unwrap_err();
    assert!(
        matches!(error, DialError::Status { status: 503, .. }),
        "{error:?}"
    );
    assert!(error.is_retryable());
    assert_eq!(server.counters.over_limit(), 1);
    first.close().await.unwrap();
    while server.dial().await.is_err() {}
}

#[tokio::test]
async fn a_connection_over_the_cap_of_its_address_gets_503() {
    let server = start(limits(|limits| limits.max_connections_per_ip = Some(1))).await;
    let mut first = server.dial().await.unwrap();
    let error = server.dial().await.unwrap_err();
    assert!(
        matches!(error, DialError::Status { status: 503, .. }),
        "{error:?}"
    );
    first.close().await.unwrap();
    while server.dial().await.is_err() {}
}

/// Asks from this address and reads to the end.
async fn ask_from(local: &str, server: &Running, request: &str) -> String {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(local.parse().unwrap()).unwrap();
    let mut tcp = socket.connect(server.address).await.unwrap();
    tcp.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    tcp.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn a_refused_peer_gets_403_from_a_full_server() {
    let guards = Guards {
        peers: PeerPolicy::LocalhostOnly,
        ..Guards::default()
    };
    let config = HttpConfig {
        guards,
        ..limits(|limits| limits.max_connections = 1)
    };
    let server = start(config).await;
    let request = upgrade("");
    let stranger = || ask_from("127.0.0.2:0", &server, &request);
    let answer = stranger().await;
    assert!(answer.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{answer}");
    assert!(
        answer.ends_with("\r\n\r\nForbidden: Non-localhost connections not allowed"),
        "{answer}"
    );
    let _first = server.dial().await.unwrap();
    assert!(stranger().await.starts_with("HTTP/1.1 403 "));
    assert_eq!(server.status(&upgrade("")).await, "503");
    let counted = (server.counters.rejected(), server.counters.over_limit());
    assert_eq!(counted, (2, 1));
}

/// Does nothing about what a guest says.
pub struct Silent;

impl ConnectionHandler for Silent {
    type Machine = Host;
    const SYSTEM: &'static str = "toy";

    fn on_event(&mut self, _: HostEvent, _: &mut net::Running) -> Option<CloseReason> {
        None
    }

    fn shut_down(&mut self, _: &mut net::Running) {}
}

#[tokio::test]
async fn an_unauthenticated_websocket_makes_room() {
    for is_full in [false, true] {
        let limits = match is_full {
            false => limits(|limits| limits.max_connections = 2),
            true => limits(|limits| limits.max_websockets = Some(2)),
        };
        for (is_logged_in, has_room) in [(false, true), (true, false)] {
            let server = start_with(limits.clone(), move |accepted| {
                let handle = Handle::new(Host::new(1, time::now()));
                let answer: fn(&Host) -> bool = if is_logged_in { |_| true } else { |_| false };
                accepted.serve(handle, Silent, DriverConfig::default(), answer)
            })
            .await;
            let mut open = Vec::new();
            for _ in 0..2 {
                open.push(server.dial().await.unwrap());
            }
            while is_logged_in && server.counters.upgraded() < 2 {
                tokio::task::yield_now().await;
            }
            for _ in 0..5 {
                let dialled = server.dial().await;
                assert_eq!(dialled.is_ok(), has_room, "{dialled:?}");
                open.extend(dialled);
            }
        }
    }
}
