//! The log of events: what is replayed, what is dropped, and what is told of it.

use super::*;

fn log(limits: LogLimits) -> EventLog {
    let mut log = EventLog::new(limits);
    log.begin();
    log
}

fn event(text: &str) -> Entry {
    Entry::new(text.into(), Some(text.into()), Replay::Whole)
}

/// Returns everything that a reader gets from here to the end.
fn rest(log: &EventLog, mut cursor: Cursor) -> Vec<String> {
    let next = || log.next(&mut cursor);
    std::iter::from_fn(next)
        .map(|next| match next {
            Next::Event(text) => text.as_str().to_owned(),
            Next::Closing(text) => format!("end {}", text.as_str()),
            Next::Gap(missed) => format!("gap {missed}"),
        })
        .collect()
}

fn resumed(log: &EventLog, id: Option<&str>) -> (Vec<String>, Option<u64>) {
    let (cursor, missed) = log.resume(id);
    (rest(log, cursor), (missed > 0).then_some(missed))
}

#[test]
fn replay_starts_after_the_first_event_with_the_id() {
    let mut log = log(LogLimits::default());
    for id in ["a", "b", "c", "b", "d"] {
        log.push(event(id));
    }
    assert_eq!(resumed(&log, Some("b")).0, ["c", "b", "d"]);
    assert!(resumed(&log, Some("d")).0.is_empty());
}

#[test]
fn an_absent_or_unknown_id_replays_the_whole_run() {
    let mut log = log(LogLimits::default());
    log.push(event("a"));
    log.push(Entry::new("no id".into(), None, Replay::Whole));
    assert_eq!(
        resumed(&log, None),
        (vec!["a".into(), "no id".into()], None)
    );
    assert_eq!(resumed(&log, Some("x")).0, ["a", "no id"]);
}

#[test]
fn an_unknown_id_in_a_restarted_run_replays_what_follows() {
    let mut log = log(LogLimits::default());
    log.begin();
    log.push(event("a"));
    log.push(event("b"));
    log.begin_again();
    log.push(event("c"));
    for (id, expected) in [
        (None, vec!["a", "b", "c"]),
        (Some("a"), vec!["b", "c"]),
        (Some("lost"), vec!["c"]),
        (Some("c"), vec![]),
    ] {
        assert_eq!(resumed(&log, id).0, expected, "{id:?}");
    }
    log.begin();
    log.push(event("d"));
    assert_eq!(resumed(&log, Some("lost")).0, ["d"]);
}

#[test]
fn only_slow_readers_get_events_of_earlier_runs() {
    let mut log = log(LogLimits::default());
    let slow = log.end();
    log.push(event("a"));
    log.push(Entry::closing("output".into()));
    log.begin();
    log.push(event("b"));
    assert_eq!(resumed(&log, None).0, ["b"]);
    assert_eq!(resumed(&log, Some("a")).0, ["b"]);
    assert_eq!(rest(&log, slow), ["a", "end output", "b"]);
}

#[test]
fn dropped_events_are_reported() {
    let mut log = log(LogLimits {
        max_events: 2,
        ..LogLimits::default()
    });
    let slow = log.end();
    for id in ["a", "b", "c", "d"] {
        log.push(event(id));
    }
    assert_eq!(resumed(&log, None), (vec!["c".into(), "d".into()], Some(2)));
    assert_eq!(resumed(&log, Some("a")).1, Some(1));
    assert_eq!(resumed(&log, Some("b")).1, None);
    assert_eq!(rest(&log, slow), ["gap 2", "c", "d"]);
}

#[test]
fn an_id_that_comes_again_after_its_event_was_dropped_loses_nothing() {
    let mut log = log(LogLimits {
        max_events: 2,
        ..LogLimits::default()
    });
    for id in ["call", "x", "y", "call"] {
        log.push(event(id));
    }
    // The client may have seen the first "call" only.
    let (events, missed) = resumed(&log, Some("call"));
    assert_eq!((events, missed), (vec!["y".into(), "call".into()], Some(1)));
}

#[test]
fn bytes_are_bounded_but_the_newest_event_is_kept() {
    let mut log = log(LogLimits {
        max_bytes: 100,
        ..LogLimits::default()
    });
    for _ in 0..50 {
        log.push(Entry::new(
            "x".repeat(30).into(),
            Some("id".into()),
            Replay::Whole,
        ));
        assert!(log.bytes() <= 100);
    }
    log.push(Entry::new("y".repeat(1000).into(), None, Replay::Whole));
    assert_eq!(log.entries.len(), 1);
    assert_eq!(log.bytes(), 1000);
}

#[test]
fn superseded_snapshots_are_evicted_first_without_a_gap() {
    let mut log = log(LogLimits {
        max_bytes: 100,
        ..LogLimits::default()
    });
    let snapshot = |n: usize| {
        let text = format!("{n:>40}");
        Entry::new(text.into(), (n == 3).then(|| "s3".into()), Replay::Newest)
    };
    log.push(event("a"));
    log.push(snapshot(1));
    log.push(event("b"));
    log.push(snapshot(2));
    assert_eq!(resumed(&log, None).0.len(), 4);
    log.push(event("c"));
    log.push(snapshot(3));
    let (events, gap) = resumed(&log, None);
    let events: Vec<_> = events.iter().map(|it| it.trim()).collect();
    assert_eq!((events, gap), (vec!["a", "b", "2", "c", "3"], None));
    assert!(log.bytes() <= 100);
}

fn part(id: &str, message: &str) -> Entry {
    Entry::new(id.into(), Some(id.into()), Replay::Part(message.into()))
}

#[test]
fn the_parts_of_a_text_are_held_until_it_is_whole() {
    let mut log = log(LogLimits::default());
    let mut live = log.end();
    for (id, message) in [("1", "said"), ("2", "thought"), ("3", "said")] {
        log.push(part(id, message));
    }
    assert_eq!(log.next(&mut live), Some(Next::Event("1".into())));
    assert_eq!(resumed(&log, None).0, ["1", "2", "3"]);
    assert_eq!(resumed(&log, Some("1")).0, ["2", "3"]);
    log.push(event("said"));
    assert_eq!(rest(&log, live), ["2", "said"]);
    assert_eq!(resumed(&log, Some("3")), (vec!["said".into()], None));
    log.push(Entry::closing("output".into()));
    assert_eq!(
        resumed(&log, None),
        (vec!["said".into(), "end output".into()], None)
    );
    let texts = ["said", "output"].iter().map(|it| it.len()).sum::<usize>();
    assert_eq!(log.bytes(), texts + "123said".len());
}

#[test]
fn dropped_parts_are_not_missed_once_the_text_is_whole() {
    let mut log = log(LogLimits {
        max_events: 2,
        ..LogLimits::default()
    });
    for id in ["1", "2", "3"] {
        log.push(part(id, "said"));
    }
    assert_eq!(
        resumed(&log, Some("1")),
        (vec!["2".into(), "3".into()], None)
    );
    log.push(event("said"));
    assert_eq!(rest(&log, log.resume(Some("2")).0), ["said"]);
    for id in ["a", "b", "c"] {
        log.push(event(id));
    }
    assert!(log.deltas.is_empty());
    assert_eq!((log.entries.len(), log.bytes()), (2, 4));
}

#[test]
fn a_cleared_log_keeps_its_numbering() {
    let mut log = log(LogLimits::default());
    let before = log.end();
    log.push(event("a"));
    let end = log.end();
    log.clear();
    assert!(log.is_empty() && log.bytes() == 0);
    assert!(log.is_read(end) && !log.is_read(before));
    log.push(event("b"));
    assert_eq!(rest(&log, end), ["b"]);
    assert_eq!(resumed(&log, None).0, ["b"]);
}
