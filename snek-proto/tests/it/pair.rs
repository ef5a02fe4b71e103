//! Client and server together, under virtual time.

use std::time::{Duration, Instant};

use rpc_core::testing::Side;
use rpc_core::{CallError, Delivery, Limits, Text};
use serde_json::json;
use snek_proto::client::{ClientConfig, ClientEvent};
use snek_proto::codec;
use snek_proto::frame::{Call, Channel, Event, Final, Message, User};
use snek_proto::hub::{ConnId, Hub, HubConfig};

use crate::played::{config, line, ready, serve};

#[test]
fn the_whole_conversation_matches_the_specification() {
    let mut pair = ready(0, Instant::now());
    let hello = Message::new("ch1", "alice", "Alice", "hello @MyBot");
    pair.server
        .push(codec::encode(&Event::Message(hello)).unwrap())
        .unwrap();
    pair.settle();
    let now = pair.now();
    pair.client
        .send_message("ch1", "hey, what's up?", Final::Yes, now)
        .unwrap();
    let requests = serve(&mut pair);
    pair.server.reply(requests[0].0, &json!({})).unwrap();
    pair.client.set_typing("ch1", "#FF6B35").unwrap();
    for (text, is_final) in [
        ("Working on", Final::No),
        ("Working on it...", Final::No),
        ("Working on it... done!", Final::Yes),
    ] {
        pair.client.notify_message("ch1", text, is_final).unwrap();
    }
    assert_eq!(serve(&mut pair).len(), 4);
    insta::assert_snapshot!(pair.trace().to_string());
}

#[test]
fn partial_messages_arrive_in_order_and_the_final_one_last() {
    let mut hub = Hub::new(HubConfig::default());
    hub.add_user(User::new("mybot", "MyBot")).unwrap();
    hub.add_channel(Channel::new("ch1", "general", None))
        .unwrap();
    hub.connect(ConnId(1), "mybot").unwrap();
    hub.join("mybot", "ch1").unwrap();
    let mut pair = ready(1, Instant::now());
    pair.take_client_events();
    for (text, is_final) in [("a", Final::No), ("ab", Final::No), ("abc", Final::Yes)] {
        pair.client.notify_message("ch1", text, is_final).unwrap();
    }
    for (id, call) in serve(&mut pair) {
        let answer = hub.handle(ConnId(1), &call).unwrap();
        pair.server.reply(id, &answer).unwrap();
    }
    while let Some((_, text)) = hub.poll_transmit() {
        pair.server.push(text).unwrap();
    }
    pair.settle();
    let texts: Vec<_> = pair
        .take_client_events()
        .into_iter()
        .filter_map(|event| match event {
            ClientEvent::Message(message) => Some((message.message.to_string(), message.is_final)),
            _ => None,
        })
        .collect();
    let expected = [("a", Final::No), ("ab", Final::No), ("abc", Final::Yes)];
    assert_eq!(
        texts,
        expected.map(|(text, is_final)| (text.to_owned(), is_final))
    );
}

#[test]
fn pings_alone_keep_a_connection_open() {
    let mut pair = ready(2, Instant::now());
    pair.take_client_events();
    pair.advance(Duration::from_secs(4 * 3600));
    assert!(pair.take_client_events().is_empty() && pair.take_server_events().is_empty());
}

#[test]
fn an_unanswered_call_does_not_end_the_connection() {
    let mut pair = ready(4, Instant::now());
    pair.take_client_events();
    let now = pair.now();
    let call = pair
        .client
        .send_message("ch1", "x", Final::Yes, now)
        .unwrap();
    let requests = serve(&mut pair);
    pair.advance(Duration::from_secs(190));
    let error = CallError::TimedOut {
        delivery: Delivery::Unknown,
    };
    let expected = [ClientEvent::Reply {
        id: call,
        result: Err(error),
    }];
    assert_eq!(pair.take_client_events(), expected);
    pair.server.reply(requests[0].0, &json!({})).unwrap();
    pair.settle();
    assert!(pair.take_client_events().is_empty());
    assert_eq!(pair.client.stray_frames(), 1);
}

#[test]
fn a_hanging_application_loses_nothing_and_pings_continue() {
    let limits = Limits {
        max_events: 4,
        ..Limits::default()
    };
    let mut pair = line(ClientConfig { limits, ..config() }, 6, Instant::now());
    serve(&mut pair);
    pair.take_client_events();
    pair.hold_events(Side::Client, true);
    for n in 0..20 {
        pair.server
            .push(Text::from(format!(r#"{{"event":"n","data":{n}}}"#)))
            .unwrap();
    }
    pair.settle();
    pair.hold_events(Side::Client, false);
    pair.settle();
    let seen: Vec<_> = pair
        .take_client_events()
        .into_iter()
        .map(|event| match event {
            ClientEvent::Unknown(other) => other.data.get().to_owned(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(seen, (0..20).map(|n| n.to_string()).collect::<Vec<_>>());
}

#[test]
fn many_calls_are_answered_out_of_order() {
    let mut pair = ready(7, Instant::now());
    pair.take_client_events();
    let now = pair.now();
    let mut calls: Vec<_> = (0..90).map(|_| pair.client.ping(now).unwrap()).collect();
    let requests = serve(&mut pair);
    assert!(requests.iter().all(|(_, call)| *call == Call::Ping));
    for (id, _) in requests.iter().rev() {
        pair.server.reply(*id, &json!({"pong": []})).unwrap();
    }
    pair.settle();
    let ended: Vec<_> = pair
        .take_client_events()
        .into_iter()
        .filter_map(|event| match event {
            ClientEvent::Reply { id, result: Ok(_) } => Some(id),
            _ => None,
        })
        .collect();
    calls.reverse();
    assert_eq!(ended, calls);
}
