//! What is read of a log.

use bytes::Bytes;

use super::{Engine, Rule};
use rpc_core::store::{Expect, Record};

/// A returned append is visible to all readers from then on, unchanged.
///
/// # Cancel safety
/// Dropping the future ends the test.
pub(super) async fn what_an_append_has_returned_is_read_by_all(engine: &dyn Engine) {
    let says = "what an append has returned is read by everyone, as it was";
    let rule = Rule::new(engine, "durable", says);
    let (one, other) = (rule.log().await, rule.log().await);
    let subject = rule.subject("a");
    let all: Vec<u8> = (0..=u8::MAX).collect();
    for round in 1..=30 {
        let payload = match round {
            1 => Bytes::new(),
            _ => Bytes::copy_from_slice(&all[round..]),
        };
        let id = if round % 2 == 0 {
            format!("id {round}")
        } else {
            String::new()
        };
        let expect = Expect {
            id: Some(&*id).filter(|id| !id.is_empty()),
            last: None,
        };
        let appending = rule.soon("an append", one.append(&subject, payload.clone(), expect));
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
        rule.holds(last.time > 0, || "the record has no time".to_owned());
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
pub(super) async fn reads_bring_records_in_order(engine: &dyn Engine) {
    let says =
        "a read brings the first records after a number, in order, and fewer only at the end";
    let rule = Rule::new(engine, "pages", says);
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
pub(super) async fn patterns_match_whole_tokens(engine: &dyn Engine) {
    let says = "in a pattern `*` is one whole token, and `>` one or more";
    let rule = Rule::new(engine, "patterns", says);
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
}

/// Heads are the last record of each subject, in the order of their numbers, without payloads.
///
/// # Cancel safety
/// Dropping the future ends the test.
pub(super) async fn heads_are_the_last_records_of_subjects(engine: &dyn Engine) {
    let says = "heads are the last record of each subject, in the order of their numbers, without payloads";
    let rule = Rule::new(engine, "heads", says);
    let log = rule.log().await;
    for subject in ["b", "a", "c", "b", "a.x", "c"] {
        rule.append(&*log, subject, "it").await;
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
            rule.equal("the payload of a head", head.payload, Bytes::new());
        }
    }
}

/// A watch reports the last record of each subject, then `None` once, then what is appended, without gaps.
///
/// # Cancel safety
/// Dropping the future ends the test.
pub(super) async fn a_watch_tells_what_is_there_then_what_comes(engine: &dyn Engine) {
    let says = "a watch tells the last record of each subject, then `None` once, then all that is appended";
    let rule = Rule::new(engine, "watch", says);
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
        let found = rule
            .watched(&mut late, "what was there, or the mark")
            .await
            .map(|it| it.sequence);
        rule.equal("what was there", found, expected);
    }
    for at in 5..=200 {
        let subject = if at % 2 == 0 { "a.x" } else { "a.z" };
        rule.append(&*other, subject, &at.to_string()).await;
    }
    for expected in [1, 3, 4] {
        let found = rule
            .watched(&mut early, "a record")
            .await
            .map(|it| it.sequence);
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

/// A state says what a log holds.
///
/// # Cancel safety
/// Dropping the future ends the test.
pub(super) async fn a_state_says_what_there_is(engine: &dyn Engine) {
    let rule = Rule::new(engine, "state", "a state says what a log holds");
    let (log, other) = (rule.log().await, rule.log().await);
    let state = async || rule.ok("a state", rule.soon("a state", other.state()).await);
    let empty = state().await;
    let counts = (empty.first, empty.last, empty.records, empty.subjects);
    rule.equal(
        "first, last, records, subjects of none",
        counts,
        (1, 0, 0, 0),
    );
    for subject in ["a", "b", "b"] {
        rule.append(&*log, subject, "0123456789").await;
    }
    let three = state().await;
    let counts = (three.first, three.last, three.records, three.subjects);
    rule.equal(
        "first, last, records, subjects of three",
        counts,
        (1, 3, 3, 2),
    );
    rule.holds(three.bytes >= 30, || format!("{} bytes of 30", three.bytes));
    rule.equal("when it was made", three.created, empty.created);
    rule.ok("a purge", log.purge(&rule.subject("a"), u64::MAX).await);
    let two = state().await;
    let counts = (two.first, two.last, two.records, two.subjects);
    rule.equal(
        "first, last, records, subjects of two",
        counts,
        (2, 3, 2, 1),
    );
    rule.holds(two.bytes < three.bytes, || {
        "a purge frees no bytes".to_owned()
    });
    rule.ok("a purge", log.purge(&rule.subject(">"), u64::MAX).await);
    let none = state().await;
    let counts = (none.first, none.last, none.records, none.subjects);
    rule.equal(
        "first, last, records, subjects after all",
        counts,
        (4, 3, 0, 0),
    );
}
