//! Numbers, and which of several appends is stored.

use std::time::Duration;

use futures_util::future::join_all;

use super::{Engine, Rule};
use rpc_core::store::{Expect, StoreError, Stored};

/// How many appends there are at once.
const AT_ONCE: usize = 8;

/// All records of a log are numbered together, from 1, in the order in which they are stored.
///
/// # Cancel safety
/// Dropping the future ends the test.
pub(super) async fn numbers_count_all_records_of_a_log(engine: &dyn Engine) {
    let says = "all records of a log are numbered together, from 1";
    let rule = Rule::new(engine, "numbers", says);
    let (one, other) = (rule.log().await, rule.log().await);
    for (log, subject, expected) in [(&one, "a", 1), (&other, "b", 2), (&one, "a.c", 3)] {
        let number = rule.append(&**log, subject, "it").await;
        rule.equal("the number of a record", number, expected);
    }
    let another = Rule::new(engine, "numbers_2", says);
    let number = another.append(&*another.log().await, "a", "it").await;
    rule.equal("the first number of another log", number, 1);
}

/// A number never comes again while the log exists, also after a purge.
///
/// # Cancel safety
/// Dropping the future ends the test.
pub(super) async fn a_number_never_comes_again(engine: &dyn Engine) {
    let says = "a number never comes again while the log exists, also after a purge";
    let rule = Rule::new(engine, "again", says);
    let log = rule.log().await;
    for _ in 0..3 {
        rule.append(&*log, "a", "it").await;
    }
    rule.ok("a purge", log.purge(&rule.subject(">"), u64::MAX).await);
    let number = rule.append(&*log, "a", "it").await;
    rule.equal("the number after a purge of 3 records", number, 4);
    rule.ok("a purge", log.purge(&rule.subject("a"), 5).await);
    let number = rule.append(&*rule.log().await, "b", "it").await;
    rule.equal("the number after a purge of the last record", number, 5);
}

/// Of several appends with the same [`Expect::last`] at most one is stored.
///
/// # Cancel safety
/// Dropping the future ends the test.
pub(super) async fn one_append_after_a_record_is_stored(engine: &dyn Engine) {
    let says = "of several appends with the same `last` at most one is stored";
    let rule = Rule::new(engine, "judge", says);
    let (one, other) = (rule.log().await, rule.log().await);
    let after = |last| Expect {
        last: Some(last),
        ..Expect::default()
    };
    let number = |stored: Result<Stored, _>| stored.map(|stored| stored.sequence);
    let steps = [
        (&one, "a", 0, Ok(1), "the first record of a subject"),
        (&other, "b", 0, Ok(2), "the first record of another subject"),
        (
            &other,
            "a",
            0,
            Err(StoreError::Conflict),
            "a second first record",
        ),
        (
            &one,
            "a",
            2,
            Err(StoreError::Conflict),
            "a record after one of another subject",
        ),
        (
            &one,
            "a",
            1,
            Ok(3),
            "a record after the last one of its subject",
        ),
        (
            &other,
            "a",
            1,
            Err(StoreError::Conflict),
            "a second record after the same one",
        ),
        (
            &other,
            "a",
            9,
            Err(StoreError::Conflict),
            "a record after one that does not exist",
        ),
    ];
    for (log, subject, last, expected, what) in steps {
        let stored = rule.try_append(&**log, subject, "it", after(last)).await;
        rule.equal(what, number(stored), expected);
    }
    let racing = (0..AT_ONCE).map(|at| {
        let log = if at % 2 == 0 { &one } else { &other };
        rule.try_append(&**log, "a", "it", after(3))
    });
    let outcomes = join_all(racing).await;
    let stored = outcomes.iter().filter(|it| it.is_ok()).count();
    rule.equal("how many of 8 at once are stored", stored, 1);
    let refused = outcomes.iter().filter_map(|it| it.as_ref().err());
    for error in refused {
        rule.equal("the error of the others", error, &StoreError::Conflict);
    }
    rule.ok("a purge", one.purge(&rule.subject("a"), u64::MAX).await);
    let stored = rule.try_append(&*other, "a", "it", after(0)).await;
    rule.ok("the first record after a purge", stored);
}

/// Of several appends with the same [`Expect::id`] within the window one is stored, and the others learn its
/// number; also if they name a record before it.
///
/// # Cancel safety
/// Dropping the future ends the test.
pub(super) async fn one_append_with_an_id_is_stored(engine: &dyn Engine) {
    let says =
        "of several appends with the same id one is stored, and the others are told its number";
    let rule = Rule::new(engine, "ids", says);
    let mut config = rule.config();
    config.window = Duration::from_secs(4);
    let one = rule.open(&*rule.connect().await, config.clone()).await;
    let other = rule.open(&*rule.connect().await, config).await;
    let with = |id, last| Expect { id: Some(id), last };
    let stored = |sequence, is_duplicate| {
        Ok(Stored {
            sequence,
            is_duplicate,
        })
    };
    let steps = [
        (&one, with("x", Some(0)), stored(1, false), "the first"),
        (
            &other,
            with("x", Some(0)),
            stored(1, true),
            "the second, after the same record",
        ),
        (
            &other,
            with("x", None),
            stored(1, true),
            "the second, after any record",
        ),
        (
            &one,
            with("y", Some(0)),
            Err(StoreError::Conflict),
            "one after the wrong record",
        ),
        (
            &one,
            with("y", Some(1)),
            stored(2, false),
            "the id of a record that was refused",
        ),
        (
            &one,
            Expect::default(),
            stored(3, false),
            "a record without an id",
        ),
        (
            &one,
            Expect::default(),
            stored(4, false),
            "another record without an id",
        ),
    ];
    for (log, expect, expected, what) in steps {
        let found = rule.try_append(&**log, "a", "it", expect).await;
        rule.equal(what, found, expected);
    }
    let found = rule.try_append(&*other, "b", "it", with("x", None)).await;
    rule.equal("the id with another subject", found, stored(1, true));
    let racing = (0..AT_ONCE).map(|at| {
        let log = if at % 2 == 0 { &one } else { &other };
        rule.try_append(&**log, "a", "it", with("z", None))
    });
    let outcomes = join_all(racing).await;
    let is_first = |it: &&Result<Stored, _>| **it == stored(5, false);
    let first = outcomes.iter().filter(is_first).count();
    rule.equal("how many of 8 at once are the first", first, 1);
    for outcome in outcomes {
        let number = rule.ok("an append with an id", outcome).sequence;
        rule.equal("the number that all are told", number, 5);
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let found = rule.try_append(&*one, "a", "it", with("z", None)).await;
    rule.equal("the id, within its window", found, stored(5, true));
    let numbers = rule.numbers(&*other, ">").await;
    rule.equal("the numbers in the log", numbers, vec![1, 2, 3, 4, 5]);
}
