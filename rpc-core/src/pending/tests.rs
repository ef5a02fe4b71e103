//! Both tables against naive models, and the properties that a model does not show.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::Instant;
use crate::id::{CallId, Hex16};

type Calls = PendingCalls<u32, Hex16>;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[test]
fn ids_are_predictable_and_never_repeat() {
    let start = Instant::now();
    let mut calls = Calls::new(7, 3, start);
    let mut seen = HashSet::new();
    for round in 0..10 {
        for tag in 0..3 {
            let announced = calls.next_id();
            let id = calls.insert(tag, None).unwrap();
            assert_eq!(Some(id), announced);
            assert!(seen.insert(id.raw()));
        }
        assert_eq!(calls.next_id(), None);
        assert_eq!(
            calls.insert(9, None),
            Err(InsertError::Full { tag: 9, max: 3 })
        );
        if round % 2 == 0 {
            assert_eq!(std::iter::from_fn(|| calls.pop_any()).count(), 3);
        } else {
            let ids: Vec<_> = calls.iter().map(|(id, _)| id).collect();
            assert!(ids.iter().all(|id| calls.complete(*id).live().is_some()));
        }
    }
    assert_eq!(seen.len(), 30);
}

#[test]
fn a_late_reply_is_distinct_from_an_unknown_one() {
    let start = Instant::now();
    let mut calls = Calls::new(0, 8, start);
    let id = calls.insert(1, None).unwrap();
    let next = calls.next_id().unwrap();
    assert_eq!(calls.complete(next), Match::Unknown);
    assert_eq!(calls.complete_text("not an id"), Match::Unknown);
    assert_eq!(calls.complete_text(&id.to_string()), Match::Live(1));
    assert_eq!(calls.complete(id), Match::Late);
    let again = calls.next_id().unwrap();
    assert_eq!(calls.complete(again), Match::Unknown);
    let again = calls.insert(2, None).unwrap();
    assert_eq!(calls.complete(id), Match::Late);
    assert_eq!(
        std::iter::from_fn(|| calls.pop_any()).collect::<Vec<_>>(),
        [(again, 2)]
    );
    assert_eq!(calls.complete(again), Match::Late);
    assert_eq!(calls.complete(CallId::from_raw(99)), Match::Unknown);
}

#[test]
fn an_overdue_call_can_be_extended() {
    let start = Instant::now();
    let mut calls = Calls::new(0, 8, start);
    let [one, two] = [1, 2].map(|tag| calls.insert(tag, Some(start + ms(5))).unwrap());
    assert_eq!(calls.peek_expired(start + ms(4)), None);
    assert_eq!(calls.peek_expired(start + ms(7)), Some(one));
    assert_eq!(calls.peek_expired(start + ms(7)), Some(one));
    assert!(calls.extend(one, Some(start + ms(8))));
    assert_eq!(calls.peek_expired(start + ms(7)), Some(two));
    assert_eq!(calls.complete(two), Match::Live(2));
    assert_eq!(calls.peek_expired(start + ms(7)), None);
    assert_eq!(calls.poll_timeout(), Some(start + ms(8)));
    assert_eq!(calls.pop_expired(start + ms(8)), Some((one, 1)));
}

#[test]
fn a_call_never_expires_before_its_deadline() {
    let start = Instant::now();
    let mut calls = Calls::new(0, 8, start);
    let deadline = start + Duration::from_micros(1500);
    calls.insert(1, Some(deadline)).unwrap();
    assert_eq!(calls.pop_expired(deadline), None);
    assert_eq!(calls.poll_timeout(), Some(start + ms(2)));
    assert_eq!(
        calls.pop_expired(start + ms(2)).map(|(_, tag)| tag),
        Some(1)
    );
}

#[test]
fn past_and_far_deadlines_are_handled() {
    let start = Instant::now() + ms(1000);
    let mut calls = Calls::new(0, 8, start);
    let far = (0..60)
        .rev()
        .find_map(|bits| start.checked_add(Duration::from_secs(1 << bits)));
    calls.insert(1, far).unwrap();
    calls
        .insert(2, Some(start + ms(1000 * 60 * 60 * 24 * 365 * 200)))
        .unwrap();
    calls.insert(3, Some(start - ms(500))).unwrap();
    assert!(calls.poll_timeout().is_some_and(|at| at <= start));
    assert_eq!(calls.pop_expired(start).map(|(_, tag)| tag), Some(3));
    assert_eq!(calls.pop_expired(start + ms(1000)), None);
    assert!(calls.poll_timeout().is_some_and(|at| at > start + ms(1000)));
    assert_eq!(
        std::iter::from_fn(|| calls.pop_any())
            .map(|(_, tag)| tag)
            .collect::<Vec<_>>(),
        [2, 1]
    );
}

#[test]
fn equal_deadlines_expire_in_order_of_insertion_even_across_cascades() {
    let start = Instant::now();
    let mut calls = Calls::new(0, 1000, start);
    let deadline = Some(start + ms(10_000));
    let mut now = start;
    for tag in 0..200 {
        calls.insert(tag, deadline).unwrap();
        now += ms(47);
        assert_eq!(calls.pop_expired(now), None);
    }
    let order: Vec<_> = std::iter::from_fn(|| calls.pop_expired(start + ms(10_000)))
        .map(|(_, tag)| tag)
        .collect();
    assert_eq!(order, (0..200).collect::<Vec<_>>());
}

#[test]
fn a_suspended_call_has_no_deadline() {
    let start = Instant::now();
    let mut calls = Calls::new(0, 8, start);
    let id = calls.insert(1, Some(start + ms(10))).unwrap();
    assert!(calls.extend(id, None));
    assert_eq!(calls.poll_timeout(), None);
    assert_eq!(calls.pop_expired(start + ms(100_000)), None);
    assert!(calls.extend(id, Some(start + ms(100_500))));
    assert_eq!(calls.poll_timeout(), Some(start + ms(100_500)));
    *calls.get_mut(id).unwrap() += 1;
    assert_eq!(calls.get(id), Some(&2));
    assert_eq!(calls.complete(id), Match::Live(2));
    assert!(!calls.extend(id, None));
}

#[test]
fn a_drained_table_frees_its_memory_and_still_works() {
    let start = Instant::now();
    let mut calls = Calls::new(5, 2000, start);
    let old: Vec<_> = (0..1000)
        .map(|tag| {
            calls
                .insert(tag, Some(start + ms(u64::from(tag) * 7)))
                .unwrap()
        })
        .collect();
    assert_eq!(std::iter::from_fn(|| calls.pop_any()).count(), 1000);
    assert!(calls.is_empty());
    assert_eq!(calls.poll_timeout(), None);
    assert!(old.iter().all(|id| calls.complete(*id) == Match::Late));
    let id = calls.insert(1, None).unwrap();
    assert!(!old.contains(&id));
    assert!(old.iter().all(|id| calls.complete(*id) == Match::Late));
    assert_eq!(calls.complete(id), Match::Live(1));
}

#[test]
fn a_drained_table_yields_overdue_calls_then_the_earliest_and_then_those_without_a_deadline() {
    let start = Instant::now();
    let mut calls = Calls::new(0, 8, start);
    let entries = [
        (1, None),
        (2, Some(900)),
        (3, Some(5)),
        (4, Some(5)),
        (5, Some(50)),
    ];
    for (tag, after) in entries {
        let deadline = after.map(|after| start + ms(after));
        calls.insert(tag, deadline).unwrap();
    }
    let expired = calls.pop_expired(start + ms(7));
    assert_eq!(expired.map(|(_, tag)| tag), Some(3));
    let drained = std::iter::from_fn(|| calls.pop_any());
    assert_eq!(
        drained.map(|(_, tag)| tag).collect::<Vec<_>>(),
        [4, 5, 2, 1]
    );
}

#[test]
fn an_entry_costs_at_most_24_bytes_beyond_its_tag() {
    assert_eq!(
        size_of::<slab::Slot<[u64; 4]>>(),
        24 + size_of::<Option<[u64; 4]>>()
    );
    assert_eq!(size_of::<slab::Slot<Box<u8>>>(), 32);
}

#[test]
fn insert_errors_become_refusals() {
    let full = InsertError::Full { tag: "t", max: 3 };
    assert_eq!(Refused::from(full), Refused::TooManyCalls { max: 3 });
    assert!(matches!(
        Refused::from(InsertError::Duplicate { tag: 1 }),
        Refused::Invalid { .. }
    ));
}

#[test]
fn a_map_refuses_a_pending_key_until_it_completes() {
    let start = Instant::now();
    let mut map = PendingMap::<String, u32>::new(1, start);
    map.insert("a".to_owned(), 1, Some(start + ms(5))).unwrap();
    let again = map.insert("a".to_owned(), 2, None);
    assert_eq!(again, Err(InsertError::Duplicate { tag: 2 }));
    let full = map.insert("b".to_owned(), 3, None);
    assert_eq!(full, Err(InsertError::Full { tag: 3, max: 1 }));
    assert_eq!(map.pop_expired(start + ms(5)), Some(("a".to_owned(), 1)));
    assert_eq!(map.remove("a"), None);
    map.insert("a".to_owned(), 4, None).unwrap();
    assert_eq!(map.remove("a"), Some(4));
}

/// One step; indexes are taken modulo what there is.
#[derive(Clone, Debug)]
enum Op {
    Insert(Option<u64>),
    Extend(usize, Option<u64>),
    Complete(usize),
    Garbage(u64),
    Advance(u64),
    PopOne,
    PopToTimeout,
    PopAny,
}

fn delay() -> impl Strategy<Value = Option<u64>> {
    prop_oneof![
        1 => Just(None),
        3 => (0_u64..5).prop_map(Some),
        4 => (0_u64..300).prop_map(Some),
        3 => (0_u64..300_000).prop_map(Some),
        1 => (0_u64..u64::from(u32::MAX) * 1000).prop_map(Some),
    ]
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        6 => delay().prop_map(Op::Insert),
        2 => (any::<usize>(), delay()).prop_map(|(which, delay)| Op::Extend(which, delay)),
        3 => any::<usize>().prop_map(Op::Complete),
        1 => any::<u64>().prop_map(Op::Garbage),
        2 => prop_oneof![0_u64..10, 0_u64..500, 0_u64..100_000].prop_map(Op::Advance),
        2 => Just(Op::PopOne),
        2 => Just(Op::PopToTimeout),
        1 => Just(Op::PopAny),
    ];
    prop::collection::vec(op, 1..120)
}

/// Deadline tick and order of insertion give the tag; ticks in the past count as the last one
/// that the table has seen.
#[derive(Default)]
struct Model {
    by_time: BTreeMap<(u64, u64), u32>,
    keys: HashMap<u32, (u64, u64)>,
    elapsed: u64,
    next: u64,
}

impl Model {
    fn put(&mut self, tag: u32, tick: Option<u64>) {
        let tick = tick.map_or(u64::MAX, |tick| tick.max(self.elapsed));
        let key = (tick, self.next);
        self.next += 1;
        if let Some(old) = self.keys.insert(tag, key) {
            self.by_time.remove(&old);
        }
        self.by_time.insert(key, tag);
    }

    fn take(&mut self, tag: u32) -> bool {
        match self.keys.remove(&tag) {
            Some(key) => self.by_time.remove(&key).is_some(),
            None => false,
        }
    }

    fn pop(&mut self, now: u64) -> Option<u32> {
        if let Some((&(tick, _), &tag)) = self.by_time.first_key_value()
            && tick <= now
        {
            self.elapsed = self.elapsed.max(tick);
            self.take(tag);
            return Some(tag);
        }
        self.elapsed = self.elapsed.max(now);
        None
    }

    fn earliest(&self) -> Option<u64> {
        self.by_time
            .keys()
            .next()
            .map(|key| key.0)
            .filter(|tick| *tick != u64::MAX)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn pending_calls_agree_with_a_naive_model(ops in ops(), seed: u64, max in 1_usize..40) {
        let start = Instant::now();
        let mut calls = Calls::new(seed, max, start);
        let mut model = Model::default();
        let mut issued: Vec<CallId> = Vec::new();
        let mut now = 0;
        for op in ops {
            match op {
                Op::Insert(delay) => {
                    let tag = u32::try_from(issued.len()).unwrap();
                    let tick = delay.map(|delay| now + delay);
                    let announced = calls.next_id();
                    match calls.insert(tag, tick.map(|tick| start + ms(tick))) {
                        Ok(id) => {
                            prop_assert_eq!(announced, Some(id));
                            prop_assert!(!issued.contains(&id));
                            issued.push(id);
                            model.put(tag, tick);
                        }
                        Err(error) => {
                            prop_assert_eq!(error, InsertError::Full { tag, max });
                            prop_assert_eq!(model.keys.len(), max);
                        }
                    }
                }
                Op::Extend(which, delay) if !issued.is_empty() => {
                    let tag = which % issued.len();
                    let tick = delay.map(|delay| now + delay);
                    let extended = calls.extend(issued[tag], tick.map(|tick| start + ms(tick)));
                    let tag = u32::try_from(tag).unwrap();
                    prop_assert_eq!(extended, model.keys.contains_key(&tag));
                    if extended {
                        model.put(tag, tick);
                    }
                }
                Op::Complete(which) if !issued.is_empty() => {
                    let which = which % issued.len();
                    let tag = u32::try_from(which).unwrap();
                    let expected = if model.take(tag) { Match::Live(tag) } else { Match::Late };
                    prop_assert_eq!(calls.complete_text(&issued[which].to_string()), expected);
                }
                Op::Garbage(raw) if !issued.iter().any(|id| id.raw() == raw) => {
                    prop_assert_eq!(calls.get(CallId::from_raw(raw)), None);
                    prop_assert_eq!(calls.complete(CallId::from_raw(raw)), Match::Unknown);
                }
                Op::Advance(step) => {
                    now += step;
                    loop {
                        let popped = calls.pop_expired(start + ms(now)).map(|(_, tag)| tag);
                        prop_assert_eq!(popped, model.pop(now));
                        if popped.is_none() {
                            break;
                        }
                    }
                }
                Op::PopOne => {
                    let popped = calls.pop_expired(start + ms(now));
                    prop_assert_eq!(popped.map(|(_, tag)| tag), model.pop(now));
                }
                Op::PopToTimeout => {
                    if let Some(at) = calls.poll_timeout() {
                        let tick = u64::try_from((at - start).as_millis()).unwrap();
                        now = now.max(tick);
                        loop {
                            let popped = calls.pop_expired(start + ms(now)).map(|(_, tag)| tag);
                            prop_assert_eq!(popped, model.pop(now));
                            if popped.is_none() {
                                break;
                            }
                        }
                        prop_assert!(calls.poll_timeout().is_none_or(|next| next > at));
                    }
                }
                Op::PopAny => {
                    let popped = calls.pop_any();
                    prop_assert_eq!(popped.is_none(), model.keys.is_empty());
                    if let Some((id, tag)) = popped {
                        prop_assert_eq!(id, issued[tag as usize]);
                        prop_assert!(model.take(tag));
                    }
                }
                _ => {}
            }
            prop_assert_eq!(calls.len(), model.keys.len());
            prop_assert_eq!(calls.iter().count(), calls.len());
            let timeout = calls.poll_timeout();
            match model.earliest() {
                None => prop_assert_eq!(timeout, None),
                Some(tick) => {
                    prop_assert!(timeout.is_some_and(|at| at <= start + ms(tick)));
                    if calls.len() <= 8 && tick > model.elapsed {
                        prop_assert_eq!(timeout, Some(start + ms(tick)));
                    }
                }
            }
        }
    }

    #[test]
    fn a_pending_map_agrees_with_a_naive_model(
        steps in prop::collection::vec((0_u8..5, 0_u8..12, 0_u64..200), 1..150),
        max in 1_usize..8,
    ) {
        let start = Instant::now();
        let mut map = PendingMap::<u8, u64>::new(max, start);
        let mut live: HashMap<u8, (u64, u64)> = HashMap::new();
        let mut now = 0;
        for (tag, (verb, key, delay)) in (0..).zip(steps) {
            match verb {
                0 | 1 => {
                    let expected = if live.contains_key(&key) {
                        Err(InsertError::Duplicate { tag })
                    } else if live.len() == max {
                        Err(InsertError::Full { tag, max })
                    } else {
                        live.insert(key, (now + delay, tag));
                        Ok(())
                    };
                    prop_assert_eq!(map.insert(key, tag, Some(start + ms(now + delay))), expected);
                }
                2 => {
                    prop_assert_eq!(map.remove(&key), live.remove(&key).map(|(_, tag)| tag));
                }
                3 => {
                    let entry = live.get_mut(&key);
                    prop_assert_eq!(map.get(&key), entry.as_ref().map(|entry| &entry.1));
                    prop_assert_eq!(map.extend(&key, Some(start + ms(now + delay))), entry.is_some());
                    if let Some(entry) = entry {
                        entry.0 = now + delay;
                    }
                }
                _ => {
                    now += delay;
                    while let Some((key, tag)) = map.pop_expired(start + ms(now)) {
                        let entry = live.remove(&key);
                        prop_assert!(entry.is_some_and(|(at, was)| at <= now && was == tag));
                    }
                    prop_assert!(live.values().all(|entry| entry.0 > now));
                }
            }
            prop_assert_eq!(map.len(), live.len());
        }
        prop_assert_eq!(std::iter::from_fn(|| map.pop_any()).count(), live.len());
    }
}
