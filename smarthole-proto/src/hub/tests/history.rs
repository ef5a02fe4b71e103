//! What a hub remembers of ended deliveries.

use super::*;

#[test]
fn the_history_has_the_last_ended_messages_only() {
    let config = HubConfig {
        max_history: 2,
        ..HubConfig::default()
    };
    let mut test = Test::with(config, &["a", "b"]);
    let open = test.send(&["a", "b"]);
    let ids: Vec<_> = (0..3).map(|_| test.send(&["a"])).collect();
    for id in ids.iter().rev() {
        test.answer(1, id, Answer::Ack);
    }
    let kept: Vec<_> = test.hub.history().map(|entry| entry.message).collect();
    assert_eq!(kept, [ids[1].clone(), ids[0].clone()]);
    let events = test.answer(1, &ids[2], Answer::Notification(Notification::new("x")));
    assert_eq!(whys(&events), [&Ignored::UnknownMessage]);
    // Forgotten for one of its clients, and open for the other.
    test.answer(1, &open, Answer::Ack);
    test.send(&["a"]);
    let more: Vec<_> = (0..2).map(|_| test.send(&["a"])).collect();
    for id in &more {
        test.answer(1, id, Answer::Ack);
    }
    let events = test.answer(1, &open, reject("late"));
    assert_eq!(whys(&events), [&Ignored::UnknownMessage]);
    let events = test.answer(2, &open, Answer::Ack);
    let [_, HubEvent::Settled { outcomes, .. }] = &events[..] else {
        panic!("{events:?}");
    };
    assert!(outcomes.iter().all(|one| one.outcome == Outcome::Acked));
    assert_eq!(outcomes.len(), 2);
    assert_eq!(test.hub.history().count(), 2);
    assert_eq!(test.hub.messages.len(), 2 + 1);
}

#[test]
fn nothing_is_stored_without_a_history() {
    let config = HubConfig {
        max_history: 0,
        ..HubConfig::default()
    };
    let mut test = Test::with(config, &["a"]);
    let id = test.send(&["a"]);
    assert_eq!(test.answer(1, &id, Answer::Ack).len(), 2);
    assert_eq!(test.hub.messages.len(), 0);
    assert_eq!(test.hub.open_bytes, 0);
}

#[test]
fn a_hundred_deliveries_are_remembered_by_default() {
    let mut test = Test::new(&["a"]);
    for _ in 0..101 {
        let id = test.send(&["a"]);
        test.answer(1, &id, Answer::Ack);
    }
    assert_eq!(test.hub.history().count(), 100);
    // A timeout takes the place of the oldest one, too.
    test.send(&["a"]);
    test.wait(Duration::from_secs(30));
    assert_eq!(test.hub.history().count(), 100);
    let last = test.hub.history().last().unwrap();
    assert_eq!(last.outcome, Outcome::TimedOut);
}
