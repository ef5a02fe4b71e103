//! Tests of the faults in virtual time.

use switchboard_cli::duration;

use super::*;
use crate::frame::Received;

fn lane(plan: &str, seed: u64, from: Side, now: Instant) -> Lane {
    Lane::new(
        &Arc::new(Plan::parse(plan, duration).unwrap()),
        seed,
        1,
        from,
        now,
    )
}

fn give(lane: &mut Lane, now: Instant, kind: &str, text: &str) {
    let raw = encode(Side::Server, RawFrame::text(text));
    let frame = Frame {
        kind: kind.into(),
        text: Some(text),
        raw,
    };
    lane.frame(now, &frame);
}

/// Everything that a lane does from now on, with the milliseconds.
fn all(lane: &mut Lane, start: Instant) -> Vec<(u128, String)> {
    let (mut done, mut now) = (Vec::new(), start);
    loop {
        while let Some(action) = lane.poll(now) {
            let words = match action {
                Action::Send(raw) => Received::parse(&raw)
                    .and_then(|(frame, _)| frame.text().map(str::to_owned))
                    .unwrap_or_default(),
                other => format!("{other:?}"),
            };
            done.push(((now - start).as_millis(), words));
        }
        match lane.next() {
            Some(next) => now = next,
            None => return done,
        }
    }
}

fn run(plan: &str, seed: u64, texts: &[&str]) -> Vec<(u128, String)> {
    let now = Instant::now();
    let mut lane = lane(plan, seed, Side::Client, now);
    for text in texts {
        give(&mut lane, now, "k", text);
    }
    all(&mut lane, now)
}

fn said(list: &[(u128, &str)]) -> Vec<(u128, String)> {
    list.iter()
        .map(|(at, text)| (*at, (*text).to_owned()))
        .collect()
}

#[test]
fn each_fault_has_the_effect_of_its_name() {
    for (plan, expected) in [
        ("", &[(0, "abc"), (0, "def")][..]),
        ("c2s k drop #1", &[(0, "def")]),
        ("drop", &[]),
        ("s2c k drop", &[(0, "abc"), (0, "def")]),
        ("other drop", &[(0, "abc"), (0, "def")]),
        ("duplicate #2", &[(0, "abc"), (0, "def"), (0, "def")]),
        ("delay 20ms #1", &[(20, "abc"), (20, "def")]),
        ("delay 20ms; delay 1s", &[(1020, "abc"), (1020, "def")]),
        ("reorder #1", &[(0, "def"), (0, "abc")]),
        ("reorder #2", &[(0, "abc"), (1000, "def")]),
        ("truncate 2 #1", &[(0, "ab"), (0, "def")]),
        ("half-open #2", &[(0, "abc")]),
        ("reset #2", &[(0, "abc"), (0, ""), (0, "Reset")]),
        ("close 1011 #1", &[(0, "Close(1011)")]),
        ("bandwidth 50", &[(100, "abc"), (200, "def")]),
        (
            "delay 10s; at 5s reset",
            &[(5000, "Reset"), (10_000, "abc"), (10_000, "def")],
        ),
        ("delay 10s; at 5s half-open", &[]),
    ] {
        assert_eq!(run(plan, 1, &["abc", "def"]), said(expected), "{plan}");
    }
}

#[test]
fn the_same_seed_gives_the_same_run_whatever_the_other_side_does() {
    let plan = "c2s k drop 1/3; * delay 50..200ms; s2c * duplicate 50%";
    let texts: Vec<_> = (0..200).map(|index| format!("{index}")).collect();
    let texts: Vec<_> = texts.iter().map(String::as_str).collect();
    let first = run(plan, 7, &texts);
    assert_eq!(first, run(plan, 7, &texts));
    assert_ne!(first, run(plan, 8, &texts));
    assert!((100..170).contains(&first.len()), "{}", first.len());
    let late = first.iter().all(|(at, _)| (50..200).contains(at));
    assert!(late, "{first:?}");
}

#[test]
fn a_member_is_replaced_in_place() {
    let text = r#"{"a": {"b": "x", "c": 1}, "d": 2}"#;
    assert_eq!(
        corrupt(text, "a.b", "-1").unwrap(),
        r#"{"a": {"b": -1, "c": 1}, "d": 2}"#
    );
    assert_eq!(
        corrupt(text, "d", "[]").unwrap(),
        r#"{"a": {"b": "x", "c": 1}, "d": []}"#
    );
    assert_eq!(corrupt(text, "a.x", "-1"), None);
    assert_eq!(corrupt("nonsense", "a", "-1"), None);
    let sent = run("corrupt id", 1, &[r#"{"id":"x"}"#]);
    assert!(
        CORRUPT
            .iter()
            .any(|it| sent[0].1 == format!("{{\"id\":{it}}}")),
        "{sent:?}"
    );
}

#[test]
fn a_slow_reader_and_a_full_lane_stop_the_reading() {
    let now = Instant::now();
    let mut lane = lane("slow 100; delay 1s", 1, Side::Client, now);
    give(&mut lane, now, "k", "12345678");
    assert_eq!(lane.reads_from() - now, Duration::from_millis(100));
    assert!(lane.has_room());
    give(&mut lane, now, "k", &"x".repeat(MAX_QUEUED));
    assert!(!lane.has_room());
    while lane.poll(now + Duration::from_secs(1)).is_some() {}
    assert!(lane.has_room());
}

#[test]
fn kinds_match_with_a_star_and_before_a_slash() {
    for (rule, kind, fits) in [
        ("*", "ping", true),
        ("chat.*", "chat.start", true),
        ("chat.*", "status", false),
        ("response", "response/ack", true),
        ("response/ack", "response/ack", true),
        ("response", "responses", false),
    ] {
        assert_eq!(matches(rule, kind), fits, "{rule} {kind}");
    }
}

#[test]
fn a_connection_is_refused_by_number_or_by_chance() {
    let plan = |text: &str| Plan::parse(text, duration).unwrap();
    let refused = |text: &str| {
        (1..=300)
            .filter(|conn| plan(text).refusal(7, *conn).is_some())
            .count()
    };
    assert_eq!(plan("refuse #2").refusal(7, 2), Some(503));
    assert_eq!(plan("refuse 429").refusal(7, 1), Some(429));
    assert_eq!(refused("refuse #2"), 1);
    assert!((60..140).contains(&refused("refuse 1/3")));
}

#[test]
fn a_wrong_rule_is_named_with_a_correction() {
    for (text, why) in [
        ("c2s INPUT", "a fault is missing"),
        ("explode", "a fault is missing"),
        ("delay", "needs a time"),
        ("delay soon", "write seconds"),
        ("delay 2s..1s", "ends before it begins"),
        ("drop 4/3", "neither 1/3"),
        ("drop 0/3", "never happens"),
        ("drop 0%", "never happens"),
        ("drop #0", "never happens"),
        ("drop 1/2 always", "\"always\" is too much"),
        ("close 99", "from 1000 to 4999"),
        ("slow fast", "not a number of bytes"),
        ("at 5s drop", "only reset"),
        ("drop; at noon reset", "write seconds"),
    ] {
        let error = Plan::parse(text, duration).unwrap_err();
        assert!(error.contains(why), "{text}: {error}");
    }
    let commented = Plan::parse("# nothing\n\n drop 1/3 ; \n", duration).unwrap();
    assert_eq!(commented.0.len(), 1);
}

#[test]
fn faults_without_words_have_the_effect_of_their_names() {
    let stranger = Fault::Frames(vec![RawFrame::text("xyz")]);
    let bytes = Fault::Bytes(encode(Side::Server, RawFrame::text("uvw")));
    for (fault, expected) in [
        (Fault::End, &[(0, "End")][..]),
        (Fault::HalfClose, &[(0, "End")]),
        (stranger, &[(0, "xyz"), (0, "abc")]),
        (bytes, &[(0, "uvw"), (0, "abc")]),
    ] {
        let mut plan = Plan::parse("drop", duration).unwrap();
        plan.0[0].fault = fault;
        let now = Instant::now();
        let mut lane = Lane::new(&Arc::new(plan), 1, 1, Side::Client, now);
        give(&mut lane, now, "k", "abc");
        assert_eq!(all(&mut lane, now), said(expected));
    }
}
