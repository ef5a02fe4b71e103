//! Tests of [`Outlet`] with a machine and with a body, played by hand.

use futures_util::FutureExt as _;
use rpc_core::{Incoming, Machine as _, Outgoing};
use serde_json::Value;

use super::*;
use crate::server::{ServerConfig, ServerEvent};

fn outlet(limits: &Limits) -> Outlet {
    Outlet::new(Bell::Body(Notify::new()), limits)
}

/// A machine with a running chat.
fn machine(limits: &Limits) -> (ServerConn, RpcId) {
    let now = Instant::now();
    let config = ServerConfig::default().with_limits(limits.clone());
    let mut conn = ServerConn::new(config, 1, now);
    let start = r#"{"id":"rpc_a","type":"chat.start","payload":{"request":{"message":"","history":[],"model":"m"}}}"#;
    conn.handle_message(Incoming::Text(start), now);
    said(&mut conn);
    (conn, RpcId::parse("rpc_a").unwrap())
}

/// What the machine has said: the data of steps, and the types of everything else.
fn said(conn: &mut ServerConn) -> Vec<String> {
    let frames = std::iter::from_fn(|| conn.poll_transmit());
    let texts = frames.map(|frame| match frame {
        Outgoing::Text(text) => {
            let frame: Value = serde_json::from_str(text.as_str()).unwrap();
            match &frame["event"] {
                Value::Null => frame["type"].as_str().unwrap().to_owned(),
                step => step.to_string(),
            }
        }
        other => format!("{other:?}"),
    });
    texts.collect()
}

fn add(outlet: &Outlet, json: &str) -> Result<(), NotAdded> {
    outlet.add(|buffer| {
        buffer.push_str(json);
        Ok(())
    })
}

fn done() -> End {
    Ok(Box::new(Reply::new("", "m")))
}

fn body(outlet: &Outlet) -> Option<String> {
    let write_end = |_: &End, bytes: &mut String| bytes.push_str("end");
    let bytes = outlet.next_bytes(write_end).now_or_never()?;
    Some(bytes.map_or("over".to_owned(), |bytes| {
        String::from_utf8(bytes.to_vec()).unwrap()
    }))
}

#[test]
fn steps_reach_the_machine_in_order_and_the_end_behind_them() {
    let limits = Limits::default();
    let (mut conn, id) = machine(&limits);
    let outlet = outlet(&limits);
    assert_eq!(add(&outlet, "1"), Ok(()));
    assert_eq!(add(&outlet, "2"), Ok(()));
    assert!(!outlet.gather_into(&id, &mut conn));
    assert_eq!(add(&outlet, "3"), Ok(()));
    outlet.end(done());
    assert_eq!(add(&outlet, "4"), Err(NotAdded::Stopped));
    assert!(outlet.gather_into(&id, &mut conn));
    assert_eq!(said(&mut conn), ["1", "2", "3", "chat.done"]);
    outlet.end(done());
    assert!(!outlet.gather_into(&id, &mut conn));
}

#[test]
fn what_the_machine_has_no_room_for_waits_in_order_until_it_has() {
    let limits = Limits::default().with_max_outbox_frames(16);
    let (mut conn, id) = machine(&limits);
    let outlet = outlet(&limits);
    let steps: Vec<String> = (0..20).map(|n| n.to_string()).collect();
    for step in &steps {
        assert_eq!(add(&outlet, step), Ok(()));
    }
    outlet.end(done());
    let mut all = Vec::new();
    while !outlet.gather_into(&id, &mut conn) {
        // It is left alone until it says that it has room.
        assert!(!outlet.gather_into(&id, &mut conn));
        let some = said(&mut conn);
        assert!(!some.is_empty() && some.len() <= 4, "{some:?}");
        all.extend(some);
        let events = std::iter::from_fn(|| conn.poll_event());
        assert_eq!(events.last(), Some(ServerEvent::Writable));
        outlet.resume();
    }
    all.extend(said(&mut conn));
    assert_eq!(all[..20], steps);
    assert_eq!(all[20..], ["chat.done"]);
}

#[test]
fn a_full_outlet_takes_nothing_until_it_was_emptied_but_always_an_end() {
    let limits = Limits::default();
    let (mut conn, id) = machine(&limits);
    let outlet = outlet(&limits);
    while add(&outlet, "1") == Ok(()) {}
    assert_eq!(add(&outlet, "1"), Err(NotAdded::Full));
    let mut room = std::pin::pin!(outlet.room());
    assert!(room.as_mut().now_or_never().is_none());
    outlet.gather_into(&id, &mut conn);
    assert!(room.now_or_never().is_some());
    assert_eq!(add(&outlet, &"1".repeat(MAX_BYTES)), Ok(()));
    assert_eq!(add(&outlet, "1"), Err(NotAdded::Full));
    outlet.end(done());
    assert!(outlet.gather_into(&id, &mut conn));
}

#[test]
fn a_step_that_is_no_json_leaves_nothing_behind() {
    let limits = Limits::default();
    let outlet = outlet(&limits);
    let refused = outlet.add(|buffer| {
        buffer.push_str("half");
        Err(Refused::UnknownId)
    });
    assert_eq!(refused, Err(NotAdded::Refused(Refused::UnknownId)));
    assert_eq!(add(&outlet, "1"), Ok(()));
    assert_eq!(body(&outlet).unwrap(), "data: 1\n\n");
}

#[test]
fn a_step_or_a_reply_that_is_too_large_ends_the_chat_with_an_error() {
    let limits = Limits::default().with_max_message_bytes(4 * 1024);
    let (mut conn, id) = machine(&limits);
    let outlet = outlet(&limits);
    let large = "1".repeat(3 * 1024);
    assert_eq!(add(&outlet, "1"), Ok(()));
    assert_eq!(add(&outlet, &large), Err(NotAdded::Stopped));
    // What the agent returns then is not told.
    outlet.end(done());
    assert!(outlet.gather_into(&id, &mut conn));
    assert_eq!(said(&mut conn), ["1", "chat.error"]);
    let (mut conn, id) = machine(&limits);
    let outlet = self::outlet(&limits);
    outlet.end(Ok(Box::new(Reply::new("1".repeat(5 * 1024), "m"))));
    assert!(outlet.gather_into(&id, &mut conn));
    assert_eq!(said(&mut conn), ["chat.error"]);
}

#[test]
fn an_aborted_chat_says_no_step_that_still_waits_but_its_end_is_told() {
    let limits = Limits::default();
    let (mut conn, id) = machine(&limits);
    let outlet = outlet(&limits);
    assert_eq!(add(&outlet, "1"), Ok(()));
    let room = outlet.room();
    outlet.stop();
    assert!(room.now_or_never().is_some());
    assert_eq!(add(&outlet, "2"), Err(NotAdded::Stopped));
    outlet.end(done());
    assert!(outlet.gather_into(&id, &mut conn));
    assert_eq!(said(&mut conn), ["chat.done"]);
}

#[test]
fn a_body_takes_all_that_waits_and_is_over_behind_the_end() {
    let limits = Limits::default();
    let outlet = outlet(&limits);
    assert_eq!(body(&outlet), None);
    assert_eq!(add(&outlet, "1"), Ok(()));
    assert_eq!(add(&outlet, "2"), Ok(()));
    assert_eq!(body(&outlet).unwrap(), "data: 1\n\ndata: 2\n\n");
    assert_eq!(add(&outlet, "3"), Ok(()));
    outlet.end(done());
    outlet.end(done());
    assert_eq!(body(&outlet).unwrap(), "data: 3\n\nend");
    assert_eq!(body(&outlet).unwrap(), "over");
}

#[test]
fn a_chat_that_no_end_fits_does_not_run_for_ever() {
    let limits = Limits::default().with_max_message_bytes(150);
    let (mut conn, id) = machine(&limits);
    let outlet = outlet(&limits);
    outlet.end(Ok(Box::new(Reply::new("1".repeat(150), "m"))));
    assert!(outlet.gather_into(&id, &mut conn));
    assert!(conn.is_closed() && conn.in_flight() == 0);
}
