//! Tests of [`Outlet`] against a machine whose frames are taken by hand.

use std::time::Instant;

use futures_util::FutureExt;
use rpc_core::{Incoming, Machine, Outgoing};

use super::*;
use crate::server::{ServerConfig, ServerEvent};

fn chats<const N: usize>(limits: &Limits) -> (ServerConn, [RequestId; N]) {
    let now = Instant::now();
    let config = ServerConfig::default().with_limits(limits.clone());
    let mut conn = ServerConn::new(config, now);
    let _hello = conn.poll_transmit();
    let ids = std::array::from_fn(|n| {
        let params = r#"{"channel":"c","account":"a","content":"x"}"#;
        let text = format!(r#"{{"id":"{n}","method":"chat.send","params":{params}}}"#);
        conn.handle_message(Incoming::Text(&text), now);
        loop {
            match conn.poll_event() {
                Some(ServerEvent::Request { id, .. }) => break id,
                Some(_) => {}
                None => panic!("no request"),
            }
        }
    });
    (conn, ids)
}

fn data(conn: &mut ServerConn) -> Vec<String> {
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
}

#[test]
fn the_task_is_told_once_for_everything_that_gathers() {
    let limits = Limits::default();
    let (mut conn, [a, b]) = chats(&limits);
    let outlet = Outlet::new(&limits);
    assert_eq!(outlet.add_text(a, "1"), Ok((1, Added::First)));
    assert_eq!(outlet.add_text(b, "2"), Ok((1, Added::Waits)));
    assert_eq!(outlet.add_end(a, Step::Done), Added::Waits);
    outlet.move_into(&mut conn);
    assert_eq!(data(&mut conn), ["01", "12", "0done"]);
    assert_eq!(outlet.add_text(b, "é"), Ok((2, Added::First)));
    outlet.move_into(&mut conn);
    assert_eq!(data(&mut conn), ["1é"]);
}

#[test]
fn what_is_added_in_a_turn_of_the_task_is_found_in_it() {
    let limits = Limits::default();
    let (mut conn, [a, b]) = chats(&limits);
    let outlet = Outlet::new(&limits);
    outlet.begin_turn();
    assert_eq!(outlet.add_text(a, "1"), Ok((1, Added::Waits)));
    outlet.gather_into(&mut conn);
    assert_eq!(outlet.add_text(b, "2"), Ok((1, Added::First)));
    outlet.gather_into(&mut conn);
    assert_eq!(data(&mut conn), ["01", "12"]);
}

#[test]
fn a_machine_without_room_is_left_alone_until_it_has_some() {
    let limits = Limits::default().with_max_outbox_frames(4);
    let (mut conn, [a, _]) = chats(&limits);
    let outlet = Outlet::new(&limits);
    for text in ["1", "2"] {
        assert!(outlet.add_text(a, text).is_ok());
    }
    outlet.gather_into(&mut conn);
    assert_eq!(data(&mut conn), ["01"]);
    outlet.gather_into(&mut conn);
    assert_eq!(data(&mut conn), [""; 0]);
    assert_eq!(outlet.resume(), Added::First);
    outlet.gather_into(&mut conn);
    assert_eq!(data(&mut conn), ["02"]);
}

#[test]
fn what_the_machine_has_no_room_for_waits_in_order_until_it_has() {
    let limits = Limits::default().with_max_outbox_frames(16);
    let (mut conn, [a, b]) = chats(&limits);
    let outlet = Outlet::new(&limits);
    let mut expected = Vec::new();
    for n in 0..20 {
        let (number, id) = if n % 2 == 0 { (0, a) } else { (1, b) };
        assert!(outlet.add_text(id, &n.to_string()).is_ok());
        expected.push(format!("{number}{n}"));
    }
    outlet.add_end(a, Step::Error(Box::new(RpcError::new("no"))));
    expected.extend(["0no".to_owned(), "0done".to_owned()]);
    let mut said = Vec::new();
    outlet.move_into(&mut conn);
    loop {
        assert!(outlet.lock().told, "nobody has to tell the task");
        let some = data(&mut conn);
        assert!(some.len() <= 6, "a quarter of the room, and an end");
        said.extend(some);
        if conn.poll_event() != Some(ServerEvent::Writable) {
            break;
        }
        assert_eq!(outlet.resume(), Added::First);
        outlet.move_into(&mut conn);
        if outlet.lock().steps.is_empty() {
            said.extend(data(&mut conn));
            break;
        }
    }
    assert_eq!(said, expected);
}

#[test]
fn a_writer_waits_while_it_is_full_and_is_woken_when_it_is_not() {
    let limits = Limits::default();
    let (mut conn, [id]) = chats(&limits);
    let outlet = Outlet::new(&limits);
    let mut added = 0;
    while outlet.add_text(id, "x").is_ok() {
        added += 1;
    }
    assert_eq!(added, MAX_STEPS);
    assert_eq!(outlet.add_text(id, "x"), Err(NotAdded::Full));
    // An end needs no room.
    outlet.add_end(id, Step::Done);
    let room = outlet.room();
    let mut room = std::pin::pin!(room);
    assert!(room.as_mut().now_or_never().is_none());
    outlet.move_into(&mut conn);
    assert!(room.now_or_never().is_some());
}

#[test]
fn long_texts_fill_it_too() {
    let limits = Limits::default();
    let (_, [id]) = chats(&limits);
    let outlet = Outlet::new(&limits);
    let text = "x".repeat(MAX_BYTES);
    assert!(outlet.add_text(id, &text).is_ok());
    assert_eq!(outlet.add_text(id, "x"), Err(NotAdded::Full));
}

#[test]
fn once_the_client_has_left_nothing_is_taken_or_kept() {
    let limits = Limits::default();
    let (mut conn, [id]) = chats(&limits);
    let outlet = Outlet::new(&limits);
    assert!(outlet.add_text(id, "x").is_ok());
    let (room, left) = (outlet.room(), outlet.left());
    outlet.leave();
    assert!(room.now_or_never().is_some() && left.now_or_never().is_some());
    assert_eq!(outlet.add_text(id, "x"), Err(NotAdded::Gone));
    assert_eq!(outlet.add_end(id, Step::Done), Added::Waits);
    outlet.move_into(&mut conn);
    assert!(data(&mut conn).is_empty());
}

#[test]
fn a_piece_of_a_text_ends_between_characters() {
    for (text, max, piece) in [("", 4, ""), ("aé", 2, "a"), ("éé", 4, "éé"), ("a𝄞", 4, "a")]
    {
        assert_eq!(beginning(text, max), piece);
    }
}

#[test]
fn an_answer_that_does_not_fit_becomes_an_error() {
    let limits = Limits::default().with_max_message_bytes(256);
    let (mut conn, [a, b]) = chats(&limits);
    let outlet = Outlet::new(&limits);
    let large = || StreamEvent::Text("x".repeat(256).as_str().into());
    assert!(outlet.add_event(a, large()).is_ok());
    assert!(outlet.add_text(b, "x").is_ok());
    assert!(outlet.add_event(b, large()).is_ok());
    outlet.add_end(b, Step::Done);
    outlet.move_into(&mut conn);
    let why = "the answer is too large";
    let expected = [
        format!("0{why}"),
        "1x".into(),
        format!("1{why}"),
        "1done".into(),
    ];
    assert_eq!(data(&mut conn), expected);
}

#[test]
fn a_request_that_no_answer_fits_does_not_stay_open() {
    let now = Instant::now();
    let limits = Limits::default().with_max_message_bytes(80);
    let config = ServerConfig::default().with_limits(limits.clone());
    let mut conn = ServerConn::new(config, now);
    let text = format!(r#"{{"id":"{}","method":"status"}}"#, "x".repeat(50));
    conn.handle_message(Incoming::Text(&text), now);
    let mut events = std::iter::from_fn(|| conn.poll_event());
    let Some(ServerEvent::Request { id, .. }) = events.nth(1) else {
        panic!("no request");
    };
    let outlet = Outlet::new(&limits);
    let answer = Json::new("1234567890123456").unwrap();
    outlet.add_end(id, Step::Reply(answer));
    outlet.move_into(&mut conn);
    assert!(conn.is_closed() && conn.in_flight() == 0);
}
