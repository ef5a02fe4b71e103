//! Tests of what chats write to a machine whose frames are taken by hand.

use std::net::{Ipv4Addr, SocketAddr};
use std::pin::pin;

use futures_util::FutureExt as _;
use http::Request;
use rpc_core::{Incoming, Limits, Machine as _, Outgoing};
use serde_json::Value;

use super::super::run::EmitError;
use super::*;
use crate::Instant;
use crate::event::{ChecklistTag, Event};
use crate::frame::Reply;
use crate::server::ServerConfig;

/// A connection with a running chat, as its agent sees it.
fn running(limits: Limits) -> (Handle<ServerConn>, ChatReply) {
    let now = Instant::now();
    let config = ServerConfig {
        limits,
        ..ServerConfig::default()
    };
    let mut conn = ServerConn::new(config, 1, now);
    start(&mut conn);
    let handle = Handle::new(conn);
    let run = run(&handle);
    (handle, run)
}

fn start(conn: &mut ServerConn) {
    let start = r#"{"id":"rpc_a","type":"chat.start","payload":{"request":{"message":"","history":[],"model":"m"}}}"#;
    conn.handle_message(Incoming::Text(start), Instant::now());
    sent_by(conn);
}

/// The work on the chat that has started last.
fn run(handle: &Handle<ServerConn>) -> ChatReply {
    let (id, task_id) = handle.with(|conn| {
        let events = std::iter::from_fn(|| conn.poll_event());
        let started = events.filter_map(|event| match event {
            ServerEvent::Start { id, task_id, .. } => Some((id, task_id)),
            _ => None,
        });
        started.last().unwrap()
    });
    let output = Output::Connection {
        handle: handle.clone(),
        id,
        task_id,
    };
    let origin = Origin {
        client: Client::new(
            SocketAddr::from((Ipv4Addr::LOCALHOST, 1)),
            Arc::new(Request::new(()).into_parts().0),
        ),
        checklist: ChecklistTag::default(),
        output,
    };
    ChatReply {
        origin: Arc::new(origin),
        cancellation: Cancellation::new().1,
    }
}

/// What has left: the texts of steps, and the types of everything else.
fn sent(handle: &Handle<ServerConn>) -> Vec<String> {
    handle.with(sent_by)
}

fn sent_by(conn: &mut ServerConn) -> Vec<String> {
    let frames = std::iter::from_fn(|| conn.poll_transmit());
    let texts = frames.map(|frame| match frame {
        Outgoing::Text(text) => {
            let frame: Value = serde_json::from_str(text.as_str()).unwrap();
            let text = frame["event"]["text"].as_str();
            text.or(frame["type"].as_str()).unwrap().to_owned()
        }
        other => format!("{other:?}"),
    });
    texts.collect()
}

fn end(handle: &Handle<ServerConn>, end: &End) {
    let id = "rpc_a".parse::<RpcId>().unwrap();
    let written = write(handle, |conn| write_end(conn, &id, end)).now_or_never();
    assert!(written.is_some());
}

fn done() -> End {
    Ok(Box::new(Reply::new("", "m")))
}

#[test]
fn frames_without_room_wait_in_order() {
    let (handle, run) = running(Limits {
        max_outbox_frames: 16,
        ..Limits::default()
    });
    let steps: Vec<String> = (0..20).map(|n| n.to_string()).collect();
    let mut emitting = pin!(async {
        for step in &steps {
            run.text(step).await.unwrap();
        }
    });
    let mut all = Vec::new();
    while emitting.as_mut().now_or_never().is_none() {
        let some = sent(&handle);
        assert!((1..=4).contains(&some.len()), "{some:?}");
        all.extend(some);
        let events = handle.with(|conn| std::iter::from_fn(|| conn.poll_event()).last());
        assert_eq!(events, Some(ServerEvent::Writable));
        handle.notify();
    }
    end(&handle, &done());
    all.extend(sent(&handle));
    assert_eq!(all[..20], steps);
    assert_eq!(all[20..], ["chat.done"]);
    assert!(run.text("late").now_or_never().unwrap().is_err());
}

#[test]
fn a_step_or_a_reply_that_is_too_large_ends_the_chat_with_an_error() {
    let (handle, run) = running(Limits {
        max_message_bytes: 1024,
        ..Limits::default()
    });
    assert_eq!(run.text("1").now_or_never(), Some(Ok(())));
    assert!(run.text(&"1".repeat(1024)).now_or_never().unwrap().is_err());
    // What the agent returns then is not told.
    end(&handle, &done());
    assert_eq!(sent(&handle), ["1", "chat.error"]);
    let (handle, _) = running(Limits {
        max_message_bytes: 1024,
        ..Limits::default()
    });
    end(&handle, &Ok(Box::new(Reply::new("1".repeat(1024), "m"))));
    assert_eq!(sent(&handle), ["chat.error"]);
}

#[test]
fn an_aborted_chat_sends_nothing_more() {
    let (handle, run) = running(Limits::default());
    let abort = r#"{"id":"rpc_b","type":"chat.abort","payload":{"requestId":"rpc_a"}}"#;
    handle.with(|conn| conn.handle_message(Incoming::Text(abort), Instant::now()));
    sent(&handle);
    let event = Event::text("x");
    let emitted = run.emit(&event).now_or_never().unwrap();
    assert!(matches!(emitted, Err(EmitError::Stopped)), "{emitted:?}");
    end(&handle, &done());
    assert_eq!(sent(&handle), [""; 0]);
}

#[test]
fn an_abandoned_chat_sends_nothing_under_a_reused_id() {
    let (handle, old) = running(Limits::default());
    end(&handle, &done());
    sent(&handle);
    handle.with(start);
    let new = run(&handle);
    assert!(old.text("old").now_or_never().unwrap().is_err());
    assert_eq!(new.text("new").now_or_never(), Some(Ok(())));
    assert_eq!(sent(&handle), ["new"]);
}

#[test]
fn a_chat_whose_end_does_not_fit_still_ends() {
    let (handle, _) = running(Limits {
        max_message_bytes: 150,
        ..Limits::default()
    });
    end(&handle, &Ok(Box::new(Reply::new("1".repeat(150), "m"))));
    assert!(handle.read(|conn| conn.is_closed() && conn.in_flight() == 0));
}
