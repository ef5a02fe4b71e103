//! Tests of requests and chats in flight.

use super::*;

#[test]
fn a_chat_yields_its_steps_and_summary() {
    let mut played = Played::ready();
    let id = played.chat();
    let sent = played.sent();
    assert_eq!(
        sent,
        [json!({"id": id.to_string(), "method": "chat.send",
            "params": {"channel": "websocket", "account": "ann", "content": "hi"}})]
    );
    played.step(id, "text", &json!(""));
    played.step(id, "text", &json!("a\nb"));
    let call = json!({"id": "c1", "name": "echo", "input": {"x": [1]}});
    played.step(id, "tool_use", &call);
    let usage = json!({"input_tokens": 5, "output_tokens": 2});
    played.step(id, "usage", &usage);
    played.step(
        id,
        "tool_result",
        &json!({"tool_use_id": "c1", "content": "no", "is_error": true}),
    );
    played.step(id, "later", &json!([1]));
    played.step(id, "usage", &usage);
    played.done(id);
    let events = played.events();
    assert_eq!(events[..2], [text(id, ""), text(id, "a\nb")]);
    let chat = |at: usize| match &events[at] {
        ClientEvent::Chat { event, .. } => event,
        other => panic!("{other:?}"),
    };
    let StreamEvent::ToolUse(tool) = chat(2) else {
        panic!("{events:?}")
    };
    assert_eq!((&*tool.id, &*tool.name), ("c1", "echo"));
    assert_eq!(tool.input.parse::<Value>().unwrap(), json!({"x": [1]}));
    assert_eq!(chat(3), &StreamEvent::Usage(Usage::new(5, 2)));
    let StreamEvent::ToolResult(result) = chat(4) else {
        panic!("{events:?}")
    };
    assert!(result.is_error && result.content == "no" && result.tool_use_id == "c1");
    let StreamEvent::Unknown { tag, content } = chat(5) else {
        panic!("{events:?}")
    };
    assert_eq!((&**tag, content.as_ref().unwrap().get()), ("later", "[1]"));
    assert_eq!(events[7..], [well(id, (10, 4), 7, 3)]);
    assert_eq!(played.conn.in_flight(), 0);
}

#[test]
fn interleaved_streams_are_separated_by_id() {
    let mut played = Played::ready();
    let (one, two) = (played.chat(), played.chat());
    let ping = played.conn.ping(played.now).unwrap();
    played.step(two, "text", &json!("2"));
    played.step(one, "text", &json!("1"));
    played.take(&json!({"id": ping.to_string(), "result": "pong"}).to_string());
    played.step(two, "text", &json!("22"));
    played.done(two);
    played.step(one, "text", &json!("11"));
    played.done(one);
    let events = played.events();
    assert!(
        matches!(&events[2], ClientEvent::Reply { id, result: Ok(answer) }
        if *id == ping && answer.get() == r#""pong""#)
    );
    assert_eq!(events[..2], [text(two, "2"), text(one, "1")]);
    let rest = [
        text(two, "22"),
        well(two, (0, 0), 2, 3),
        text(one, "11"),
        well(one, (0, 0), 2, 3),
    ];
    assert_eq!(events[3..], rest);
}

#[test]
fn an_error_ends_a_chat_with_or_without_done() {
    let mut played = Played::ready();
    for done in [true, false] {
        let id = played.chat();
        played.step(id, "text", &json!("so far"));
        played.step(id, "error", &json!("provider error: boom"));
        assert_eq!(
            played.events(),
            [text(id, "so far"), failed(id, "provider error: boom")]
        );
        let stray = played.conn.stray_frames();
        if done {
            played.done(id);
        }
        assert!(played.events().is_empty());
        assert_eq!(played.conn.stray_frames() - stray, u64::from(done));
    }
}

#[test]
fn a_plain_reply_ends_a_chat() {
    let mut played = Played::ready();
    let (good, bad) = (played.chat(), played.chat());
    let words = "token budget exceeded (daily: 65/60)";
    played.take(&json!({"id": bad.to_string(), "error": words}).to_string());
    played.take(&json!({"id": good.to_string(), "result": {"any": "thing"}}).to_string());
    assert_eq!(
        played.events(),
        [failed(bad, words), well(good, (0, 0), 0, 0)]
    );
}

#[test]
fn a_request_answered_by_a_stream_ends_with_it() {
    let mut played = Played::ready();
    let ids = [(); 2].map(|()| played.conn.call("odd", &json!(null), played.now).unwrap());
    for id in ids {
        played.step(id, "text", &json!("x"));
        played.step(id, "later", &json!("x"));
    }
    played.done(ids[0]);
    played.step(ids[1], "error", &json!("no"));
    let events = played.events();
    assert!(matches!(&events[..], [
        ClientEvent::Reply { id: a, result: Ok(answer) },
        ClientEvent::Reply { id: b, result: Err(CallError::Remote(error)) },
    ] if [*a, *b] == ids && answer.is_null() && error.message() == "no"));
    assert_eq!(played.conn.stray_frames(), 4);
}

#[test]
fn every_frame_of_a_chat_extends_its_timeout() {
    let mut played = Played::ready();
    let (silent, busy) = (played.chat(), played.chat());
    let half = CHAT_IDLE_TIMEOUT / 2;
    played.step(silent, "text", &json!("x"));
    played.wait(half);
    played.step(busy, "later", &json!(1));
    played.wait(half);
    // Unreadable, but a sign of life.
    played.step(busy, "usage", &json!("?"));
    played.wait(half);
    let events = played.events();
    let ended: Vec<_> = events
        .iter()
        .filter(|event| matches!(event, ClientEvent::ChatEnded { .. }))
        .collect();
    let timed_out = ClientEvent::ChatEnded {
        id: silent,
        result: Err(CallError::TimedOut {
            delivery: Delivery::Delivered,
        }),
    };
    assert_eq!(ended, [&timed_out]);
    played.done(busy);
    assert_eq!(played.events(), [well(busy, (0, 0), 1, 0)]);
}

#[test]
fn a_chat_can_have_a_total_timeout() {
    let config = ClientConfig {
        chat_total_timeout: Some(SECOND * 10),
        ..ClientConfig::default()
    };
    let mut played = Played::ready_with(config);
    let id = played.chat();
    for _ in 0..10 {
        played.step(id, "text", &json!("x"));
        played.wait(SECOND);
    }
    let events = played.events();
    assert!(matches!(
        events[10..],
        [ClientEvent::ChatEnded {
            result: Err(CallError::TimedOut { .. }),
            ..
        }]
    ));
}

#[test]
fn a_timeout_can_be_set_for_one_request() {
    let mut played = Played::ready();
    let (chat, ping) = (played.chat(), played.conn.ping(played.now).unwrap());
    assert!(played.conn.set_timeout(chat, Some(SECOND), played.now));
    assert!(played.conn.set_timeout(ping, None, played.now));
    played.wait(SECOND / 2);
    played.step(chat, "text", &json!("x"));
    played.wait(SECOND / 2);
    assert_eq!(played.events(), [text(chat, "x")]);
    played.wait(CALL_TIMEOUT);
    assert!(matches!(
        played.events()[..],
        [ClientEvent::ChatEnded { .. }]
    ));
    assert_eq!(played.conn.in_flight(), 1);
    assert!(!played.conn.set_timeout(chat, None, played.now));
}

#[test]
fn an_undecodable_step_is_a_warning() {
    let mut played = Played::ready();
    let id = played.chat();
    played.step(id, "text", &json!(7));
    played.step(id, "text", &json!("x"));
    let events = played.events();
    assert!(matches!(events[0], ClientEvent::Warning(_)));
    assert_eq!(events[1..], [text(id, "x")]);
}

#[test]
fn an_error_without_a_message_is_still_an_error() {
    let mut played = Played::ready();
    let (none, object) = (played.chat(), played.chat());
    played.take(&json!({"id": none.to_string(), "event": "error"}).to_string());
    played.step(object, "error", &json!({"message": "boom"}));
    played.done(none);
    let events = played.events();
    assert_eq!(
        [&events[1], &events[3]],
        [&failed(none, ""), &failed(object, "boom")]
    );
    assert_eq!(events.len(), 4);
}

#[test]
fn frames_of_dropped_chats_are_discarded() {
    let limits = Limits {
        max_pending: 8,
        ..Limits::default()
    };
    let mut played = Played::ready_with(ClientConfig {
        limits,
        ..ClientConfig::default()
    });
    for _ in 0..100_000 {
        let id = played.chat();
        while played.conn.poll_transmit().is_some() {}
        assert!(played.conn.cancel(id));
        assert!(!played.conn.cancel(id));
        let late = format!(r#"{{"id":"{id}","event":"text","data":"late"}}"#);
        played.take(&late);
    }
    assert_eq!(played.conn.in_flight(), 0);
    assert_eq!(played.conn.stray_frames(), 100_000);
    assert!(played.events().is_empty());
    // The only deadline left is that of the next ping.
    assert_eq!(played.conn.next_timeout().unwrap().1, "heartbeat");
}
