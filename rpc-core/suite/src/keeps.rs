//! What a log keeps, and what it refuses.

use std::time::Duration;

use bytes::Bytes;

use super::{Engine, Logs, Rule};
use rpc_core::store::{Expect, LogConfig, StoreError};

/// A purge removes the records that match and have smaller numbers, and no others.
///
/// # Cancel safety
/// Dropping the future ends the test.
pub(super) async fn a_purge_removes_what_it_names(logs: &dyn Logs) {
    let must = "a purge removes the records that match below a number, no others, and counts them";
    let rule = Rule::new(logs, "purge", must);
    let log = rule.log().await;
    for subject in ["a", "b", "a", "b", "a", "ab", "a.b"] {
        rule.append(&*log, subject, "it").await;
    }
    let steps: [(&str, u64, u64, &[u64]); 6] = [
        ("a", 0, 0, &[1, 2, 3, 4, 5, 6, 7]),
        ("a", 1, 0, &[1, 2, 3, 4, 5, 6, 7]),
        ("a", 5, 2, &[2, 4, 5, 6, 7]),
        ("a", 5, 0, &[2, 4, 5, 6, 7]),
        ("*", 6, 3, &[6, 7]),
        (">", u64::MAX, 2, &[]),
    ];
    for (pattern, before, removed, left) in steps {
        let subject = rule.subject(pattern);
        let purging = rule.soon("a purge", log.purge(&subject, before)).await;
        let count = rule.ok("a purge", purging);
        let what = format!("{pattern} before {before}");
        rule.equal(&what, count, removed);
        let numbers = rule.numbers(&*log, ">").await;
        rule.equal(&format!("what {what} leaves"), &*numbers, left);
    }
}

/// The bounds of a log remove its first records.
///
/// # Cancel safety
/// Dropping the future ends the test.
pub(super) async fn bounds_remove_the_first_records(logs: &dyn Logs) {
    let must = "`max_per_subject` and `max_records` remove the first records";
    let rule = Rule::new(logs, "bounds_1", must);
    let mut config = rule.config();
    config.max_per_subject = Some(2);
    let log = rule.open(config).await;
    for subject in ["a", "b", "a", "a"] {
        rule.append(&*log, subject, "it").await;
    }
    let numbers = rule.numbers(&*log, ">").await;
    rule.equal("with at most two per subject", numbers, vec![2, 3, 4]);
    let rule = Rule::new(logs, "bounds_2", must);
    let mut config = rule.config();
    config.max_records = Some(3);
    let log = rule.open(config).await;
    for subject in ["a", "b", "c", "a", "b"] {
        rule.append(&*log, subject, "it").await;
    }
    let numbers = rule.numbers(&*log, ">").await;
    rule.equal("with at most three", numbers, vec![3, 4, 5]);
}

/// A record vanishes at its age, and not before.
///
/// # Cancel safety
/// Dropping the future ends the test.
pub(super) async fn a_record_vanishes_at_its_age(logs: &dyn Logs) {
    let rule = Rule::new(logs, "ages", "a record vanishes at its age, and not before");
    let mut config = rule.config();
    config.max_age = Some(Duration::from_secs(2));
    let log = rule.open(config).await;
    rule.append(&*log, "a", "it").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let numbers = rule.numbers(&*log, ">").await;
    rule.equal("half as old", numbers, vec![1]);
    let is_gone = async || rule.last(&*log, "a").await.is_none();
    rule.until("the end of a record of 2 s", is_gone).await;
    let heads = rule.ok("heads", log.heads(&rule.subject(">")).await);
    rule.equal("the heads after it", heads, vec![]);
    let state = rule.ok("a state", log.state().await);
    let left = (state.records, state.bytes);
    rule.equal("what there is after it", left, (0, 0));
    let first = Expect {
        last: Some(0),
        ..Expect::default()
    };
    let stored = rule.try_append(&*log, "a", "it", first).await;
    let number = rule.ok("a first record after it", stored).sequence;
    rule.equal("the number of the next one", number, 2);
}

/// A log that is full refuses records, and keeps what it has.
///
/// # Cancel safety
/// Dropping the future ends the test.
pub(super) async fn a_full_log_refuses_records_and_keeps_what_it_has(logs: &dyn Logs) {
    let must = "beyond `max_bytes` appends fail with `Full`, and what is stored stays";
    let rule = Rule::new(logs, "full", must);
    let mut config = rule.config();
    config.max_bytes = Some(64 * 1024);
    let log = rule.open(config).await;
    let payload = "x".repeat(4 * 1024);
    let mut stored = Vec::new();
    let error = loop {
        let appending = rule.try_append(&*log, "a", &payload, Expect::default());
        match appending.await {
            Ok(it) => stored.push(it.sequence),
            Err(error) => break error,
        }
        let count = stored.len();
        rule.holds(count <= 16, || {
            format!("{count} records of 4 KiB are in 64 KiB")
        });
    };
    let is_full = matches!(error, StoreError::Full { .. });
    rule.holds(is_full, || format!("the error is {error:?}"));
    rule.holds(stored.len() >= 8, || {
        format!(
            "there is room for {} records of 4 KiB in 64 KiB",
            stored.len()
        )
    });
    let numbers = rule.numbers(&*log, ">").await;
    rule.equal("what is left", &numbers, &stored);
    rule.ok("a purge", log.purge(&rule.subject(">"), 5).await);
    rule.append(&*log, "a", &payload).await;
}

/// The configuration of a log that exists stays.
///
/// # Cancel safety
/// Dropping the future ends the test.
pub(super) async fn a_log_keeps_its_configuration(logs: &dyn Logs) {
    let must =
        "the configuration of a log stays, and one that keeps records for less time is refused";
    let rule = Rule::new(logs, "config", must);
    let hour = Duration::from_secs(3_600);
    let config = LogConfig {
        max_per_subject: Some(1),
        max_age: Some(hour),
        ..rule.config()
    };
    let log = rule.open(config.clone()).await;
    rule.append(&*log, "a", "it").await;
    let other = LogConfig {
        max_per_subject: None,
        ..config.clone()
    };
    let log = rule.open(other).await;
    rule.append(&*log, "a", "it").await;
    let numbers = rule.numbers(&*log, ">").await;
    rule.equal("what is left of two with one per subject", numbers, vec![2]);
    let refused = async |what: &str, name: &str, config: LogConfig| {
        let opened = rule.try_open(name, config).await;
        rule.refused(&format!("the opening {what}"), opened);
    };
    let longer = LogConfig {
        max_age: Some(2 * hour),
        ..config.clone()
    };
    refused("with twice the age", rule.name, longer).await;
    for subjects in ["config.m.*", "config.n.>"] {
        let subjects = subjects.to_owned();
        let other = LogConfig {
            subjects,
            ..config.clone()
        };
        refused("with other subjects", rule.name, other).await;
    }
    refused("of a log with its subjects", "config_2", config).await;
    let bare = LogConfig::new("config_3.m.*");
    let feed = |feed: &str| LogConfig {
        feed: Some(feed.to_owned()),
        ..bare.clone()
    };
    for name in ["", "config.3", "config*", "config 3"] {
        refused("with another name", name, bare.clone()).await;
    }
    for subjects in ["", "config_3.", "config_3..*", "config_3.m.>.a"] {
        refused("of no pattern", "config_3", LogConfig::new(subjects)).await;
    }
    for it in [
        "",
        "config_3.f",
        "config_3.f.*.*",
        "config_3.f.>",
        "config_3.m.*",
    ] {
        refused(&format!("with the feed {it:?}"), "config_3", feed(it)).await;
    }
    for at in 0..5 {
        let none = |it| (at == it).then_some(0);
        let time = |it| (at == it).then_some(Duration::ZERO);
        let zero = LogConfig {
            max_per_subject: none(0),
            max_records: none(1),
            max_bytes: none(2),
            max_age: time(3),
            window: time(4).unwrap_or(bare.window),
            ..bare.clone()
        };
        refused("with a bound of 0", "config_3", zero).await;
    }
    rule.ok("the opening", rule.try_open("config_3", bare).await);
}

/// A payload of the largest size is stored, and a larger one refused.
///
/// # Cancel safety
/// Dropping the future ends the test.
pub(super) async fn what_is_too_large_is_refused(engine: &dyn Engine) {
    let must = "a payload of `max_payload` is stored, and a larger one refused";
    let rule = Rule::new(engine, "large", must);
    let store = rule.connect().await;
    let log = rule.open(&*store, rule.config()).await;
    let largest = Bytes::from(vec![b'x'; store.max_payload()]);
    let larger = Bytes::from(vec![b'x'; store.max_payload() + 1]);
    let subject = rule.subject("a");
    let id = Expect {
        id: Some("0123456789abcdef"),
        last: Some(0),
    };
    let stored = rule.soon("an append", log.append(&subject, largest.clone(), id));
    rule.ok("the append of the largest record", stored.await);
    let found = rule.last(&*log, "a").await.map(|record| record.payload);
    rule.holds(found == Some(largest), || "it comes back as another one");
    let refused = log.append(&subject, larger.clone(), Expect::default());
    let refused = rule.soon("an append", refused).await;
    rule.equal("a larger record", refused.err(), Some(StoreError::TooLarge));
    let refused = rule
        .soon("a message", store.publish("large.f", larger))
        .await;
    rule.equal("a larger message", refused, Err(StoreError::TooLarge));
}

/// All logs are listed with their names and configurations.
///
/// # Cancel safety
/// Dropping the future ends the test.
pub(super) async fn all_logs_are_listed(engine: &dyn Engine) {
    let must =
        "the logs that there are are listed, with the configurations that they were made with";
    let rule = Rule::new(engine, "listed", must);
    let (one, other) = (rule.connect().await, rule.connect().await);
    let config = LogConfig {
        feed: Some("list.*.f.*".to_owned()),
        max_per_subject: Some(2),
        max_records: Some(3),
        max_bytes: Some(1024 * 1024),
        max_age: Some(Duration::from_secs(3_600)),
        window: Duration::from_secs(60),
        ..LogConfig::new("listed.m.*.*")
    };
    rule.open(&*one, config.clone()).await;
    let listed = rule.ok("the list", rule.soon("the list", other.logs()).await);
    let found: Vec<_> = listed
        .iter()
        .filter(|(name, _)| name == rule.name)
        .collect();
    let expected = (rule.name.to_owned(), config);
    rule.equal("what is listed", found, vec![&expected]);
}
