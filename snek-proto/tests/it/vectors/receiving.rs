//! Vectors of what a client receives: answers and events.

use rpc_core::{CallError, CloseReason, Json, Machine};
use serde_json::{Value, json};
use snek_proto::client::{ClientConfig, ClientEvent, ClientState};

use super::{Hand, Vector, config, run};

#[test]
fn replies_match_the_vectors() {
    run("replies", |vector| {
        if vector.is("login") {
            login(vector);
        } else {
            reply(vector);
        }
    });
}

#[test]
fn events_match_the_vectors() {
    run("events", event);
}

fn reply(vector: &Vector) {
    let name = vector.name();
    let mut hand = Hand::ready(config());
    let call = hand.conn.ping(hand.now).unwrap();
    let id = call.to_string();
    hand.text().unwrap();
    let text = vector.str("text").replace("<id>", &id);
    hand.take(&text.replace("<ID>", &id.to_uppercase()));
    let events = hand.events();
    match (vector.try_str("ok"), vector.try_str("error"), &events[..]) {
        (Some(data), None, [ClientEvent::Reply { id, result }]) => {
            assert_eq!(*id, call, "{name}");
            let answer = result.as_ref().unwrap();
            assert_eq!(answer.data().get(), data, "{name}");
            for (member, value) in vector.get("extra").as_object().into_iter().flatten() {
                assert_eq!(
                    answer.extra(member).as_ref().map(Json::get),
                    value.as_str(),
                    "{name}: extra {member}"
                );
            }
        }
        (None, Some(words), [ClientEvent::Reply { id, result }]) => {
            assert_eq!(*id, call, "{name}");
            let Err(CallError::Remote(error)) = result else {
                panic!("{name}: {result:?}")
            };
            assert_eq!(error.message(), words, "{name}");
        }
        (None, None, events) => {
            let skipped = matches!(events, [ClientEvent::Warning(_)]);
            assert_eq!(skipped, vector.is("skipped"), "{name}: {events:?}");
            assert_eq!(events.is_empty(), vector.is("dropped"), "{name}");
            let strays = u64::from(vector.is("dropped"));
            assert_eq!(hand.conn.stray_frames(), strays, "{name}");
            assert_eq!(hand.conn.in_flight(), 1, "{name}");
            hand.take(&json!({"callId": id, "data": 1}).to_string());
            assert!(
                matches!(hand.events()[..], [ClientEvent::Reply { .. }]),
                "{name}"
            );
        }
        (.., events) => panic!("{name}: {events:?}"),
    }
    assert_eq!(hand.conn.in_flight(), 0, "{name}");
    assert!(!hand.conn.is_closed(), "{name}");
}

fn login(vector: &Vector) {
    let name = vector.name();
    let mut hand = Hand::new(config());
    let request = hand.sent().unwrap();
    let id = request["callId"].as_str().unwrap();
    hand.take(&vector.str("text").replace("<id>", id));
    if let Some(words) = vector.try_str("error") {
        let message = words.to_owned();
        let closed = ClientEvent::Closed(CloseReason::Authentication { message });
        assert_eq!(hand.events(), [closed], "{name}");
        return;
    }
    assert_eq!(hand.conn.state(), ClientState::AwaitUser, "{name}");
    hand.open();
    let events = hand.events();
    let [ClientEvent::Ready(ready)] = &events[..] else {
        panic!("{name}: {events:?}")
    };
    assert_eq!(ready.login.data().get(), vector.str("ok"), "{name}");
}

fn event(vector: &Vector) {
    let name = vector.name();
    let config = if vector.is("strict") {
        ClientConfig {
            accept_new_message: false,
            ..config()
        }
    } else {
        config()
    };
    let mut hand = Hand::ready(config);
    hand.take(vector.str("text"));
    let events = hand.events();
    let strays = u64::from(vector.is("dropped"));
    assert_eq!(hand.conn.stray_frames(), strays, "{name}");
    match &events[..] {
        [] => assert!(vector.is("dropped"), "{name}: dropped"),
        [event] => {
            let (member, value) = shown(event);
            assert_eq!(&value, vector.get(member), "{name}: {event:?}");
        }
        more => panic!("{name}: {more:?}"),
    }
    assert!(!hand.conn.is_closed(), "{name}");
}

/// An event in the form of the vectors: the member that it belongs to, and its value.
fn shown(event: &ClientEvent) -> (&'static str, Value) {
    match event {
        ClientEvent::Message(message) => (
            "message",
            json!([
                message.message.as_str(),
                message.username.as_str(),
                message.user_nick.as_str(),
                message.channel_uid.as_str(),
                message.is_final
            ]),
        ),
        ClientEvent::SetTyping(typing) => (
            "typing",
            json!([
                typing.channel_uid.as_deref(),
                typing.username.as_deref(),
                typing.user_nick.as_deref(),
                typing.color.as_deref()
            ]),
        ),
        ClientEvent::Joined(joined) => ("joined", json!(joined.channel_uid.as_str())),
        ClientEvent::Left(left) => ("left", json!(left.channel_uid.as_str())),
        ClientEvent::Unknown(other) => ("unknown", json!([other.tag.as_str(), other.data.get()])),
        ClientEvent::Warning(_) => ("warning", json!(true)),
        other => panic!("{other:?}"),
    }
}
