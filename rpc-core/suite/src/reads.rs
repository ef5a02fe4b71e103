//! What is read of a log.

use std::collections::HashSet;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::try_join_all;

use super::{Logs, Rule, with_id};
use rpc_core::store::{Expect, LogState, Record};

/// A returned append is visible to all readers from then on, unchanged.
///
/// # Cancel safety
/// Dropping the future ends the test.
pub(super) async fn what_an_append_has_returned_is_read_by_all(logs: &dyn Logs) {
    let must = "what an append has returned is read by everyone, as it was";
    let rule = Rule::new(logs, "durable", must);
    let (one, other) = (rule.log().await, rule.log().await);
    let subject = rule.subject("a");
    let all: Vec<u8> = (0..=u8::MAX).collect();
    for round in 1..=30 {
        let payload = match round {
            1 => Bytes::new(),
            _ => Bytes::copy_from_slice(&all[round..]),
        };
        // An empty one is none.
        let id = ["", "an id", "id\u{e9}"][round % 3].repeat(round);
        let appending = one.append(&subject, payload.clone(), with_id(&id));
        let appending = rule.soon("an append", appending);
        let number = rule.ok("an append", appending.await).sequence;
        let last = rule.last(&*other, "a").await;
        let last = last.unwrap_or_else(|| rule.broken("there is no last record"));
        let expected = Record {
            subject: subject.as_str().into(),
            sequence: number,
            id: id.into(),
            payload,
            time: last.time,
        };
        rule.equal("the last record", &last, &expected);
        let found = rule.ok("a read", other.get(number).await);
        rule.equal("the record with this number", found, Some(last.clone()));
        let found = rule.ok("a read", other.read(&subject, number - 1, 10).await);
        rule.equal("the records after the one before", found, vec![last]);
    }
    for number in [0, 31] {
        let found = rule.ok("a read", other.get(number).await);
        rule.equal("a record that does not exist", found, None);
    }
    let found = rule.last(&*other, "b").await;
    rule.equal("the last record of a subject without any", found, None);
}

/// A read brings the first records after a number, in order, and fewer than asked for only at the end.
///
/// # Cancel safety
/// Dropping the future ends the test.
pub(super) async fn reads_bring_records_in_order(logs: &dyn Logs) {
    let must =
        "a read brings the first records after a number, in order, and fewer only at the end";
    let rule = Rule::new(logs, "pages", must);
    let log = rule.log().await;
    for round in 0..30 {
        let subject = ["a", "b", "c"][round % 3];
        rule.append(&*log, subject, &round.to_string()).await;
    }
    rule.ok("a purge", log.purge(&rule.subject("b"), 12).await);
    let gone = [2, 5, 8, 11];
    let left: Vec<u64> = (1..=30).filter(|it| !gone.contains(it)).collect();
    let steps = [
        (">", 0, 100, &left[..]),
        (">", 0, 5, &left[..5]),
        (">", left[4], 5, &left[5..10]),
        (">", 4, 3, &[6, 7, 9][..]),
        (">", 29, 5, &[30][..]),
        (">", 30, 5, &[][..]),
        (">", 99, 5, &[][..]),
        (">", 0, 0, &[][..]),
        ("c", 0, 0, &[][..]),
        ("b", 0, 3, &[14, 17, 20][..]),
        ("c", 3, 2, &[6, 9][..]),
        ("d", 0, 5, &[][..]),
    ];
    for (pattern, after, max, expected) in steps {
        let subject = rule.subject(pattern);
        let reading = rule.soon("a read", log.read(&subject, after, max)).await;
        let found = rule.ok("a read", reading);
        let numbers: Vec<u64> = found.iter().map(|record| record.sequence).collect();
        let what = format!("{max} of {pattern} after {after}");
        rule.equal(&what, &*numbers, expected);
        for record in found {
            let payload = (record.sequence - 1).to_string().into();
            rule.equal("a payload", record.payload, payload);
        }
    }
}

/// In a pattern `*` is one whole token, and `>` one or more.
///
/// # Cancel safety
/// Dropping the future ends the test.
pub(super) async fn patterns_match_whole_tokens(logs: &dyn Logs) {
    let must = "in a pattern `*` is one whole token, and `>` one or more";
    let rule = Rule::new(logs, "patterns", must);
    let log = rule.log().await;
    for subject in ["a", "ab", "a.b", "a.b.c", "b.b"] {
        rule.append(&*log, subject, "it").await;
    }
    let steps: [(&str, &[u64]); 8] = [
        ("a", &[1]),
        ("*", &[1, 2]),
        (">", &[1, 2, 3, 4, 5]),
        ("a.>", &[3, 4]),
        ("a.*", &[3]),
        ("*.b", &[3, 5]),
        ("*.*.*", &[4]),
        ("*.b.>", &[4]),
    ];
    for (pattern, expected) in steps {
        let found = rule.numbers(&*log, pattern).await;
        rule.equal(pattern, &*found, expected);
    }
    for (pattern, count) in [(">", 5), ("patterns.>", 5), ("*.m.*", 2), ("other.>", 0)] {
        let found = rule.soon("a read", log.read(pattern, 0, 9)).await;
        rule.equal(pattern, rule.ok("a read", found).len(), count);
        let heads = rule.soon("heads", log.heads(pattern)).await;
        rule.equal(pattern, rule.ok("heads", heads).len(), count);
        let mut watch = rule.ok("a watch", rule.soon("a watch", log.watch(pattern)).await);
        let mut watched = 0;
        while rule.watched(&mut watch, "the mark").await.is_some() {
            watched += 1;
        }
        rule.equal(pattern, watched, count);
    }
    let purged = rule.soon("a purge", log.purge("other.>", u64::MAX)).await;
    rule.equal("what is purged of others", purged, Ok(0));
    let purged = rule.soon("a purge", log.purge(">", u64::MAX)).await;
    rule.equal("what is purged of all", purged, Ok(5));
}

/// Heads are the last record of each subject, in the order of their numbers, without payloads.
///
/// # Cancel safety
/// Dropping the future ends the test.
pub(super) async fn heads_are_the_last_records_of_subjects(logs: &dyn Logs) {
    let must = "heads are the last record of each subject, in the order of their numbers, without payloads";
    let rule = Rule::new(logs, "heads", must);
    let log = rule.log().await;
    for (at, subject) in ["b", "a", "c", "b", "a.x", "c"].iter().enumerate() {
        let id = format!("id {}", at + 1);
        let appended = rule.try_append(&*log, subject, "it", with_id(&id)).await;
        rule.ok("an append", appended);
    }
    rule.ok("a purge", log.purge(&rule.subject("a"), u64::MAX).await);
    for (pattern, expected) in [
        ("*", &[("b", 4), ("c", 6)][..]),
        (">", &[("b", 4), ("a.x", 5), ("c", 6)][..]),
        ("a", &[][..]),
    ] {
        let subject = rule.subject(pattern);
        let heads = rule.soon("the heads", log.heads(&subject)).await;
        let heads = rule.ok("the heads", heads);
        let found: Vec<_> = heads
            .iter()
            .map(|it| (it.subject.to_string(), it.sequence))
            .collect();
        let expected: Vec<_> = expected
            .iter()
            .map(|(it, at)| (rule.subject(it), *at))
            .collect();
        rule.equal(pattern, found, expected);
        for head in heads {
            let record = rule.ok("a read", log.get(head.sequence).await);
            let bare = record.map(|record| Record {
                payload: Bytes::new(),
                ..record
            });
            rule.equal("a head without its payload", Some(head), bare);
        }
    }
}

/// A watch reports the last record of each subject, then `None` once, then what is appended, without gaps.
///
/// # Cancel safety
/// Dropping the future ends the test.
pub(super) async fn a_watch_tells_what_is_there_then_what_comes(logs: &dyn Logs) {
    let must = "a watch tells the last record of each subject, then `None` once, then all that is appended";
    let rule = Rule::new(logs, "watch", must);
    let (log, other) = (rule.log().await, rule.log().await);
    let (mine, all) = (rule.subject("a.*"), rule.subject(">"));
    let mut early = rule.ok("a watch", log.watch(&mine).await);
    let first = rule.watched(&mut early, "the mark of an empty log").await;
    rule.equal("the first of an empty log", first, None);
    for (at, subject) in ["a.x", "b", "a.y", "a.x"].iter().enumerate() {
        rule.append(&*other, subject, &(at + 1).to_string()).await;
    }
    let mut late = rule.ok("a watch", log.watch(&all).await);
    for expected in [Some(2), Some(3), Some(4), None] {
        let found = rule.watched(&mut late, "what was there, or the mark");
        let found = found.await.map(|it| (it.sequence, it.payload));
        let expected = expected.map(|at: u64| (at, at.to_string().into()));
        rule.equal("what was there", found, expected);
    }
    for at in 5..=200 {
        let subject = if at % 2 == 0 { "a.x" } else { "a.z" };
        rule.append(&*other, subject, &at.to_string()).await;
    }
    for expected in [1, 3, 4] {
        let found = rule.watched(&mut early, "a record").await;
        let found = found.map(|it| it.sequence);
        rule.equal("what was appended first", found, Some(expected));
    }
    for expected in 5..=200_u64 {
        for watch in [&mut early, &mut late] {
            let found = rule.watched(watch, "a record").await;
            let found = found.map(|it| (it.sequence, it.payload));
            let record = (expected, expected.to_string().into());
            rule.equal("what was appended", found, Some(record));
        }
    }
}

/// Of many records none is missed, by reads, heads, purges and a watch that is not read meanwhile, which may end
/// with an error.
///
/// # Cancel safety
/// Dropping the future ends the test.
pub(super) async fn none_of_many_records_is_missed(logs: &dyn Logs) {
    let must = "of many records none is missed, and a watch that is read slowly holds no one up";
    let rule = Rule::new(logs, "many", must);
    let (log, other) = (rule.log().await, rule.log().await);
    let all = rule.subject("*");
    let mut watch = rule.ok("a watch", log.watch(&all).await);
    let mark = rule.watched(&mut watch, "the mark of a watch").await;
    rule.equal("the mark of a watch", mark, None);
    let payload = "x".repeat(1024);
    for from in (0..2_000).step_by(100) {
        let subjects: Vec<String> = (from..from + 100)
            .map(|at: u64| (at % 700).to_string())
            .collect();
        let some = subjects
            .iter()
            .map(|it| rule.try_append(&*other, it, &payload, Expect::default()));
        rule.ok("an append", try_join_all(some).await);
    }
    let read = rule.soon("a read", log.read(&all, 100, 1_500)).await;
    let read = rule.ok("a read", read);
    let read: Vec<u64> = read.iter().map(|it| it.sequence).collect();
    rule.holds(read.iter().copied().eq(101..=1_600), || {
        format!("a read of 1,500 brings {} records", read.len())
    });
    let heads = rule.soon("heads", log.heads(&all)).await;
    let heads = rule.ok("heads", heads).into_iter();
    let heads: HashSet<_> = heads.map(|it| it.subject).collect();
    rule.equal("the heads of 700 subjects", heads.len(), 700);
    for expected in 1..=2_000_u64 {
        let Some(found) = rule.watched_or_error(&mut watch).await else {
            break;
        };
        let found = found.map(|it| it.sequence);
        rule.equal("the next record", found, Some(expected));
    }
    let purged = rule.soon("a purge", log.purge(&all, 1_501)).await;
    rule.equal("what is purged of 1,500", purged, Ok(1_500));
    let left = rule.ok("a state", log.state().await);
    rule.equal("what is left", (left.first, left.records), (1_501, 500));
}

/// Times are seconds since 1970, of when a record was stored and by the clock that says when the log was made.
///
/// # Cancel safety
/// Dropping the future ends the test.
pub(super) async fn times_are_seconds_of_one_clock(logs: &dyn Logs) {
    let must = "times are seconds since 1970, by the engine's clock for all nodes";
    let rule = Rule::new(logs, "times", must);
    let (one, other) = (rule.log().await, rule.log().await);
    for (log, subject) in [(&one, "a"), (&other, "b")] {
        rule.append(&**log, subject, "it").await;
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    let records = rule.ok("a read", one.read(&rule.subject("*"), 0, 9).await);
    let times: Vec<u64> = records.iter().map(|it| it.time).collect();
    // Between 2001 and 5138: what is not in seconds is elsewhere.
    let are_seconds = times
        .iter()
        .all(|it| (1_000_000_000..100_000_000_000).contains(it));
    rule.holds(are_seconds, || format!("the times are {times:?}"));
    let created = rule.ok("a state", other.state().await).created / 1_000_000_000;
    let since = times.iter().map(|it| u128::from(*it).abs_diff(created));
    let since: Vec<u128> = since.collect();
    rule.holds(since[0] <= 60 && (1..=120).contains(&since[1]), || {
        format!("two records are {since:?} s younger than their log, by its `created`")
    });
    let again = rule.ok("a read", other.read(&rule.subject("*"), 0, 9).await);
    let again: Vec<u64> = again.iter().map(|it| it.time).collect();
    rule.equal("the times for another node, later", again, times);
}

/// A state says what a log holds.
///
/// # Cancel safety
/// Dropping the future ends the test.
pub(super) async fn a_state_says_what_there_is(logs: &dyn Logs) {
    let rule = Rule::new(logs, "state", "a state says what a log holds");
    let (log, other) = (rule.log().await, rule.log().await);
    let state = async || rule.ok("a state", rule.soon("a state", other.state()).await);
    let empty = state().await;
    let counts = |it: LogState| (it.first, it.last, it.records, it.subjects);
    let what = "first, last, records, subjects";
    rule.equal(what, counts(empty), (1, 0, 0, 0));
    rule.equal("the bytes of none", empty.bytes, 0);
    for subject in ["a", "b", "b"] {
        rule.append(&*log, subject, "0123456789").await;
    }
    let three = state().await;
    rule.equal(what, counts(three), (1, 3, 3, 2));
    rule.holds(three.bytes >= 30, || format!("{} bytes of 30", three.bytes));
    rule.equal("when it was made", three.created, empty.created);
    let created = rule.ok("a state", log.state().await).created;
    rule.equal("when it was made, for another node", created, empty.created);
    rule.ok("a purge", log.purge(&rule.subject("a"), u64::MAX).await);
    let two = state().await;
    rule.equal(what, counts(two), (2, 3, 2, 1));
    rule.holds(two.bytes < three.bytes, || "a purge frees no bytes");
    rule.ok("a purge", log.purge(&rule.subject(">"), u64::MAX).await);
    let none = state().await;
    rule.equal(what, counts(none), (4, 3, 0, 0));
    rule.equal("the bytes after all", none.bytes, 0);
}
