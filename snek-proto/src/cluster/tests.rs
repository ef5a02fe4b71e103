//! Tests of [`Node`]: several of them on one store, under virtual time, with losses.

mod world;

use std::collections::HashSet;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::hub::{BUSY, NO_SUCH_CHANNEL, NOT_A_MEMBER};
use world::{Lost, World, config, record, world};

const SECOND: Duration = Duration::from_secs(1);

/// Ann on the first node, Bob on the second, Ann once more on the third.
fn three() -> World {
    let mut world = world(3);
    world.connect(0, 1, "ann");
    world.connect(1, 2, "bob");
    world.connect(2, 3, "ann");
    world
}

#[test]
fn a_message_reaches_every_member_on_every_node_once() {
    let mut world = three();
    let id = world.send(0, 1, "hi");
    assert_eq!(world.sent[&(0, id)], Ok(()));
    for (at, conn) in [(0, 1), (1, 2), (2, 3)] {
        assert_eq!(world.texts(at, conn), ["hi"]);
    }
    assert_eq!(
        world.received[&(1, ConnId(2))],
        [
            r#"{"event":"message","message":"hi","username":"ann","user_nick":"","channel_uid":"general","is_final":true}"#
        ]
    );
}

#[test]
fn records_lost_by_the_feed_are_read_from_the_stream_in_order() {
    let mut world = three();
    world.lose = Box::new(|what| what == Lost::Live(1));
    world.send(0, 1, "one");
    world.send(0, 1, "two");
    assert_eq!(world.texts(1, 2), [""; 0]);
    world.lose = Box::new(|_| false);
    world.send(0, 1, "three");
    assert_eq!(world.texts(1, 2), ["one", "two", "three"]);
}

#[test]
fn the_answer_to_an_earlier_opening_opens_no_feed() {
    let now = Instant::now();
    let mut feed = Feed::new(2, now);
    assert!(!feed.opened(1, History::default(), now) && !feed.is_open());
    assert!(feed.opened(2, History::default(), now) && feed.is_open());
    assert!(!feed.opened(2, History::default(), now));
}

#[test]
fn a_loss_at_the_end_is_found_after_the_reconnect() {
    let mut world = three();
    world.lose = Box::new(|what| matches!(what, Lost::Live(_)));
    world.send(0, 1, "one");
    world.lose = Box::new(|_| false);
    world.check();
    for (at, conn) in [(0, 1), (1, 2), (2, 3)] {
        assert_eq!(world.texts(at, conn), ["one"]);
    }
}

#[test]
fn a_message_that_nobody_stores_any_more_is_asked_for_again_until_it_is_stored() {
    let mut world = three();
    let call = Call::SendMessage {
        channel_uid: "general".into(),
        message: "hi".into(),
        is_final: Final::Yes,
    };
    let node = &mut world.nodes[0];
    let handled = node.handle_call(ConnId(1), &call, world.now).unwrap();
    let Handled::Sending(id) = handled else {
        panic!("{handled:?}")
    };
    node.take_publish(id).unwrap();
    node.store_again(id);
    world.run();
    assert_eq!(world.sent[&(0, id)], Ok(()));
    world.nodes[0].store_again(id);
    assert_eq!(world.nodes[0].poll_request(), None);
    assert_eq!(world.texts(1, 2), ["hi"]);
}

#[test]
fn a_sender_whose_message_is_repeated_keeps_its_order() {
    let mut world = three();
    let mut attempts = 0;
    world.lose = Box::new(move |what| {
        attempts += u32::from(what == Lost::Attempt);
        what == Lost::Attempt && attempts == 1
    });
    world.send(0, 1, "one");
    world.send(0, 1, "two");
    world.pass(10 * SECOND);
    assert_eq!(world.texts(1, 2), ["one", "two"]);
}

#[test]
fn every_sender_learns_the_outcome_while_the_store_is_gone() {
    let mut world = three();
    world.is_down = true;
    let (first, second) = (world.send(0, 1, "one"), world.send(0, 1, "two"));
    world.pass(19 * SECOND);
    assert!(world.sent.is_empty());
    world.pass(SECOND);
    let unknown = Err(SendError::Unknown);
    assert_eq!(world.sent[&(0, first)], unknown);
    assert_eq!(world.sent[&(0, second)], Err(SendError::NotSent));
    // The next one gets through when it is back.
    let third = world.send(0, 1, "three");
    world.is_down = false;
    world.pass(10 * SECOND);
    assert_eq!(world.sent[&(0, third)], Ok(()));
}

#[test]
fn a_refusal_reaches_the_sender_alone() {
    for error in [SendError::Full, SendError::TooLarge, SendError::Refused] {
        let mut world = three();
        world.is_down = true;
        let id = world.send(0, 1, "one");
        world.nodes[0].handle_stored(id, Err(error), world.now);
        world.run();
        assert_eq!(world.sent[&(0, id)], Err(error));
        assert_eq!(world.texts(1, 2), [""; 0]);
    }
}

#[test]
fn too_many_open_messages_are_refused() {
    let mut world = three();
    world.nodes[0] = Node::new(
        "x",
        NodeConfig {
            max_sends: 1,
            ..config()
        },
        world.now,
    );
    world.nodes[0].handle_public(&Channel::new("general", "", None), 1, world.now);
    world.connect(0, 9, "ann");
    world.is_down = true;
    world.send(0, 9, "one");
    let call = Call::SendMessage {
        channel_uid: "general".into(),
        message: "two".into(),
        is_final: Final::Yes,
    };
    assert_eq!(world.call(0, 9, &call), Err(BUSY));
}

#[test]
fn partial_messages_keep_their_order_among_final_ones() {
    let mut world = three();
    world.post(0, 1, "general", "a", false);
    let mut attempts = 0;
    world.lose = Box::new(move |what| {
        attempts += u32::from(what == Lost::Attempt);
        what == Lost::Attempt && attempts == 1
    });
    world.send(0, 1, "ab");
    // Behind a final message that is repeated, the last partial one waits.
    world.post(0, 1, "general", "x", false);
    world.post(0, 1, "general", "xy", false);
    world.pass(10 * SECOND);
    for (at, conn) in [(0, 1), (1, 2), (2, 3)] {
        assert_eq!(world.texts(at, conn), ["a", "ab", "xy"]);
    }
}

#[test]
fn a_final_message_drops_the_waiting_partial_one() {
    let mut world = three();
    world.is_down = true;
    world.send(0, 1, "ab");
    world.post(0, 1, "general", "x", false);
    world.send(0, 1, "xyz");
    world.is_down = false;
    world.pass(10 * SECOND);
    for (at, conn) in [(0, 1), (1, 2), (2, 3)] {
        assert_eq!(world.texts(at, conn), ["ab", "xyz"]);
    }
}

#[test]
fn partial_messages_are_dropped_while_a_message_before_them_is_missing() {
    let mut world = three();
    world.lose = Box::new(|what| what == Lost::Live(1));
    world.send(0, 1, "one");
    world.lose = Box::new(|what| what == Lost::Fill);
    world.send(0, 1, "two");
    world.post(0, 1, "general", "th", false);
    assert_eq!(world.texts(1, 2), [""; 0]);
    world.lose = Box::new(|_| false);
    world.pass(10 * SECOND);
    assert_eq!(world.texts(1, 2), ["one", "two"]);
}

#[test]
fn partial_messages_return_with_the_final_message_that_was_read_before_it_came() {
    let mut world = three();
    world.lose = Box::new(|what| what == Lost::Live(1));
    world.send(0, 1, "one");
    world.check();
    world.lose = Box::new(|_| false);
    world.post(0, 1, "general", "late", false);
    assert_eq!(world.texts(1, 2), ["one"]);
    world.deliver(1);
    world.post(0, 1, "general", "partial", false);
    assert_eq!(world.texts(1, 2), ["one", "partial"]);
}

#[test]
fn a_typing_indicator_reaches_all_nodes() {
    let mut world = three();
    let call = Call::SetTyping {
        channel_uid: "general".into(),
        color: "#FF0000".into(),
    };
    world.call(0, 1, &call).unwrap();
    let received = &world.received[&(1, ConnId(2))];
    assert!(
        received[0].contains(r#""event":"set_typing""#),
        "{received:?}"
    );
}

#[test]
fn a_connection_is_ready_when_all_its_channels_are_open() {
    let mut world = three();
    world.lose = Box::new(|what| what == Lost::Open);
    let old = record("cid", &["c1"], 1);
    world.store.records.insert("cid".into(), old);
    world.connect(0, 7, "cid");
    assert!(!world.is_ready(0, 7));
    let refused = world.call(0, 7, &Call::GetChannels);
    assert_eq!(refused, Err(NOT_LOGGED_IN));
    world.lose = Box::new(|_| false);
    world.pass(10 * SECOND);
    assert!(world.is_ready(0, 7));
}

#[test]
fn messages_arriving_while_a_channel_opens_are_delivered() {
    let mut world = three();
    world.lose = Box::new(|what| what == Lost::Open);
    let cid = record("cid", &["c1"], 1);
    world.store.records.insert("cid".into(), cid.clone());
    world.connect(0, 7, "cid");
    // The answer was read before this message was stored.
    let channel = ChannelUid::new("c1");
    let (sequence, _) = world.store.publish(&channel, &"k".into(), &"{}".into());
    world.deliver(sequence);
    world.nodes[0].handle_open(&channel, 2, None, world.now);
    world.run();
    assert!(world.is_ready(0, 7));
    assert_eq!(world.received[&(0, ConnId(7))], ["{}"]);
}

#[test]
fn a_node_subscribes_to_the_channels_of_its_users_only() {
    let mut world = three();
    let cid = record("cid", &["c1", "c2"], 1);
    world.store.records.insert("cid".into(), cid);
    world.connect(0, 7, "cid");
    assert_eq!(world.subscribed[0].len(), 3);
    assert_eq!(world.subscribed[1].len(), 1);
    assert!(world.nodes[0].disconnect(ConnId(7)));
    world.run();
    assert_eq!(world.subscribed[0].len(), 1);
    assert!(world.nodes[0].disconnect(ConnId(1)));
    world.run();
    assert!(world.subscribed[0].is_empty());
    assert!(!world.nodes[0].disconnect(ConnId(1)));
}

#[test]
fn a_changed_record_emits_the_joins_and_leaves_of_a_single_server() {
    let mut world = three();
    world.nodes[0].handle_member(record("ann", &["c1"], 2), world.now);
    world.run();
    world.nodes[0].handle_member(record("ann", &["c2"], 3), world.now);
    world.run();
    // An older one comes late.
    world.nodes[0].handle_member(record("ann", &["c1"], 2), world.now);
    world.run();
    let event = |name, uid| format!(r#"{{"event":"{name}","data":{{"channel_uid":"{uid}"}}}}"#);
    assert_eq!(
        world.received[&(0, ConnId(1))],
        [
            event("join", "c1"),
            event("leave", "c1"),
            event("join", "c2")
        ]
    );
    let channels = world.nodes[0].channels_of("ann");
    let uids: Vec<_> = channels.iter().map(|it| it.uid.as_str()).collect();
    assert_eq!(uids, ["general", "c2"]);
}

#[test]
fn a_new_public_channel_has_all_users_in_it() {
    let mut world = three();
    world.public("news");
    let id = world.post(1, 2, "news", "hi", true);
    assert!(matches!(id, Handled::Sending(_)));
    for (at, conn) in [(0, 1), (1, 2), (2, 3)] {
        assert_eq!(world.texts(at, conn), ["hi"]);
        assert!(world.received[&(at, ConnId(conn))][0].contains("join"));
    }
}

#[test]
fn a_removed_channel_keeps_only_listed_members() {
    let mut world = three();
    world.nodes[1].handle_member(record("bob", &["general"], 2), world.now);
    for node in &mut world.nodes {
        node.remove_public(&ChannelUid::new("general"));
    }
    world.run();
    let left = r#"{"event":"leave","data":{"channel_uid":"general"}}"#;
    assert_eq!(world.received[&(0, ConnId(1))], [left]);
    assert_eq!(world.received.get(&(1, ConnId(2))), None);
    assert!(world.nodes[0].channels_of("ann").is_empty());
    assert!(world.subscribed[0].is_empty());
    assert_eq!(world.subscribed[1].len(), 1);
}

#[test]
fn a_removed_user_is_on_no_node_and_all_connections_are_returned() {
    let mut world = three();
    world.connect(0, 9, "ann");
    assert_eq!(world.nodes[0].remove_member("ann"), [ConnId(1), ConnId(9)]);
    assert_eq!(world.nodes[0].remove_member("ann"), []);
    assert!(!world.nodes[0].is_online("ann"));
    world.run();
    assert!(world.subscribed[0].is_empty());
}

#[test]
fn only_members_can_send() {
    let mut world = three();
    world.connect(0, 7, "cid");
    let call = |uid: &str| Call::SendMessage {
        channel_uid: uid.into(),
        message: "x".into(),
        is_final: Final::Yes,
    };
    let nowhere = world.call(0, 7, &call("c1"));
    assert_eq!(nowhere, Err(NO_SUCH_CHANNEL));
    world.nodes[0].handle_member(record("ann", &["c1"], 2), world.now);
    world.run();
    assert_eq!(world.call(0, 7, &call("c1")), Err(NOT_A_MEMBER));
}

#[test]
fn a_stream_that_was_emptied_is_delivered_from_its_beginning() {
    for is_checked in [true, false] {
        let mut world = three();
        world.send(0, 1, "one");
        world.send(0, 1, "two");
        world.store.stream.clear();
        if is_checked {
            world.check();
        }
        // The third has a number that the first stream did not have.
        for text in ["three", "four", "five"] {
            world.send(1, 2, text);
        }
        for (at, conn) in [(0, 1), (1, 2), (2, 3)] {
            let received = world.texts(at, conn);
            assert_eq!(received, ["one", "two", "three", "four", "five"]);
        }
    }
}

#[test]
fn an_older_copy_of_the_stream_is_delivered_from_the_first_difference() {
    for live in [true, false] {
        let mut world = three();
        for number in 0..5 {
            world.send(0, 1, &number.to_string());
        }
        world.store.stream.truncate(2);
        // Others have written past it, and the nodes were told of none of it, or of all.
        world.lose = Box::new(move |what| matches!(what, Lost::Live(_)) && !live);
        for number in 5..10 {
            world.send(1, 2, &number.to_string());
        }
        world.lose = Box::new(|_| false);
        world.check();
        for (at, conn) in [(0, 1), (1, 2), (2, 3)] {
            assert_eq!(world.texts(at, conn).concat(), "0123456789");
        }
    }
}

#[test]
fn a_copy_older_than_all_that_was_seen_is_read_from_its_end() {
    // More is lost than a feed remembers, or than it has seen since it began.
    for (before, after) in [(60, 260), (60, 1), (1, 260)] {
        let mut world = three();
        for _ in 0..before {
            world.send(0, 1, "old");
        }
        let copy = world.store.stream.clone();
        for _ in 0..3 {
            world.send(0, 1, "old");
        }
        world.connect(1, 4, "cid");
        for _ in 0..after {
            world.send(0, 1, "lost");
        }
        let received = world.texts(1, 4).len();
        world.pass(5 * SECOND);
        world.store.stream = copy;
        world.check();
        world.send(1, 2, "new");
        assert_eq!(world.texts(1, 4).len(), received + 1, "{before} {after}");
        assert_eq!(world.texts(2, 3).last().unwrap(), "new");
        assert_eq!(world.leaving, [1, 2, 3, 4].map(ConnId).into());
    }
}

#[test]
fn a_message_that_no_feed_brought_is_delivered_after_the_next_comparison() {
    let mut world = three();
    world.lose = Box::new(|what| matches!(what, Lost::Live(_)));
    world.send(0, 1, "one");
    world.lose = Box::new(|_| false);
    world.pass(5 * SECOND);
    for (at, conn) in [(0, 1), (1, 2), (2, 3)] {
        assert_eq!(world.texts(at, conn), ["one"]);
    }
    assert!(world.leaving.is_empty());
}

#[test]
fn a_node_is_current_when_all_that_differs_is_read() {
    let mut world = three();
    world.pass(SECOND);
    assert!(world.nodes[1].is_current());
    world.lose = Box::new(|what| matches!(what, Lost::Live(1) | Lost::Fill));
    world.send(0, 1, "one");
    world.pass(6 * SECOND);
    assert!(world.nodes[0].is_current());
    assert!(!world.nodes[1].is_current());
    world.lose = Box::new(|what| what == Lost::Probe);
    world.pass(2 * SECOND);
    assert_eq!(world.texts(1, 2), ["one"]);
    assert!(world.nodes[1].is_current());
    world.check();
    assert!(!world.nodes[1].is_current());
    world.lose = Box::new(|_| false);
    world.pass(SECOND);
    assert!(world.nodes[1].is_current());
}

#[test]
fn a_node_gives_up_when_the_stream_is_silent_for_too_long() {
    let mut world = three();
    world.pass(100 * SECOND);
    world.is_down = true;
    world.pass(20 * SECOND);
    world.is_down = false;
    world.pass(20 * SECOND);
    assert_eq!(world.gone, HashSet::new());
    world.is_down = true;
    world.pass(31 * SECOND);
    assert_eq!(world.gone, HashSet::from([0, 1, 2]));
    assert_eq!(world.nodes[0].poll_timeout(), None);
}

#[test]
fn a_node_that_ends_answers_every_sender_and_returns_the_connections() {
    let mut world = three();
    world.is_down = true;
    let (first, second) = (world.send(0, 1, "one"), world.send(0, 1, "two"));
    assert_eq!(world.nodes[0].end(), [ConnId(1)]);
    world.run();
    assert_eq!(world.sent[&(0, first)], Err(SendError::Unknown));
    assert_eq!(world.sent[&(0, second)], Err(SendError::NotSent));
    assert_eq!(world.nodes[0].poll_timeout(), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever gets lost: everyone hears the same in the same order, nothing that was
    /// acknowledged is missing, and nothing comes twice.
    #[test]
    fn every_node_gets_the_stream_under_random_losses(
        steps in prop::collection::vec((0_usize..3, 0_u64..1_000), 1..60),
        seed in any::<u64>(),
    ) {
        let mut world = three();
        let mut state = seed | 1;
        world.lose = Box::new(move |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 62 == 0
        });
        let mut ids = Vec::new();
        for (number, (at, millis)) in steps.into_iter().enumerate() {
            let text = format!("{at} {number}");
            ids.push((at, world.send(at, at as u64 + 1, &text), text));
            world.pass(Duration::from_millis(millis));
        }
        world.pass(60 * SECOND);
        world.lose = Box::new(|_| false);
        world.check();
        world.pass(60 * SECOND);

        let received = world.texts(0, 1);
        prop_assert_eq!(&world.texts(1, 2), &received);
        prop_assert_eq!(&world.texts(2, 3), &received);
        let all: HashSet<&String> = received.iter().collect();
        prop_assert_eq!(all.len(), received.len());
        prop_assert_eq!(world.store.stream.len(), received.len());
        for (at, id, text) in &ids {
            match world.sent[&(*at, *id)] {
                Ok(()) => prop_assert!(all.contains(text)),
                Err(SendError::NotSent) => prop_assert!(!all.contains(text)),
                Err(_) => {}
            }
        }
        // Each sender's messages are in the order of sending.
        for at in 0..3 {
            let own = |it: &&String| it.starts_with(&at.to_string());
            let numbers = received.iter().filter(own).map(|it| it[2..].parse::<u32>().unwrap());
            prop_assert!(numbers.is_sorted());
        }
    }
}
