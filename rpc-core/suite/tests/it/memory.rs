//! The rules of a store: `MemoryStore` keeps them, and for engines with faults the rules that these break are
//! reported.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use store_suite::Engine;

use crate::broken::Break::{self, *};
use crate::broken::Memory;

#[tokio::test(start_paused = true)]
async fn the_memory_store_conforms_to_all_rules() {
    store_suite::all(&Memory::new(&[])).await;
}

/// What is reported of a broken engine.
async fn report_of(broken: &'static [Break], logs_alone: bool) -> String {
    let memory = Memory::new(broken);
    let engine: &dyn Engine = &memory;
    let checking = async {
        match logs_alone {
            true => store_suite::logs(&engine).await,
            false => store_suite::all(engine).await,
        }
    };
    match AssertUnwindSafe(checking).catch_unwind().await {
        Ok(()) => format!("nothing is wrong with {broken:?}"),
        Err(report) => *report.downcast::<String>().unwrap(),
    }
}

/// Expects a fault to be reported as a breach of this rule.
async fn check(faults: &[(&'static [Break], &str)], logs_alone: bool) {
    let mut missed = Vec::new();
    for (broken, rule) in faults {
        let report = report_of(broken, logs_alone).await;
        let is_it = |line: &str| line.starts_with("rule broken: ") && line.contains(rule);
        if !report.lines().any(is_it) {
            missed.push(format!("{broken:?}: {report}"));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn a_fault_of_logs_is_reported_without_a_store() {
    let faults: [(&[Break], &str); 32] = [
        (&[Ids], "with the same id one is stored"),
        (&[EmptyId], "with the same id one is stored"),
        (&[Duplicate], "with the same id one is stored"),
        (&[PurgedIds], "also if its record is purged"),
        (&[Window], "and then forgotten"),
        (&[Last], "with the same `last` at most one"),
        (&[Numbers], "a number never comes again"),
        (&[Subjects], "a text that is not a subject"),
        (&[IdBreaks], "a text that is not a subject"),
        (&[Get], "what an append has returned"),
        (&[After], "a read brings the first records after a number"),
        (&[Max], "a read brings the first records after a number"),
        (&[Outside], "in a pattern"),
        (&[HeadPayload], "heads are the last record of each"),
        (&[HeadIds], "heads are the last record of each"),
        (&[Mark], "then `None` once"),
        (&[WatchPayload], "then `None` once"),
        (&[WatchPattern], "then `None` once"),
        (&[WatchSlow], "a watch that is read slowly"),
        (&[ReadPage], "of many records none is missed"),
        (&[HeadPage], "of many records none is missed"),
        (&[NodeCreated], "a state says what a log holds"),
        (&[Millis], "times are seconds"),
        (&[Clock], "times are seconds"),
        (&[Bytes], "a state says what a log holds"),
        (&[Purge], "a purge removes the records that match"),
        (&[PurgeCount], "a purge removes the records that match"),
        (&[PerSubject], "`max_per_subject` and `max_records`"),
        (&[Records], "`max_per_subject` and `max_records`"),
        (&[Age], "a record vanishes at its age"),
        (&[Full], "appends fail with `Full`"),
        (&[OtherSubjects], "the configuration of a log stays"),
    ];
    check(&faults, true).await;
}

#[tokio::test(start_paused = true)]
async fn a_fault_of_a_store_is_reported() {
    let faults: [(&[Break], &str); 18] = [
        (&[Order], "a feed brings records"),
        (&[Previous], "a feed brings records"),
        (&[FeedIds], "a feed brings records"),
        (&[FeedSubject], "a feed brings records"),
        (&[Gaps], "read too slowly loses nothing"),
        (&[StoredMessages], "a message on a subject of a log"),
        (&[Answer], "a question gets an answer"),
        (&[Listener], "a question gets an answer"),
        (&[Within], "a question gets an answer"),
        (&[LogEnds], "go on after their store is dropped"),
        (&[SubscriptionEnds], "go on after their store is dropped"),
        (&[Large], "a larger one refused"),
        (&[Listed], "the logs that there are"),
        (&[Sent], "without a connection"),
        (&[Waits], "without a connection"),
        (&[Created], "a lost log is made again"),
        (&[Ensure], "a lost log is made again"),
        (&[WatchEnd], "a watch of a lost log ends with an error"),
    ];
    check(&faults, false).await;
}

#[tokio::test(start_paused = true)]
async fn all_rules_that_are_broken_are_reported() {
    let report = report_of(&[Max, Millis], true).await;
    let lines: Vec<_> = report.lines().collect();
    assert_eq!(lines.len(), 2, "{report}");
    assert!(report.contains("a read brings") && report.contains("times are seconds"));
}
