//! Tests of [`Hub`], by hand and against a naive model.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use rpc_core::Limits;
use serde_json::json;

use super::*;
use crate::frame::{Call, Event, ServerFrame};

fn hub() -> Hub {
    let mut hub = Hub::new(HubConfig::default());
    for (name, nick) in [("ann", "Ann"), ("bob", "")] {
        hub.add_user(User::new(name, nick)).unwrap();
    }
    hub.add_channel(Channel::new("ch1", "general", None))
        .unwrap();
    hub
}

fn out(hub: &mut Hub) -> Vec<(u64, String)> {
    std::iter::from_fn(|| hub.poll_transmit())
        .map(|(conn, text)| (conn.0, text.as_str().to_owned()))
        .collect()
}

#[test]
fn a_message_reaches_every_connection_of_every_member_and_is_encoded_once() {
    let mut hub = hub();
    for (conn, user) in [(1, "ann"), (2, "ann"), (3, "bob")] {
        hub.connect(ConnId(conn), user).unwrap();
    }
    hub.join("ann", "ch1").unwrap();
    hub.join("bob", "ch1").unwrap();
    out(&mut hub);
    assert_eq!(hub.send_message("bob", "ch1", "hi", Final::No), Ok(3));
    let frames: Vec<_> = std::iter::from_fn(|| hub.poll_transmit()).collect();
    assert_eq!(
        frames.iter().map(|(conn, _)| conn.0).collect::<Vec<_>>(),
        [1, 2, 3]
    );
    assert_eq!(
        frames[0].1.as_str(),
        r#"{"event":"message","message":"hi","username":"bob","user_nick":"","channel_uid":"ch1","is_final":false}"#
    );
    let bytes: BTreeSet<_> = frames
        .into_iter()
        .map(|(_, text)| text.into_bytes().as_ptr())
        .collect();
    assert_eq!(bytes.len(), 1);
}

#[test]
fn sample_like_bots_get_complete_messages_only() {
    let mut hub = Hub::new(HubConfig {
        new_message: true,
        ..HubConfig::default()
    });
    hub.add_user(User::new("ann", "Ann")).unwrap();
    hub.add_channel(Channel::new("ch1", "general", None))
        .unwrap();
    hub.join("ann", "ch1").unwrap();
    hub.connect(ConnId(1), "ann").unwrap();
    for (text, is_final) in [
        ("hi", Final::No),
        ("hi ann", Final::Yes),
        ("bye", Final::Yes),
    ] {
        hub.send_message("ann", "ch1", text, is_final).unwrap();
    }
    let mut uids = BTreeSet::new();
    let mut names = Vec::new();
    for (_, text) in out(&mut hub) {
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        names.push(value["event"].as_str().unwrap().to_owned());
        if value["event"] == "new_message" {
            assert_eq!(value["channel_uid"], "ch1");
            assert_eq!(value["data"]["username"], "ann");
            uids.insert(value["data"]["uid"].to_string());
        }
        let frame = ServerFrame::decode(&text, &Limits::default()).unwrap();
        let Some(Ok(Event::Message(message))) = frame.into_event() else {
            panic!("{text}");
        };
        assert_eq!(
            (&*message.user_nick, message.is_final),
            ("Ann", (&*message.message != "hi").into())
        );
    }
    assert_eq!(names, ["message", "new_message", "new_message"]);
    assert_eq!(uids.len(), 2, "each has its own");
}

#[test]
fn only_members_can_send_to_a_channel() {
    let mut hub = hub();
    assert_eq!(
        hub.send_message("ann", "ch1", "x", Final::Yes),
        Err(NOT_A_MEMBER)
    );
    assert_eq!(
        hub.set_typing("ann", "ch2", "#FF0000"),
        Err(NO_SUCH_CHANNEL)
    );
    assert_eq!(
        hub.send_message("eve", "ch1", "x", Final::Yes),
        Err(NO_SUCH_USER)
    );
}

#[test]
fn joins_and_leaves_notify_the_user_only() {
    let mut hub = hub();
    hub.connect(ConnId(1), "ann").unwrap();
    hub.connect(ConnId(2), "bob").unwrap();
    assert_eq!(hub.join("ann", "ch1"), Ok(true));
    assert_eq!(hub.join("ann", "ch1"), Ok(false));
    assert_eq!(hub.leave("ann", "ch1"), Ok(true));
    assert_eq!(hub.leave("ann", "ch1"), Ok(false));
    assert_eq!(
        out(&mut hub),
        [
            (
                1,
                r#"{"event":"join","data":{"channel_uid":"ch1"}}"#.to_owned()
            ),
            (
                1,
                r#"{"event":"leave","data":{"channel_uid":"ch1"}}"#.to_owned()
            ),
        ]
    );
}

#[test]
fn two_users_share_one_direct_channel_named_after_the_other() {
    let mut hub = hub();
    let uid = hub.direct("ann", "bob").unwrap();
    assert_eq!(hub.direct("bob", "ann"), Ok(uid.clone()));
    let seen = |user| hub.channels_of(user)[0].clone();
    assert_eq!(seen("ann"), Channel::new(uid.clone(), "bob", Some("dm")));
    assert_eq!(seen("bob"), Channel::new(uid.clone(), "Ann", Some("dm")));
    assert_eq!(hub.members(&uid).collect::<Vec<_>>(), ["ann", "bob"]);
}

#[test]
fn a_full_queue_refuses_without_side_effects() {
    let mut hub = Hub::new(HubConfig {
        max_queued: 1,
        ..HubConfig::default()
    });
    hub.add_user(User::new("ann", "Ann")).unwrap();
    hub.add_channel(Channel::new("ch1", "", None)).unwrap();
    hub.add_channel(Channel::new("ch2", "", None)).unwrap();
    hub.connect(ConnId(1), "ann").unwrap();
    hub.join("ann", "ch1").unwrap();
    assert_eq!(hub.join("ann", "ch2"), Err(BUSY));
    assert_eq!(hub.send_message("ann", "ch1", "x", Final::Yes), Err(BUSY));
    assert_eq!(hub.members("ch2").count(), 0);
    assert_eq!(out(&mut hub).len(), 1);
    assert_eq!(hub.join("ann", "ch2"), Ok(true));
}

#[test]
fn calls_are_carried_out() {
    let mut hub = hub();
    hub.connect(ConnId(1), "ann").unwrap();
    hub.join("ann", "ch1").unwrap();
    let mut data = |call: &Call| {
        hub.handle(ConnId(1), call)
            .map(|answer| serde_json::to_value(answer).unwrap())
    };
    let own = Call::GetUser { username: None };
    assert_eq!(data(&own), Ok(json!({"username": "ann", "nick": "Ann"})));
    let other = Call::GetUser {
        username: Some("eve".into()),
    };
    assert_eq!(data(&other), Err(NO_SUCH_USER));
    assert_eq!(
        data(&Call::GetChannels),
        Ok(json!([{"uid": "ch1", "name": "general", "tag": null}]))
    );
    assert_eq!(data(&Call::Ping), Ok(json!({"pong": []})));
    let send = Call::SendMessage {
        channel_uid: "ch1".into(),
        message: "x".into(),
        is_final: Final::Yes,
    };
    assert_eq!(data(&send), Ok(json!({"channel_uid": "ch1"})));
    assert_eq!(hub.handle(ConnId(9), &Call::Ping), Err(NOT_LOGGED_IN));
}

#[derive(Clone, Debug)]
enum Op {
    Connect(u64, usize),
    Disconnect(u64),
    Join(usize, usize),
    Leave(usize, usize),
    Send(usize, usize, bool),
    Type(usize, usize),
    Direct(usize, usize),
    Channels(usize),
}

fn op() -> impl Strategy<Value = Op> {
    let user = 0..4_usize;
    let room = 0..3_usize;
    prop_oneof![
        (0..6_u64, user.clone()).prop_map(|(conn, user)| Op::Connect(conn, user)),
        (0..6_u64).prop_map(Op::Disconnect),
        (user.clone(), room.clone()).prop_map(|(user, room)| Op::Join(user, room)),
        (user.clone(), room.clone()).prop_map(|(user, room)| Op::Leave(user, room)),
        (user.clone(), room.clone(), any::<bool>()).prop_map(|(u, r, f)| Op::Send(u, r, f)),
        (user.clone(), room).prop_map(|(user, room)| Op::Type(user, room)),
        (user.clone(), user.clone()).prop_map(|(one, other)| Op::Direct(one, other)),
        user.prop_map(Op::Channels),
    ]
}

/// Sets of pairs, searched from one end to the other.
#[derive(Default)]
struct Model {
    conns: BTreeMap<u64, String>,
    members: BTreeSet<(String, String)>,
    directs: BTreeMap<BTreeSet<String>, String>,
}

impl Model {
    fn conns_of(&self, user: &str) -> BTreeSet<u64> {
        self.conns
            .iter()
            .filter(|(_, name)| *name == user)
            .map(|(conn, _)| *conn)
            .collect()
    }

    fn receivers(&self, room: &str) -> BTreeSet<u64> {
        self.members
            .iter()
            .filter(|(_, other)| other == room)
            .flat_map(|(user, _)| self.conns_of(user))
            .collect()
    }
}

proptest! {
    #[test]
    fn the_hub_agrees_with_the_naive_model(ops in prop::collection::vec(op(), 1..80)) {
        let user = |at: usize| format!("u{at}");
        let room = |at: usize| format!("r{at}");
        let mut hub = Hub::new(HubConfig::default());
        for at in 0..4 {
            hub.add_user(User::new(user(at), format!("U{at}"))).unwrap();
        }
        for at in 0..3 {
            hub.add_channel(Channel::new(room(at), "", None)).unwrap();
        }
        let mut model = Model::default();
        for op in ops {
            let mut expected = BTreeSet::new();
            match op {
                Op::Connect(conn, at) => {
                    let fresh = !model.conns.contains_key(&conn);
                    prop_assert_eq!(hub.connect(ConnId(conn), &user(at)).is_ok(), fresh);
                    model.conns.entry(conn).or_insert(user(at));
                }
                Op::Disconnect(conn) => {
                    prop_assert_eq!(hub.disconnect(ConnId(conn)), model.conns.remove(&conn).is_some());
                }
                Op::Join(u, r) => {
                    let joined = model.members.insert((user(u), room(r)));
                    prop_assert_eq!(hub.join(&user(u), &room(r)), Ok(joined));
                    if joined {
                        expected = model.conns_of(&user(u));
                    }
                }
                Op::Leave(u, r) => {
                    let left = model.members.remove(&(user(u), room(r)));
                    prop_assert_eq!(hub.leave(&user(u), &room(r)), Ok(left));
                    if left {
                        expected = model.conns_of(&user(u));
                    }
                }
                Op::Send(u, r, is_final) => {
                    let sent = hub.send_message(&user(u), &room(r), "x", is_final.into());
                    if model.members.contains(&(user(u), room(r))) {
                        expected = model.receivers(&room(r));
                        prop_assert_eq!(sent, Ok(expected.len()));
                    } else {
                        prop_assert_eq!(sent, Err(NOT_A_MEMBER));
                    }
                }
                Op::Type(u, r) => {
                    if hub.set_typing(&user(u), &room(r), "#FFFFFF").is_ok() {
                        expected = model.receivers(&room(r));
                    }
                }
                Op::Direct(one, other) => {
                    let uid = hub.direct(&user(one), &user(other)).unwrap();
                    let pair = BTreeSet::from([user(one), user(other)]);
                    let known = model.directs.entry(pair.clone()).or_insert_with(|| {
                        for name in &pair {
                            expected.extend(
                                model.conns.iter().filter(|(_, n)| *n == name).map(|(c, _)| *c),
                            );
                            model.members.insert((name.clone(), uid.to_string()));
                        }
                        uid.to_string()
                    });
                    prop_assert_eq!(known.as_str(), uid.as_str());
                }
                Op::Channels(u) => {
                    let ours: BTreeSet<_> =
                        hub.channels_of(&user(u)).iter().map(|c| c.uid.to_string()).collect();
                    let theirs: BTreeSet<_> = model
                        .members
                        .iter()
                        .filter(|(name, _)| *name == user(u))
                        .map(|(_, room)| room.clone())
                        .collect();
                    prop_assert_eq!(ours, theirs);
                }
            }
            let frames: Vec<_> = std::iter::from_fn(|| hub.poll_transmit()).collect();
            let receivers: BTreeSet<_> = frames.iter().map(|(conn, _)| conn.0).collect();
            prop_assert_eq!(receivers.len(), frames.len());
            prop_assert_eq!(receivers, expected);
            for (_, text) in &frames {
                let frame = ServerFrame::decode(text.as_str(), &Limits::default()).unwrap();
                let event = frame.into_event().unwrap().unwrap();
                prop_assert!(!matches!(event, Event::Unknown(_)));
            }
        }
    }
}
