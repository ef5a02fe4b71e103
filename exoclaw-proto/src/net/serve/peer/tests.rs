//! Tests of writing through a [`Peer`], against a machine whose frames are taken by hand.

use std::pin::pin;
use std::sync::Arc;

use futures_util::FutureExt;
use rpc_core::{Incoming, Instant, Limits, Machine, Outgoing};

use super::*;
use crate::auth::Auth;
use crate::frame::StreamEvent;
use crate::net::ChatReply;
use crate::server::{ServerConfig, ServerEvent};

/// A connection on which the client has asked for so many chats.
fn chats<const N: usize>(limits: &Limits) -> (Arc<Peer>, [RequestId; N]) {
    let params = r#"{"channel":"c","account":"a","content":"x"}"#;
    let asked = |n| format!(r#"{{"id":"{n}","method":"chat.send","params":{params}}}"#);
    open(limits, asked)
}

fn open<const N: usize>(
    limits: &Limits,
    asked: impl Fn(usize) -> String,
) -> (Arc<Peer>, [RequestId; N]) {
    let now = Instant::now();
    let config = ServerConfig {
        limits: limits.clone(),
        ..ServerConfig::default()
    };
    let mut conn = ServerConn::new(config, Auth::open(), now);
    let _hello = conn.poll_transmit();
    let ids = std::array::from_fn(|n| {
        conn.handle_message(Incoming::Text(&asked(n)), now);
        loop {
            match conn.poll_event() {
                Some(ServerEvent::Request { id, .. }) => break id,
                Some(_) => {}
                None => panic!("no request"),
            }
        }
    });
    let (parts, ()) = http::Request::new(()).into_parts();
    let peer = Peer {
        id: 1,
        address: ([127, 0, 0, 1], 1).into(),
        parts: Arc::new(parts),
        handle: Handle::new(conn),
        cancellation: Cancellation::new().1,
        max_text: limits.max_message_bytes / 8,
    };
    (Arc::new(peer), ids)
}

/// What has left since the last look.
fn sent(peer: &Peer) -> Vec<String> {
    peer.handle.with(|conn| {
        std::iter::from_fn(|| conn.poll_transmit())
            .map(|frame| {
                let Outgoing::Text(text) = frame else {
                    panic!("{frame:?}")
                };
                let frame: serde_json::Value = serde_json::from_str(text.as_str()).unwrap();
                let said = frame["data"].as_str().or(frame["event"].as_str());
                let said = said.or(frame["error"].as_str());
                format!("{}{}", frame["id"].as_str().unwrap(), said.unwrap())
            })
            .collect()
    })
}

#[test]
fn frames_without_room_wait_in_order() {
    let limits = Limits {
        max_outbox_frames: 16,
        ..Limits::default()
    };
    let (peer, [a, b]) = chats(&limits);
    let write = |id, number: usize| {
        let reply = ChatReply::new(Arc::clone(&peer), id);
        async move {
            for n in 0..10 {
                reply.text(&format!("{number}{n}")).await.unwrap();
            }
            reply.event(&StreamEvent::Error("no".into())).await.unwrap();
        }
    };
    let mut writing = pin!(futures_util::future::join(write(a, 0), write(b, 1)));
    let mut said = Vec::new();
    while writing.as_mut().now_or_never().is_none() {
        let some = sent(&peer);
        assert!(
            (1..=4).contains(&some.len()),
            "a quarter of the room: {some:?}"
        );
        said.extend(some);
        let event = peer.handle.with(Machine::poll_event);
        assert_eq!(event, Some(ServerEvent::Writable));
        peer.handle.notify();
    }
    said.extend(sent(&peer));
    for number in 0..2 {
        let mut expected: Vec<_> = (0..10).map(|n| format!("{number}{number}{n}")).collect();
        expected.extend([format!("{number}no"), format!("{number}done")]);
        let own = said
            .iter()
            .filter(|text| text.starts_with(&number.to_string()));
        assert_eq!(own.cloned().collect::<Vec<_>>(), expected);
    }
}

#[test]
fn an_oversized_reply_becomes_an_error() {
    let limits = Limits {
        max_message_bytes: 256,
        ..Limits::default()
    };
    let (peer, [a, b]) = chats(&limits);
    let [first, second] = [a, b].map(|id| ChatReply::new(Arc::clone(&peer), id));
    let large = StreamEvent::Text("x".repeat(256).as_str().into());
    assert_eq!(first.event(&large).now_or_never(), Some(Ok(())));
    assert_eq!(
        first.text("x").now_or_never(),
        Some(Err(Gone)),
        "it has ended"
    );
    assert_eq!(second.text("x").now_or_never(), Some(Ok(())));
    assert_eq!(second.event(&large).now_or_never(), Some(Ok(())));
    assert_eq!(
        second.text("x").now_or_never(),
        Some(Err(Gone)),
        "it has ended"
    );
    let why = "the answer is too large";
    let expected = [
        format!("0{why}"),
        "1x".into(),
        format!("1{why}"),
        "1done".into(),
    ];
    assert_eq!(sent(&peer), expected);
}

#[test]
fn a_long_text_is_sent_in_several_frames() {
    let limits = Limits {
        max_message_bytes: 256,
        ..Limits::default()
    };
    let (peer, [id]) = chats(&limits);
    let text = "\n".repeat(70);
    let reply = ChatReply::new(Arc::clone(&peer), id);
    assert_eq!(reply.text(&text).now_or_never(), Some(Ok(())));
    let sent = sent(&peer);
    assert_eq!(sent.len(), 3);
    let joined: String = sent.iter().map(|piece| &piece[1..]).collect();
    assert_eq!(joined, text);
}

#[test]
fn a_request_whose_reply_never_fits_is_closed() {
    let limits = Limits {
        max_message_bytes: 80,
        ..Limits::default()
    };
    let asked = |_| format!(r#"{{"id":"{}","method":"status"}}"#, "x".repeat(50));
    let (peer, [id]) = open(&limits, asked);
    let answer = rpc_core::Json::new("1234567890123456").unwrap();
    let ended = peer.end(id, |conn| conn.reply(id, &answer)).now_or_never();
    assert!(ended.is_some());
    assert!(
        peer.handle
            .read(|conn| conn.is_closed() && conn.in_flight() == 0)
    );
}

#[test]
fn nothing_is_written_after_the_client_has_left() {
    let (peer, [id]) = chats(&Limits::default());
    let reply = ChatReply::new(Arc::clone(&peer), id);
    let mut gone = pin!(reply.gone());
    assert!(gone.as_mut().now_or_never().is_none());
    let now = Instant::now();
    peer.handle
        .with(|conn| conn.handle_disconnect(rpc_core::Disconnect::Eof, now));
    peer.handle.notify();
    assert!(gone.now_or_never().is_some());
    assert_eq!(reply.text("x").now_or_never(), Some(Err(Gone)));
    assert!(sent(&peer).is_empty());
}
