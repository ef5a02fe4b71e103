//! The rules of RFC 6455 for frames, byte by byte, as the Autobahn suite checks them.

use bytes::Bytes;
use futures_util::{FutureExt as _, SinkExt as _, StreamExt as _};
use proptest::prelude::*;
use rpc_core::net::ws::{Role, WsConfig, WsStream};
use rpc_core::net::{Message, TransportError};
use rpc_core::{CloseFrame, Outgoing, Text};
use switchboard_testing::faults::RawFrame;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

pub const MAX: usize = 70_000;
pub const ROLES: [(Role, Role); 2] = [(Role::Client, Role::Server), (Role::Server, Role::Client)];

async fn open(role: Role) -> (WsStream<DuplexStream>, DuplexStream) {
    let (ours, theirs) = duplex(1024 * 1024);
    let config = WsConfig {
        max_message: MAX,
        ..WsConfig::default()
    };
    let ws = WsStream::from_upgraded(ours, Bytes::new(), role, &config).await;
    (ws, theirs)
}

/// What a peer's bytes come to: the messages, the error behind them, and what the peer is told.
pub struct Outcome {
    pub messages: Vec<Message>,
    pub error: Option<TransportError>,
    pub replies: Vec<u8>,
}

pub async fn outcome<'a>(role: Role, chunks: impl IntoIterator<Item = &'a [u8]>) -> Outcome {
    let (mut ws, mut peer) = open(role).await;
    let (mut messages, mut error) = (Vec::new(), None);
    let mut take = |next| match next {
        Ok(message) => messages.push(message),
        Err(why) => error = Some(why),
    };
    for chunk in chunks {
        peer.write_all(chunk).await.unwrap();
        while let Some(Some(next)) = ws.next().now_or_never() {
            take(next);
        }
    }
    peer.shutdown().await.unwrap();
    while let Some(next) = ws.next().await {
        take(next);
    }
    drop(ws);
    let mut replies = Vec::new();
    peer.read_to_end(&mut replies).await.unwrap();
    Outcome {
        messages,
        error,
        replies,
    }
}

/// What a server makes of a client's frames.
async fn read(frames: impl IntoIterator<Item = RawFrame>) -> Outcome {
    let frames = frames.into_iter();
    let frames: Vec<_> = frames.map(|it| it.into_bytes(Role::Client)).collect();
    outcome(Role::Server, [&frames.concat()[..]]).await
}

/// The code with which frames are refused, which is the last that a client hears.
async fn code(frames: impl IntoIterator<Item = RawFrame>) -> u16 {
    let Outcome { error, replies, .. } = read(frames).await;
    assert!(error.is_some(), "not refused");
    let close = replies.iter().rposition(|byte| *byte == 0x88).unwrap();
    u16::from_be_bytes([replies[close + 2], replies[close + 3]])
}

pub fn text(text: &str) -> Message {
    Message::Text(Text::from(text))
}

#[tokio::test]
async fn messages_of_any_length_pass_between_both_roles() {
    for (role, other) in ROLES {
        let (ours, theirs) = duplex(1000);
        let config = WsConfig {
            max_message: MAX,
            ..WsConfig::default()
        };
        let mut ours = WsStream::from_upgraded(ours, Bytes::new(), role, &config).await;
        let mut theirs = WsStream::from_upgraded(theirs, Bytes::new(), other, &config).await;
        for len in [0, 1, 125, 126, 127, 65_535, 65_536, 65_537, MAX] {
            let payload = Bytes::from(vec![7; len]);
            let sent = ours.send(Outgoing::Binary(payload.clone()));
            let (sent, got) = tokio::join!(sent, theirs.next());
            sent.unwrap();
            assert_eq!(got.unwrap().unwrap(), Message::Binary(payload));
        }
    }
}

#[tokio::test]
async fn only_what_a_client_sends_is_masked() {
    for (role, masked) in [(Role::Client, 0x80), (Role::Server, 0)] {
        let (mut ws, mut peer) = open(role).await;
        ws.send(Outgoing::Text(Text::from("hi"))).await.unwrap();
        let mut bytes = vec![0; if masked == 0 { 4 } else { 8 }];
        peer.read_exact(&mut bytes).await.unwrap();
        assert_eq!(bytes[..2], [0x81, masked | 2]);
        if let [_, _, a, b, _, _, h, i] = bytes[..] {
            assert_eq!([h ^ a, i ^ b], *b"hi");
        }
    }
}

#[tokio::test]
async fn a_message_of_more_than_64_kib_leaves_in_several_frames_and_in_order() {
    let (mut ws, mut peer) = open(Role::Server).await;
    let large = Bytes::from(vec![7; 150_000]);
    ws.feed(Outgoing::Binary(large)).await.unwrap();
    ws.feed(Outgoing::Text(Text::from("next"))).await.unwrap();
    ws.close().await.unwrap();
    let mut all = Vec::new();
    peer.read_to_end(&mut all).await.unwrap();
    let mut frames = Vec::new();
    let mut rest = &all[..];
    while let [first, len, after @ ..] = rest {
        let (len, after) = match len {
            126 => (
                usize::from(u16::from_be_bytes([after[0], after[1]])),
                &after[2..],
            ),
            127 => (
                usize::from_str_radix(&hex(&after[..8]), 16).unwrap(),
                &after[8..],
            ),
            len => (usize::from(*len), after),
        };
        frames.push((*first, len));
        rest = &after[len..];
    }
    let pieces = [(0x02, 65_536), (0x00, 65_536), (0x80, 150_000 - 2 * 65_536)];
    assert_eq!(frames, [&pieces[..], &[(0x81, 4), (0x88, 2)]].concat());
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test]
async fn pings_of_any_length_are_answered_in_order_and_pongs_are_not() {
    let pings = || (0..=125_u8).map(|len| RawFrame::ping(vec![len; len.into()]));
    let Outcome {
        messages, replies, ..
    } = read(pings().chain([RawFrame::pong(*b"hi")])).await;
    assert_eq!(messages.len(), 127);
    assert_eq!(messages[126], Message::Pong(Bytes::from_static(b"hi")));
    let pongs = (0..=125_u8).map(|len| RawFrame::pong(vec![len; len.into()]));
    let pongs: Vec<_> = pongs.map(|pong| pong.into_bytes(Role::Server)).collect();
    assert_eq!(replies, pongs.concat());
}

#[tokio::test]
async fn a_control_frame_passes_whatever_the_limit() {
    let (ours, mut peer) = duplex(1024);
    let config = WsConfig {
        max_message: 0,
        ..WsConfig::default()
    };
    let mut ws = WsStream::from_upgraded(ours, Bytes::new(), Role::Server, &config).await;
    let ping = RawFrame::ping([7; 125]).into_bytes(Role::Client);
    peer.write_all(&ping).await.unwrap();
    let ping = Message::Ping(Bytes::from_static(&[7; 125]));
    assert_eq!(ws.next().await.unwrap().unwrap(), ping);
}

#[tokio::test]
async fn close_codes_for_the_wire_are_echoed_and_no_others() {
    let closing = |code: u16, reason: &str| {
        RawFrame::new(0x88, [&code.to_be_bytes(), reason.as_bytes()].concat())
    };
    for code in [
        1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3999, 4000,
        4999,
    ] {
        let reason = "r".repeat(123);
        let Outcome {
            messages, replies, ..
        } = read([closing(code, &reason)]).await;
        assert_eq!(
            messages,
            [Message::Close(Some(CloseFrame::new(code, &reason)))]
        );
        assert_eq!(replies, closing(code, &reason).into_bytes(Role::Server));
    }
    for bad in [
        0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535,
    ] {
        assert_eq!(code([closing(bad, "")]).await, 1002, "{bad}");
        assert_eq!(code([closing(bad, "why")]).await, 1002, "{bad}");
        let (mut ws, mut peer) = open(Role::Server).await;
        let close = CloseFrame::new(bad, "x");
        ws.send(Outgoing::Close(close)).await.unwrap();
        drop(ws);
        let mut replies = Vec::new();
        peer.read_to_end(&mut replies).await.unwrap();
        assert_eq!(replies, b"\x88\x00", "{bad}");
    }
    assert_eq!(code([RawFrame::new(0x88, [3])]).await, 1002);
    assert_eq!(code([RawFrame::new(0x88, *b"\x03\xe8\xff")]).await, 1007);
}

#[tokio::test]
async fn a_bad_close_code_in_answer_to_ours_is_an_error() {
    let (mut ws, mut peer) = open(Role::Client).await;
    ws.send(Outgoing::Close(CloseFrame::new(1000, "")))
        .await
        .unwrap();
    peer.write_all(b"\x88\x02\x03\xed").await.unwrap();
    let error = ws.next().await.unwrap().unwrap_err();
    assert!(matches!(error, TransportError::Protocol(_)), "{error:?}");
}

/// The bytes in pieces of these sizes, over and over.
pub fn pieces<'a>(mut bytes: &'a [u8], sizes: &[usize]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    for size in sizes.iter().cycle() {
        let (piece, rest) = bytes.split_at((*size).min(bytes.len()));
        pieces.push(piece);
        bytes = rest;
        if bytes.is_empty() {
            break;
        }
    }
    pieces
}

pub fn run<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(future)
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic_in_any_chunking(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        sizes in proptest::collection::vec(1usize..20, 1..5),
        is_client: bool,
    ) {
        let role = if is_client { Role::Client } else { Role::Server };
        let whole = run(outcome(role, [&bytes[..]]));
        let chunked = run(outcome(role, pieces(&bytes, &sizes)));
        prop_assert_eq!(whole.messages, chunked.messages);
        prop_assert_eq!(whole.error.is_some(), chunked.error.is_some());
    }
}
