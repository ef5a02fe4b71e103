//! How a WebSocket begins and ends: handshakes and Closes, byte by byte.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{FutureExt as _, SinkExt as _, StreamExt as _};
use rpc_core::net::ws::{Role, WsConfig, WsDialer, WsStream};
use rpc_core::net::{DialError, Message, TransportError};
use rpc_core::{CloseFrame, Outgoing, Text};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

/// A client's end, and the bytes of its peer: a server masks nothing.
async fn client() -> (WsStream<DuplexStream>, DuplexStream) {
    let (ours, theirs) = duplex(64 * 1024);
    let config = WsConfig::default();
    (
        WsStream::from_upgraded(ours, Bytes::new(), Role::Client, &config).await,
        theirs,
    )
}

/// A server's end, and the bytes of its peer.
async fn server() -> (WsStream<DuplexStream>, DuplexStream) {
    let (ours, theirs) = duplex(64 * 1024);
    let config = WsConfig::default();
    (
        WsStream::from_upgraded(ours, Bytes::new(), Role::Server, &config).await,
        theirs,
    )
}

async fn everything(mut peer: DuplexStream) -> Vec<u8> {
    let mut all = Vec::new();
    peer.read_to_end(&mut all).await.unwrap();
    all
}

fn close(code: u16) -> Outgoing {
    Outgoing::Close(CloseFrame::new(code, ""))
}

#[tokio::test]
async fn simultaneous_closes_are_not_answered() {
    let (mut ws, mut peer) = server().await;
    ws.send(close(1000)).await.unwrap();
    peer.write_all(b"\x88\x82\0\0\0\0\x03\xe9").await.unwrap();
    let theirs = Message::Close(Some(CloseFrame::new(1001, "")));
    assert_eq!(ws.next().await.unwrap().unwrap(), theirs);
    assert!(ws.next().await.is_none());
    drop(ws);
    assert_eq!(everything(peer).await, b"\x88\x02\x03\xe8");
}

#[tokio::test]
async fn frames_after_the_peers_close_are_ignored() {
    let (mut ws, mut peer) = client().await;
    peer.write_all(b"\x88\x00\x81\x04late\xff\xff")
        .await
        .unwrap();
    assert_eq!(ws.next().await.unwrap().unwrap(), Message::Close(None));
    assert!(ws.next().await.is_none());
    assert!(ws.next().await.is_none());
}

#[tokio::test]
async fn a_close_without_a_code_is_answered_without_one() {
    let (mut ws, mut peer) = server().await;
    peer.write_all(b"\x88\x80\0\0\0\0").await.unwrap();
    assert_eq!(ws.next().await.unwrap().unwrap(), Message::Close(None));
    assert!(ws.next().await.is_none());
    drop(ws);
    assert_eq!(everything(peer).await, b"\x88\x00");
}

#[tokio::test]
async fn after_our_close_messages_arrive_but_pings_are_not_answered() {
    let (mut ws, mut peer) = server().await;
    ws.send(close(1001)).await.unwrap();
    peer.write_all(b"\x89\x80\0\0\0\0\x81\x82\0\0\0\0hi")
        .await
        .unwrap();
    assert_eq!(
        ws.next().await.unwrap().unwrap(),
        Message::Ping(Bytes::new())
    );
    assert_eq!(
        ws.next().await.unwrap().unwrap(),
        Message::Text(Text::from("hi"))
    );
    assert!(matches!(
        ws.send(Outgoing::Ping(Bytes::new())).await,
        Err(TransportError::Closed)
    ));
    drop(ws);
    assert_eq!(everything(peer).await, b"\x88\x02\x03\xe9");
}

#[tokio::test]
async fn a_bad_close_is_an_error_and_reported_to_the_peer() {
    for (payload, code) in [
        (&b"\x03"[..], 1002_u16),
        (b"\x03\xed", 1002),
        (b"\x03\xe8\xff", 1007),
    ] {
        let (mut ws, mut peer) = client().await;
        let len = u8::try_from(payload.len()).unwrap();
        peer.write_all(&[&[0x88, len], payload].concat())
            .await
            .unwrap();
        let error = ws.next().await.unwrap().unwrap_err();
        assert!(matches!(error, TransportError::Protocol(_)), "{error:?}");
        assert!(ws.next().await.is_none());
        drop(ws);
        let reported = everything(peer).await;
        let len = usize::from(reported[1] & 0x7f);
        assert_eq!(
            (reported[0], reported.len()),
            (0x88, 2 + 4 + len),
            "one masked Close"
        );
        let reported = u16::from_be_bytes([reported[6] ^ reported[2], reported[7] ^ reported[3]]);
        assert_eq!(reported, code);
    }
}

#[tokio::test]
async fn a_connection_lost_inside_a_frame_ends_stream_and_sink() {
    let (mut ws, mut peer) = client().await;
    peer.write_all(b"\x81\x05hel").await.unwrap();
    peer.shutdown().await.unwrap();
    assert!(ws.next().await.is_none());
    let late = Outgoing::Text(Text::from("late"));
    assert!(matches!(ws.send(late).await, Err(TransportError::Closed)));
    assert!(matches!(
        ws.send(close(1000)).await,
        Err(TransportError::Closed)
    ));
}

#[tokio::test]
async fn a_flood_of_pings_is_answered_ping_by_ping() {
    let (mut ws, mut peer) = client().await;
    peer.write_all(&b"\x89\x01p".repeat(1000)).await.unwrap();
    for _ in 0..1000 {
        let ping = ws.next().await;
        assert!(matches!(ping, Some(Ok(Message::Ping(_)))));
    }
    drop(ws);
    assert_eq!(everything(peer).await.len(), 1000 * (2 + 4 + 1));
}

/// Reads a request and gives the accept key that fits it.
async fn request(peer: &mut DuplexStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        assert_ne!(peer.read_buf(&mut head).await.unwrap(), 0);
    }
    String::from_utf8(head).unwrap()
}

/// A real server's answer to the request.
async fn answer_to(request: &str) -> String {
    let (ours, mut theirs) = duplex(64 * 1024);
    theirs.write_all(request.as_bytes()).await.unwrap();
    let ws = WsStream::accept(ours, &WsConfig::default()).await.unwrap();
    drop(ws);
    String::from_utf8(everything(theirs).await).unwrap()
}

/// The same, of a request that may be refused.
async fn any_answer_to(request: &str) -> String {
    let (ours, mut theirs) = duplex(64 * 1024);
    theirs.write_all(request.as_bytes()).await.unwrap();
    drop(WsStream::accept(ours, &WsConfig::default()).await);
    String::from_utf8(everything(theirs).await).unwrap()
}

/// Dials a server that answers with what `change` makes of a good answer.
async fn dial(
    dialer: WsDialer,
    change: impl Fn(String) -> Vec<u8>,
) -> Result<WsStream<DuplexStream>, DialError> {
    let (ours, mut theirs) = duplex(1024 * 1024);
    let answering = async {
        let request = request(&mut theirs).await;
        let answer = change(answer_to(&request).await);
        theirs.write_all(&answer).await.unwrap();
        theirs
    };
    let (dialled, _open) = tokio::join!(dialer.upgrade(ours), answering);
    dialled
}

fn dialer() -> WsDialer {
    WsDialer::new("ws://example.com/").unwrap()
}

#[tokio::test]
async fn frames_right_after_the_upgrade_response_are_read() {
    let mut ws = dial(dialer(), |answer| {
        [answer.as_bytes(), b"\x81\x05hello\x81\x02hi"].concat()
    })
    .await
    .unwrap();
    for text in ["hello", "hi"] {
        let message = ws.next().await.unwrap().unwrap();
        assert_eq!(message, Message::Text(Text::from(text)));
    }
}

#[tokio::test]
async fn frames_right_after_the_upgrade_request_are_read() {
    let (ours, mut theirs) = duplex(4096);
    theirs
        .write_all(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n\x81\x82\0\0\0\0hi")
        .await
        .unwrap();
    let mut ws = WsStream::accept(ours, &WsConfig::default()).await.unwrap();
    assert_eq!(
        ws.next().await.unwrap().unwrap(),
        Message::Text(Text::from("hi"))
    );
    drop(ws);
    let answer = everything(theirs).await;
    let accept = b"\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n";
    assert!(answer.windows(accept.len()).any(|part| part == accept));
}

#[tokio::test]
async fn a_response_arriving_byte_by_byte_is_read() {
    let (ours, mut theirs) = duplex(1);
    let answering = async {
        let request = request(&mut theirs).await;
        let answer = answer_to(&request).await + "\u{1}";
        theirs.write_all(answer.as_bytes()).await.unwrap();
        theirs
    };
    let dialer = dialer();
    let (dialled, _open) = tokio::join!(dialer.upgrade(ours), answering);
    dialled.unwrap();
}

#[tokio::test]
async fn a_mismatched_upgrade_response_is_refused() {
    let cases: [(&str, &str, &str); 5] = [
        ("Sec-WebSocket-Accept: ", "Sec-WebSocket-Accept: x", "key"),
        ("Upgrade: websocket", "Upgrade: h2c", "switch"),
        ("Connection: Upgrade", "Connection: close", "switch"),
        (
            "\r\n\r\n",
            "\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n",
            "extension",
        ),
        (
            "\r\n\r\n",
            "\r\nSec-WebSocket-Protocol: a\r\n\r\n",
            "not offered",
        ),
    ];
    for (part, other, why) in cases {
        let error = dial(dialer(), |answer| answer.replace(part, other).into())
            .await
            .unwrap_err();
        assert!(matches!(error, DialError::Handshake(_)), "{error:?}");
        assert!(error.to_string().contains(why), "{error}");
    }
}

#[tokio::test]
async fn a_server_may_select_one_offered_subprotocol_or_none() {
    let selecting = |selected: &'static str| {
        let offering = dialer().with_subprotocol("a").unwrap();
        let offering = offering.with_subprotocol("b").unwrap();
        dial(offering, move |answer| {
            answer
                .replace("\r\n\r\n", &format!("\r\n{selected}\r\n"))
                .into()
        })
    };
    for (selected, expected) in [("", None), ("Sec-WebSocket-Protocol: b\r\n", Some("b"))] {
        let agreed = selecting(selected).await.unwrap();
        assert_eq!(agreed.subprotocol(), expected);
    }
    for (selected, why) in [
        ("Sec-WebSocket-Protocol: c\r\n", "not offered"),
        ("Sec-WebSocket-Protocol: a, b\r\n", "not offered"),
        (
            "Sec-WebSocket-Protocol: a\r\nSec-WebSocket-Protocol: a\r\n",
            "several",
        ),
    ] {
        let error = selecting(selected).await.unwrap_err();
        assert!(matches!(error, DialError::Handshake(_)), "{error:?}");
        assert!(error.to_string().contains(why), "{error}");
    }
}

#[tokio::test]
async fn an_endless_response_is_refused() {
    let error = dial(dialer(), |_| {
        let mut endless = b"HTTP/1.1 101 Switching Protocols\r\nx: ".to_vec();
        endless.resize(100_000, b'x');
        endless
    })
    .await
    .unwrap_err();
    assert!(error.to_string().contains("too large"), "{error}");
}

#[tokio::test]
async fn non_http_bytes_are_refused_by_both_ends() {
    let error = dial(dialer(), |_| b"SSH-2.0-OpenSSH_9.2\r\n\r\n".to_vec())
        .await
        .unwrap_err();
    assert!(matches!(error, DialError::Handshake(_)), "{error:?}");
    let (ours, mut theirs) = duplex(4096);
    theirs.write_all(b"\x16\x03\x01\x02\x00\x01").await.unwrap();
    let config = WsConfig {
        connect_timeout: Duration::from_secs(5),
        ..WsConfig::default()
    };
    let error = WsStream::accept(ours, &config).await.unwrap_err();
    assert!(matches!(error, TransportError::Protocol(_)), "{error:?}");
}

#[tokio::test]
async fn a_large_message_is_sent_whole_before_the_close_reply() {
    let (ours, mut peer) = duplex(1024);
    let config = WsConfig::default();
    let mut ws = WsStream::from_upgraded(ours, Bytes::new(), Role::Server, &config).await;
    let message = Outgoing::Binary(vec![7; 65_537].into());
    ws.feed(message).await.unwrap();
    peer.write_all(b"\x88\x82\0\0\0\0\x03\xe8").await.unwrap();
    let reading = async {
        let mut frames = Vec::new();
        while !frames.ends_with(b"\x88\x02\x03\xe8") {
            assert_ne!(peer.read_buf(&mut frames).await.unwrap(), 0, "cut off");
        }
        frames.len()
    };
    let closing = async {
        let close = Message::Close(Some(CloseFrame::new(1000, "")));
        assert_eq!(ws.next().await.unwrap().unwrap(), close);
        assert!(ws.next().await.is_none());
    };
    let (len, ()) = tokio::join!(reading, closing);
    assert_eq!(len, (10 + 65_536) + (2 + 1) + 4);
}

#[tokio::test]
async fn a_close_with_1002_from_the_peer_is_not_an_error() {
    for reason in ["", "Protocol violation"] {
        let (mut ws, mut peer) = client().await;
        let length = u8::try_from(2 + reason.len()).unwrap();
        let close = [&[0x88, length, 0x03, 0xea], reason.as_bytes()].concat();
        peer.write_all(&close).await.unwrap();
        let close = Message::Close(Some(CloseFrame::new(1002, reason)));
        assert_eq!(ws.next().await.unwrap().unwrap(), close);
    }
}

#[tokio::test]
async fn small_fragments_are_reported_after_the_first_32() {
    let (mut ws, mut peer) = server().await;
    let frames = [
        &b"\x01\x80\0\0\0\0"[..],
        &b"\0\x80\0\0\0\0".repeat(39),
        b"\x80\x82\0\0\0\0hi",
    ]
    .concat();
    peer.write_all(&frames).await.unwrap();
    for _ in 0..8 {
        assert_eq!(ws.next().await.unwrap().unwrap(), Message::Fragment);
    }
    let whole = Message::Text(Text::from("hi"));
    assert_eq!(ws.next().await.unwrap().unwrap(), whole);
    assert!(ws.next().now_or_never().is_none());
}

#[tokio::test]
async fn informational_responses_are_skipped_and_two_accepts_refused() {
    let early = |answer: String| format!("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n{answer}");
    dial(dialer(), |answer| early(answer.to_owned()).into())
        .await
        .unwrap();
    let second = "Upgrade: websocket\r\nSec-WebSocket-Accept: x";
    let refused = dial(dialer(), |answer| {
        answer.replace("Upgrade: websocket", second).into()
    });
    assert!(matches!(refused.await, Err(DialError::Handshake(_))));
}

#[tokio::test]
async fn a_refused_upgrade_has_a_one_line_reason() {
    for (status, headers, body, reason) in [
        (
            "503",
            "Retry-After: 7\r\n",
            "too \x1b[31mmany\r\nclients",
            "too [31mmany clients (again in 7 s)",
        ),
        (
            "404",
            "",
            "\n<!doctype html>\n<p>Not here",
            "a page in HTML or XML",
        ),
        (
            "308",
            "Location: wss://b.example/x?token=hunter2\r\n",
            "<p>Moved",
            "moved to wss://b.example/x",
        ),
        ("200", "Location: /elsewhere\r\n", "yes", "yes"),
    ] {
        let refused = dial(dialer(), |_| {
            let length = body.len();
            format!("HTTP/1.1 {status} No\r\n{headers}Content-Length: {length}\r\n\r\n{body}")
                .into()
        });
        let printed = refused.await.unwrap_err().to_string();
        assert!(
            printed.ends_with(&format!("WebSocket: {reason}")),
            "{printed}"
        );
    }
}

#[tokio::test]
async fn a_bad_request_is_answered_with_the_reason() {
    let request = "GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                   Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    for (part, other, status) in [
        ("\r\n\r\n", "\r\nContent-Length: 3\r\n\r\nabc", "400"),
        ("websocket\r\n", "websocket\n", "400"),
        ("\r\n\r\n", "\r\nSec-WebSocket-Version: 12\r\n\r\n", "426"),
        ("Connection: Upgrade\r\n", "", "400"),
        ("GET", "POST", "405"),
    ] {
        let answer = any_answer_to(&request.replacen(part, other, 1)).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{answer}"
        );
    }
    let strange = request.replacen("Upgrade\r\n", "Upgrade, \u{e9}\r\n", 1);
    assert!(any_answer_to(&strange).await.starts_with("HTTP/1.1 101 "));
}
