//! The toy protocol against peers and lines that misbehave, over real sockets.

use std::net::SocketAddr;

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use rpc_core::net::Message;
use rpc_core::{CallError, CloseFrame, CloseReason, Outgoing, Refused, Text};
use switchboard_testing::faults::{End, RawPeer, upgrade_request};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::toy::house::{DEADLINE, House, ask, config, guest};
use crate::toy::net::{self, HostSide, echo};

/// A guest by hand: upgraded, has said hello, and reads nothing from then on.
async fn deaf_guest(address: SocketAddr) -> RawPeer {
    let mut peer = RawPeer::connect_narrow(address).await.unwrap();
    peer.upgrade(&upgrade_request("/", "")).await.unwrap();
    peer.text(r#"{"hello":"deaf"}"#).await.unwrap();
    peer
}

#[tokio::test]
async fn a_client_that_stops_reading_is_disconnected_alone() {
    let mut house = House::open().await;
    let other = house.echoing("ann").await;
    let _line = deaf_guest(house.address).await;
    let deaf = house.room().await;
    let waiting = tokio::spawn({
        let link = deaf.link.clone();
        async move { link.call_with("ask", |m, now| m.ask("?", now)).await }
    });
    let text = "x".repeat(1 << 20);
    loop {
        let text = text.clone();
        match deaf.link.command(move |m, _| m.tell(&text)).await {
            Ok(Ok(())) => {}
            // The outbox is full, or the line was given up before it was.
            Ok(Err(Refused::QueueFull)) | Err(Refused::Closed) => break,
            other => panic!("{other:?}"),
        }
        assert_eq!(ask(&other, "still there?").await, Ok("still there?".into()));
    }
    assert_eq!(deaf.link.closed().await, CloseReason::SlowConsumer);
    let error = waiting.await.unwrap().unwrap_err();
    assert!(
        matches!(
            error,
            CallError::Closed {
                reason: CloseReason::SlowConsumer,
                ..
            }
        ),
        "{error:?}"
    );
    assert_eq!(ask(&other, "and now?").await, Ok("and now?".into()));
    while house.counters.open() > 1 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn garbage_is_skipped_and_the_connection_continues() {
    let mut house = House::open().await;
    let mut guest = house.socket().await;
    let deep = |open: &str, close: &str| open.repeat(100_000) + &close.repeat(100_000);
    for text in [
        String::new(),
        "\0\u{feff}{".to_owned(),
        "[]".to_owned(),
        r#"{"hello":7}"#.to_owned(),
        r#"{"answer":"0123456789abcdef","text":"unknown"}"#.to_owned(),
        r#"{"answer":"\ud800","text":""}"#.to_owned(),
        deep("[", "]"),
        deep("{\"x\":", ""),
        format!("{{\"text\":{}}}", deep("[", "]")),
    ] {
        guest.feed(Outgoing::Text(Text::from(text))).await.unwrap();
    }
    let bytes = Outgoing::Binary(Bytes::from(vec![0xff; 1 << 20]));
    guest.feed(bytes).await.unwrap();
    let hello = Text::from(r#"{"hello":"ann"}"#);
    guest.send(Outgoing::Text(hello)).await.unwrap();
    let room = house.room().await;
    let asked = tokio::spawn(async move { ask(&room, "?").await });
    loop {
        let Message::Text(text) = guest.next().await.unwrap().unwrap() else {
            continue;
        };
        let frame = crate::toy::Frame::decode(text.as_str()).unwrap();
        if let Some(id) = frame.ask {
            let answer = format!(r#"{{"answer":"{id}","text":"sane"}}"#);
            guest.send(Outgoing::Text(answer.into())).await.unwrap();
            break;
        }
    }
    assert_eq!(asked.await.unwrap(), Ok("sane".to_owned()));
}

#[tokio::test]
async fn an_oversized_message_closes_only_its_connection() {
    let mut house = House::open().await;
    let other = house.echoing("ann").await;
    let (mut sink, mut stream) = house.socket().await.split();
    // Or a slow machine is too late for the handshake.
    let hello = Outgoing::Text(Text::from(r#"{"hello":"wild"}"#));
    sink.send(hello).await.unwrap();
    let sending = tokio::spawn(async move {
        let huge = Outgoing::Text(Text::from("x".repeat(16 << 20)));
        let _ = sink.send(huge).await;
        sink
    });
    let mut close = None;
    while let Some(Ok(message)) = stream.next().await {
        if let Message::Close(frame) = message {
            close = frame;
        }
    }
    let _ = sending.await;
    assert_eq!(close.map(|frame| frame.code), Some(CloseFrame::TOO_BIG));
    let doomed = house.rooms.recv().await.unwrap();
    assert_eq!(
        doomed.link.closed().await,
        CloseReason::TooLarge { max: 4 << 20 }
    );
    assert_eq!(ask(&other, "hi").await, Ok("hi".into()));
}

#[tokio::test]
async fn a_violator_that_keeps_sending_gets_the_close_reason() {
    // All of it is read, however slow this machine is.
    let patient = || {
        let mut link = config();
        link.driver.close_timeout = std::time::Duration::from_secs(60);
        link
    };
    let house = House::open_with("127.0.0.1:0".parse().unwrap(), patient).await;
    let mut peer = deaf_guest(house.address).await;
    // More than the buffers of the line hold, so that a reset would meet it.
    let mut huge = b"\x81\xff\0\0\0\0\x01\0\0\0\0\0\0\0".to_vec();
    huge.resize(16 << 20, b'x');
    peer.bytes(&huge).await.unwrap();
    assert_eq!(peer.end().await, End::Close(1009));
}

#[tokio::test]
async fn a_silent_client_is_closed_at_the_handshake_deadline() {
    let mut house = House::open().await;
    let _silent = house.socket().await;
    let room = house.rooms.recv().await.unwrap();
    let reason = CloseReason::HandshakeTimeout { after: DEADLINE };
    assert_eq!(room.link.closed().await, reason);
}

/// A line that goes dead: it forwards the first `pass` bytes of the server, keeps both connections open and
/// forwards nothing more. Returns its address.
async fn dying_line(target: SocketAddr, pass: usize) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect(target).await.unwrap();
            let (client_in, client_out) = client.into_split();
            let (server_in, server_out) = server.into_split();
            tokio::spawn(forward(client_in, server_out, usize::MAX));
            tokio::spawn(forward(server_in, client_out, pass));
        }
    });
    address
}

async fn forward(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    mut pass: usize,
) {
    let mut buffer = [0; 4096];
    while let Ok(n @ 1..) = from.read(&mut buffer).await {
        let n = n.min(pass);
        pass -= n;
        if to.write_all(&buffer[..n]).await.is_err() {
            break;
        }
    }
    // A dead line does not say that it ended.
    std::future::pending::<()>().await;
}

/// The length of the server's answer to the upgrade, so that a proxy can stop right behind it.
async fn answer_length(address: SocketAddr) -> usize {
    let mut peer = RawPeer::connect(address).await.unwrap();
    peer.upgrade(&upgrade_request("/", "")).await.unwrap().len()
}

#[tokio::test]
async fn a_connection_stalled_before_the_upgrade_ends_at_the_connect_timeout() {
    let house = House::open().await;
    let line = dying_line(house.address, 10).await;
    let reason = guest(line, "ann", config()).task.await.unwrap();
    let retryable = matches!(
        reason,
        CloseReason::Connect {
            retryable: true,
            ..
        }
    );
    assert!(retryable, "{reason:?}");
}

#[tokio::test]
async fn a_connection_stalled_after_the_upgrade_ends_at_the_handshake_timeout() {
    let mut house = House::open().await;
    let pass = answer_length(house.address).await;
    drop(house.rooms.recv().await);
    let line = dying_line(house.address, pass).await;
    let reason = guest(line, "ann", config()).task.await.unwrap();
    assert_eq!(reason, CloseReason::HandshakeTimeout { after: DEADLINE });
}

#[tokio::test]
async fn an_accepted_socket_can_be_driven_without_a_server() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(echo(guest(address, "ann", config())));
    let (tcp, _) = listener.accept().await.unwrap();
    let ws = rpc_core::net::ws::WsStream::accept(tcp, &rpc_core::net::ws::WsConfig::default())
        .await
        .unwrap();
    let host = net::End::spawn(rpc_core::net::over(HostSide::default(), ws, config()));
    host.link.ready().await.unwrap();
    let answer = host.link.call_with("ask", |m, now| m.ask("hi", now)).await;
    assert_eq!(answer, Ok("hi".to_owned()));
}
