//! Numbers, and which of several appends is stored.

use std::time::Duration;

use futures_util::future::join_all;

use super::{Logs, Rule, with_id};
use rpc_core::store::{Expect, StoreError, Stored};

/// How many appends there are at once.
const AT_ONCE: usize = 8;

/// All records of a log are numbered together, from 1, in the order in which they are stored.
///
/// # Cancel safety
/// Dropping the future ends the test.
pub(super) async fn numbers_count_all_records_of_a_log(logs: &dyn Logs) {
    let must = "all records of a log are numbered together, from 1";
    let rule = Rule::new(logs, "numbers", must);
    let (one, other) = (rule.log().await, rule.log().await);
    for (log, subject, expected) in [(&one, "a", 1), (&other, "b", 2), (&one, "a.c", 3)] {
        let number = rule.append(&**log, subject, "it").await;
        rule.equal("the number of a record", number, expected);
    }
    let another = Rule::new(logs, "numbers_2", must);
    let number = another.append(&*another.log().await, "a", "it").await;
    rule.equal("the first number of another log", number, 1);
}

/// A number never comes again while the log exists, also after a purge.
///
/// # Cancel safety
/// Dropping the future ends the test.
pub(super) async fn a_number_never_comes_again(logs: &dyn Logs) {
    let must = "a number never comes again while the log exists, also after a purge";
    let rule = Rule::new(logs, "again", must);
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
pub(super) async fn one_append_after_a_record_is_stored(logs: &dyn Logs) {
    let must = "of several appends with the same `last` at most one is stored";
    let rule = Rule::new(logs, "judge", must);
    let (one, other) = (rule.log().await, rule.log().await);
    let after = |last| Expect {
        last: Some(last),
        ..Expect::default()
    };
    let number = |stored: Result<Stored, _>| stored.map(|stored| stored.sequence);
    let conflict = Err(StoreError::Conflict);
    for (log, subject, last, expected) in [
        (&one, "a", 0, Ok(1)),
        (&other, "b", 0, Ok(2)),
        (&other, "a", 0, conflict.clone()),
        (&one, "a", 2, conflict.clone()),
        (&one, "a", 1, Ok(3)),
        (&other, "a", 1, conflict.clone()),
        (&other, "a", 9, conflict),
    ] {
        let stored = rule.try_append(&**log, subject, "it", after(last)).await;
        let what = format!("a record of {subject} after {last}");
        rule.equal(&what, number(stored), expected);
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
pub(super) async fn one_append_with_an_id_is_stored(logs: &dyn Logs) {
    let must =
        "of several appends with the same id one is stored, and the others are reported its number";
    let rule = Rule::new(logs, "ids", must);
    let (one, other) = (rule.log().await, rule.log().await);
    let with = |id, last| Expect { id: Some(id), last };
    let stored = |sequence, is_duplicate| {
        Ok(Stored {
            sequence,
            is_duplicate,
        })
    };
    for (log, id, last, expected) in [
        (&one, "x", Some(0), stored(1, false)),
        (&other, "x", Some(0), stored(1, true)),
        (&other, "x", None, stored(1, true)),
        (&one, "y", Some(0), Err(StoreError::Conflict)),
        // The id of a record that was refused.
        (&one, "y", Some(1), stored(2, false)),
        // None.
        (&one, "", None, stored(3, false)),
        (&one, "", None, stored(4, false)),
    ] {
        let found = rule.try_append(&**log, "a", "it", with(id, last)).await;
        let what = format!("a record with the id {id:?} after {last:?}");
        rule.equal(&what, found, expected);
    }
    for number in [5, 6] {
        let found = rule.try_append(&*one, "a", "it", Expect::default()).await;
        rule.equal("a record without an id", found, stored(number, false));
    }
    let found = rule.try_append(&*other, "b", "it", with("x", None)).await;
    rule.equal("the id with another subject", found, stored(1, true));
    let racing = (0..AT_ONCE).map(|at| {
        let log = if at % 2 == 0 { &one } else { &other };
        rule.try_append(&**log, "a", "it", with("z", None))
    });
    let outcomes = join_all(racing).await;
    let is_first = |it: &&Result<Stored, _>| **it == stored(7, false);
    let first = outcomes.iter().filter(is_first).count();
    rule.equal("how many of 8 at once are the first", first, 1);
    for outcome in outcomes {
        let number = rule.ok("an append with an id", outcome).sequence;
        rule.equal("the number that all get", number, 7);
    }
    let numbers = rule.numbers(&*other, ">").await;
    rule.equal("the numbers in the log", numbers, vec![1, 2, 3, 4, 5, 6, 7]);
}

/// Ids are remembered for their window, also those of removed records, and not for much longer.
///
/// # Cancel safety
/// Dropping the future ends the test.
pub(super) async fn ids_are_remembered_for_their_window(logs: &dyn Logs) {
    let must =
        "an id is remembered for its window, also if its record is purged, and then forgotten";
    let rule = Rule::new(logs, "window", must);
    let mut config = rule.config();
    config.window = Duration::from_secs(4);
    let log = rule.open(config).await;
    let append = async |id| {
        let appended = rule.try_append(&*log, "a", "it", with_id(id)).await;
        rule.ok("an append", appended)
    };
    for id in ["x", "y"] {
        append(id).await;
    }
    rule.ok("a purge", log.purge(&rule.subject("a"), 2).await);
    tokio::time::sleep(Duration::from_secs(2)).await;
    for (sequence, id) in [(1, "x"), (2, "y")] {
        let expected = Stored {
            sequence,
            is_duplicate: true,
        };
        rule.equal("an id after half of its window", append(id).await, expected);
    }
    let is_over = async || !append("y").await.is_duplicate;
    rule.until("the end of a window of 4 s", is_over).await;
    let numbers = rule.numbers(&*log, ">").await;
    rule.equal("the numbers in the log", numbers, vec![2, 3]);
}

/// Texts that are not subjects or patterns are refused, and so are subjects of other logs.
///
/// # Cancel safety
/// Dropping the future ends the test.
pub(super) async fn other_texts_than_subjects_are_refused(logs: &dyn Logs) {
    let must = "a text that is not a subject of the log is refused with `Config`";
    let rule = Rule::new(logs, "texts", must);
    let log = rule.log().await;
    let outside = ["texts.m", "texts.n.a", "texts.m.*", "texts.m.>", "a"];
    let texts = [
        "",
        ".",
        "texts.m.",
        "texts.m..a",
        ".texts.m.a",
        "texts.m.a b",
        "texts.m.a\n",
    ];
    for text in outside.iter().chain(&texts) {
        let appending = log.append(text, "it".into(), Expect::default());
        let appended = rule.soon("an append", appending).await;
        rule.refused(&format!("an append to {text:?}"), appended);
    }
    for text in texts {
        let what = |verb: &str| format!("{verb} of {text:?}");
        let read = rule.soon("a read", log.read(text, 0, 1)).await;
        rule.refused(&what("a read"), read);
        rule.refused(&what("the last"), rule.soon("a read", log.last(text)).await);
        rule.refused(&what("heads"), rule.soon("heads", log.heads(text)).await);
        let watch = rule.soon("a watch", log.watch(text)).await;
        rule.refused(&what("a watch"), watch);
        let purged = rule.soon("a purge", log.purge(text, 9)).await;
        rule.refused(&what("a purge"), purged);
    }
    let appended = rule.try_append(&*log, "a", "it", with_id("a\r\nb")).await;
    rule.refused("an append with a line break in its id", appended);
    let number = rule.append(&*log, "a", "it").await;
    rule.equal("the first number after them", number, 1);
}
