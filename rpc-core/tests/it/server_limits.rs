//! What a stranger can take from a server: memory for messages that are not whole, and guesses.

use std::sync::Arc;
use std::time::Duration;

use allocation_counter::measure;
use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use http::{Request, Response, StatusCode};
use rpc_core::net::server::HttpConfig;
use rpc_core::net::ws::WsStream;
use rpc_core::net::{DriverConfig, Handle, Message, time};
use rpc_core::{CloseFrame, Outgoing, Text};
use switchboard_testing::faults::{RawFrame, RawPeer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::server::{Running, exchange, limits, start, start_with, upgrade};
use crate::server_crowd::Silent;
use crate::toy::host::Host;

const KIB: usize = 1024;

/// The code with which the server closes.
async fn code(ws: &mut WsStream) -> u16 {
    loop {
        if let Message::Close(close) = ws.next().await.unwrap().unwrap() {
            return close.unwrap().code;
        }
    }
}

/// An upgraded connection that has sent the header of a binary message, and so much of it.
async fn unfinished(server: &Running, len: usize, sent: usize) -> RawPeer {
    let mut peer = RawPeer::connect(server.address).await.unwrap();
    peer.upgrade(&upgrade("")).await.unwrap();
    let header = RawFrame::binary([]).unfinished().announcing(len as u64);
    peer.frame(header).await.unwrap();
    for _ in 0..sent / KIB {
        peer.bytes(&[7; KIB]).await.unwrap();
    }
    peer
}

#[tokio::test]
async fn messages_are_small_until_the_login() {
    let config = limits(|limits| limits.max_before_login = 100);
    for (is_logged_in, expected) in [(false, CloseFrame::TOO_BIG), (true, CloseFrame::NORMAL)] {
        let server = start_with(config.clone(), move |accepted| {
            let handle = Handle::new(Host::new(1, time::now()));
            let answer: fn(&Host) -> bool = if is_logged_in { |_| true } else { |_| false };
            accepted.serve(handle, Silent, DriverConfig::default(), answer)
        })
        .await;
        let mut ws = server.dial().await.unwrap();
        // Longer than what is read at once, so that it is seen before it is whole.
        let long = Text::from("x".repeat(40 * KIB));
        ws.send(Outgoing::Text(long)).await.unwrap();
        if is_logged_in {
            let close = CloseFrame::new(CloseFrame::NORMAL, "");
            ws.send(Outgoing::Close(close)).await.unwrap();
        }
        assert_eq!(code(&mut ws).await, expected);
    }
}

#[tokio::test]
async fn a_message_without_room_gets_1013_and_others_are_received() {
    let server = start(limits(|limits| limits.max_receiving = 4_000 * KIB)).await;
    let mut oldest = unfinished(&server, 900 * KIB, 0).await;
    let _next = unfinished(&server, 100 * KIB, 10 * KIB).await;
    let mut ws = server.dial().await.unwrap();
    let long = "x".repeat(200 * KIB);
    assert_eq!(
        exchange(&mut ws, &long).await,
        Message::Text(Text::from(long))
    );
    let close = oldest.receive().await.unwrap().unwrap();
    assert_eq!(close.close_code(), Some(1013));
}

#[tokio::test]
async fn a_body_without_room_gets_503() {
    let service = |request: Request<Bytes>, _| async move { Response::new(request.into_body()) };
    let config = limits(|limits| limits.max_receiving = 400 * KIB).with_http(service);
    let server = start(config).await;
    let head =
        |len: usize| format!("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len}\r\n\r\n");
    let mut oldest = TcpStream::connect(server.address).await.unwrap();
    oldest.write_all(head(90 * KIB).as_bytes()).await.unwrap();
    // The server has seen the header.
    let _next = unfinished(&server, 20 * KIB, 0).await;
    let mut answer = String::new();
    oldest.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert_eq!(server.status(&head(101 * KIB)).await, "413");
}

#[tokio::test]
async fn two_lengths_of_a_body_get_400() {
    let service = |_: Request<Bytes>, _| async { Response::new(Bytes::new()) };
    let server = start(HttpConfig::default().with_http(service)).await;
    let request = |lengths: &str| format!("POST / HTTP/1.1\r\nHost: localhost\r\n{lengths}\r\nhi");
    let length = "Content-Length: 2\r\n";
    assert_eq!(server.status(&request(length)).await, "200");
    let twice = length.to_owned() + &length.to_ascii_lowercase();
    assert_eq!(server.status(&request(&twice)).await, "400");
}

#[tokio::test]
async fn wrong_keys_are_slowed_down_and_right_ones_are_not() {
    // Each with a brake of its own.
    let config = |is_guessable: bool| {
        HttpConfig::default()
            .with_guessable_secret(move |parts, _| {
                let is_there = parts.uri.path() == "/locked";
                (is_guessable && is_there).then_some("key")
            })
            .with_authorize(|parts, _| {
                let is_open = parts.uri.path() == "/open";
                let is_right = parts.headers.get("x-key").is_some_and(|key| key == "right");
                let mut refusal = Response::new(Bytes::new().into());
                *refusal.status_mut() = StatusCode::UNAUTHORIZED;
                (!is_open && !is_right).then_some(refusal)
            })
            .with_http(|_: Request<Bytes>, _| async { Response::new(Bytes::new()) })
    };
    let request = |path: &str, key: &str| {
        format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nX-Key: {key}\r\n\r\n")
    };
    let (wrong, right) = (request("/locked", "wrong"), request("/locked", "right"));
    for is_guessable in [false, true] {
        let server = start(config(is_guessable)).await;
        for _ in 0..10 {
            assert_eq!(server.status(&wrong).await, "401");
        }
        let patience = Duration::from_millis(300);
        let mut waits = Box::pin(server.ask(&wrong));
        assert!(timeout(patience, &mut waits).await.is_err());
        let answer = timeout(patience, server.status(&right)).await;
        let expected = (!is_guessable).then_some("200");
        assert_eq!(answer.ok().as_deref(), expected);
        // What needs no secret, or another one, never waits.
        for path in ["/open", "/other"] {
            let open = timeout(patience, server.status(&request(path, "right"))).await;
            assert_eq!(open.unwrap(), "200");
        }
    }
}

/// The sum in the guide, `limits`: what a server holds of what it receives.
fn worst_case(receiving: usize, connections: usize) -> usize {
    receiving + connections * 48 * KIB
}

#[test]
fn what_a_server_receives_is_at_most_the_sum_of_its_limits() {
    const CONNECTIONS: usize = 40;
    let receiving = 4_000 * KIB;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let config = limits(|limits| limits.max_receiving = receiving);
    let server = Arc::new(runtime.block_on(start(config)));
    let mut clients = Vec::with_capacity(CONNECTIONS);
    let info = measure(|| {
        runtime.block_on(async {
            for at in 0..CONNECTIONS {
                let len = if at % 2 == 0 { 15 * KIB } else { 900 * KIB };
                clients.push(unfinished(&server, len, len - KIB).await);
            }
        });
    });
    let (held, most) = (info.bytes_max, info.bytes_current);
    println!("{CONNECTIONS} unfinished messages: {most} bytes, at most {held}");
    assert!(
        held < worst_case(receiving, CONNECTIONS) as u64,
        "{held} bytes"
    );
}
