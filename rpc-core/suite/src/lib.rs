//! The rules of a store, for whoever writes an engine.
#![cfg_attr(docsrs, feature(doc_cfg))]
// Where the documentation of other crates links to if it does not have these pages beside it.
#![doc(html_root_url = "https://docs.rs/switchboard-store-suite/latest")]
#![doc = include_str!("../README.md")]

mod heals;
mod judge;
mod keeps;
mod order;
mod reads;

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt;

use rpc_core::store::{
    Expect, Log, LogConfig, Message, Messages, Record, Store, StoreError, Stored, Watched,
};

/// After how long something counts as never.
const NEVER: Duration = Duration::from_secs(60);

/// An engine to be tested.
#[async_trait]
pub trait Engine: Send + Sync {
    /// Connects another node. All nodes share the same data; there is none at first.
    async fn connect(&self) -> Arc<dyn Store>;

    /// Lets something fail. Returns whether the engine can do it: `false` by default.
    async fn fault(&self, fault: Fault<'_>) -> bool {
        let _ = fault;
        false
    }
}

/// What can happen to an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault<'a> {
    /// It goes away: all connections are lost.
    Stop,
    /// It loses all its data while it is away.
    Empty,
    /// It comes back where it was.
    Start,
    /// Someone deletes the log with this name.
    DeleteLog(&'a str),
}

/// Checks all rules.
///
/// # Panics
/// With the first rule that is broken.
///
/// # Cancel safety
/// Dropping the future ends the test.
pub async fn all(engine: &dyn Engine) {
    judge::numbers_count_all_records_of_a_log(engine).await;
    judge::a_number_never_comes_again(engine).await;
    judge::one_append_after_a_record_is_stored(engine).await;
    judge::one_append_with_an_id_is_stored(engine).await;
    reads::what_an_append_has_returned_is_read_by_all(engine).await;
    keeps::a_purge_removes_what_it_names(engine).await;
    reads::reads_bring_records_in_order(engine).await;
    reads::patterns_match_whole_tokens(engine).await;
    reads::heads_are_the_last_records_of_subjects(engine).await;
    reads::a_watch_tells_what_is_there_then_what_comes(engine).await;
    reads::a_state_says_what_there_is(engine).await;
    keeps::bounds_remove_the_first_records(engine).await;
    keeps::a_record_vanishes_at_its_age(engine).await;
    keeps::a_full_log_refuses_records_and_keeps_what_it_has(engine).await;
    keeps::what_is_too_large_is_refused(engine).await;
    keeps::a_log_keeps_its_configuration(engine).await;
    order::messages_reach_all_who_are_subscribed(engine).await;
    order::a_feed_brings_records_and_messages_in_one_order(engine).await;
    order::a_loss_is_counted_as_a_gap(engine).await;
    order::a_question_gets_an_answer_or_the_reason(engine).await;
    heals::requests_without_a_connection_end_in_time(engine).await;
    heals::a_restart_keeps_what_is_stored(engine).await;
    heals::a_lost_log_is_made_again(engine).await;
    heals::a_watch_of_a_lost_log_ends(engine).await;
    heals::an_engine_without_data_is_filled_again(engine).await;
}

/// A rule, and the name of all that its test makes.
#[derive(Clone, Copy)]
struct Rule<'a> {
    engine: &'a dyn Engine,
    name: &'a str,
    says: &'a str,
}

impl<'a> Rule<'a> {
    const fn new(engine: &'a dyn Engine, name: &'a str, says: &'a str) -> Self {
        Self { engine, name, says }
    }

    #[track_caller]
    #[expect(clippy::panic, reason = "an assertion of a test tool")]
    fn broken(&self, how: &str) -> ! {
        panic!("rule broken: {}: {how}", self.says);
    }

    #[track_caller]
    fn holds(&self, holds: bool, how: impl FnOnce() -> String) {
        if !holds {
            self.broken(&how());
        }
    }

    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "callers read like sentences")]
    fn equal<T: Debug + PartialEq>(&self, what: &str, found: T, expected: T) {
        self.holds(found == expected, || {
            format!("{what}: {found:?}, expected {expected:?}")
        });
    }

    #[track_caller]
    fn ok<T, E: Debug>(&self, what: &str, result: Result<T, E>) -> T {
        match result {
            Ok(it) => it,
            Err(error) => self.broken(&format!("{what} fails: {error:?}")),
        }
    }

    /// Waits for what must not take for ever.
    async fn soon<T>(&self, what: &str, future: impl Future<Output = T>) -> T {
        let result = tokio::time::timeout(NEVER, future).await;
        result.unwrap_or_else(|_| self.broken(&format!("{what} takes more than {NEVER:?}")))
    }

    /// Waits until something is so.
    async fn until(&self, what: &str, holds: impl AsyncFn() -> bool) {
        let waiting = async {
            while !holds().await {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        self.soon(what, waiting).await;
    }

    async fn connect(&self) -> Arc<dyn Store> {
        self.soon("a connection", self.engine.connect()).await
    }

    /// A subject of the log of this rule.
    fn subject(&self, rest: &str) -> String {
        format!("{}.m.{rest}", self.name)
    }

    /// The configuration of the log of this rule.
    fn config(&self) -> LogConfig {
        LogConfig::new(&self.subject(">"))
    }

    async fn open(&self, store: &dyn Store, config: LogConfig) -> Arc<dyn Log> {
        let opening = self.soon("the opening of a log", store.log(self.name, config));
        self.ok("the opening of a log", opening.await)
    }

    /// The log of this rule, opened by a new node.
    async fn log(&self) -> Arc<dyn Log> {
        self.open(&*self.connect().await, self.config()).await
    }

    async fn try_append(
        &self,
        log: &dyn Log,
        rest: &str,
        payload: &str,
        expect: Expect<'_>,
    ) -> Result<Stored, StoreError> {
        let payload = Bytes::copy_from_slice(payload.as_bytes());
        let subject = self.subject(rest);
        let appending = log.append(&subject, payload, expect);
        self.soon("an append", appending).await
    }

    async fn append(&self, log: &dyn Log, rest: &str, payload: &str) -> u64 {
        let appending = self.try_append(log, rest, payload, Expect::default());
        self.ok("an append", appending.await).sequence
    }

    /// The numbers of the records whose subjects match a pattern.
    async fn numbers(&self, log: &dyn Log, rest: &str) -> Vec<u64> {
        let pattern = self.subject(rest);
        let reading = self.soon("a read", log.read(&pattern, 0, 1_000)).await;
        let records = self.ok("a read", reading);
        records.iter().map(|record| record.sequence).collect()
    }

    async fn last(&self, log: &dyn Log, rest: &str) -> Option<Record> {
        let subject = self.subject(rest);
        let reading = self.soon("the read of a last record", log.last(&subject));
        self.ok("the read of a last record", reading.await)
    }

    async fn subscribe(&self, store: &dyn Store, pattern: &str) -> Messages {
        let subscribing = self.soon("a subscription", store.subscribe(pattern));
        self.ok("a subscription", subscribing.await)
    }

    async fn heard(&self, messages: &mut Messages) -> Message {
        let next = self.soon("a message", messages.next()).await;
        next.unwrap_or_else(|| self.broken("a subscription ends before its store"))
    }

    /// What a watch reports next: `what`.
    async fn watched(&self, watched: &mut Watched, what: &str) -> Option<Record> {
        let next = self.soon(what, watched.next()).await;
        let next = next.unwrap_or_else(|| self.broken("a watch ends without an error"));
        self.ok("a watch", next)
    }
}
