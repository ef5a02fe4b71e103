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

use std::any::Any;
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{FutureExt, StreamExt};

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

/// Logs to be tested without a store.
#[async_trait]
pub trait Logs: Send + Sync {
    /// Opens the log with this name for another node, and makes it if it does not exist. There is none at first.
    ///
    /// # Errors
    /// As those of [`Store::log`].
    async fn open(&self, name: &str, config: LogConfig) -> Result<Arc<dyn Log>, StoreError>;
}

#[async_trait]
impl Logs for &dyn Engine {
    async fn open(&self, name: &str, config: LogConfig) -> Result<Arc<dyn Log>, StoreError> {
        self.connect().await.log(name, config).await
    }
}

/// Checks all rules of a store.
///
/// # Panics
/// If rules are broken: with all of them, a line each.
///
/// # Cancel safety
/// Dropping the future ends the test.
pub async fn all(engine: &dyn Engine) {
    let mut report = Report::default();
    report.logs(&engine).await;
    for rule in [
        order::messages_reach_all_who_are_subscribed(engine).boxed_local(),
        order::a_message_is_not_stored(engine).boxed_local(),
        order::a_feed_brings_records_and_messages_in_one_order(engine).boxed_local(),
        order::a_loss_is_counted_as_a_gap(engine).boxed_local(),
        order::a_question_gets_an_answer_or_the_reason(engine).boxed_local(),
        order::handles_outlive_their_store(engine).boxed_local(),
        keeps::what_is_too_large_is_refused(engine).boxed_local(),
        keeps::all_logs_are_listed(engine).boxed_local(),
        heals::requests_without_a_connection_end_in_time(engine).boxed_local(),
        heals::a_restart_keeps_what_is_stored(engine).boxed_local(),
        heals::a_lost_log_is_made_again(engine).boxed_local(),
        heals::a_watch_of_a_lost_log_ends(engine).boxed_local(),
        heals::an_engine_without_data_is_filled_again(engine).boxed_local(),
    ] {
        if !report.check(rule).await {
            // The rule may have stopped it.
            engine.fault(Fault::Start).await;
        }
    }
    report.end();
}

/// Checks the rules of a store that are those of its logs.
///
/// # Panics
/// If rules are broken: with all of them, a line each.
///
/// # Cancel safety
/// Dropping the future ends the test.
pub async fn logs(logs: &dyn Logs) {
    let mut report = Report::default();
    report.logs(logs).await;
    report.end();
}

/// The rules that are broken.
#[derive(Default)]
struct Report(Vec<String>);

impl Report {
    async fn logs(&mut self, logs: &dyn Logs) {
        for rule in [
            judge::numbers_count_all_records_of_a_log(logs).boxed_local(),
            judge::a_number_never_comes_again(logs).boxed_local(),
            judge::one_append_after_a_record_is_stored(logs).boxed_local(),
            judge::one_append_with_an_id_is_stored(logs).boxed_local(),
            judge::ids_are_remembered_for_their_window(logs).boxed_local(),
            judge::other_texts_than_subjects_are_refused(logs).boxed_local(),
            reads::what_an_append_has_returned_is_read_by_all(logs).boxed_local(),
            reads::reads_bring_records_in_order(logs).boxed_local(),
            reads::patterns_match_whole_tokens(logs).boxed_local(),
            reads::heads_are_the_last_records_of_subjects(logs).boxed_local(),
            reads::a_watch_tells_what_is_there_then_what_comes(logs).boxed_local(),
            reads::none_of_many_records_is_missed(logs).boxed_local(),
            reads::a_state_says_what_there_is(logs).boxed_local(),
            reads::times_are_seconds_of_one_clock(logs).boxed_local(),
            keeps::a_purge_removes_what_it_names(logs).boxed_local(),
            keeps::bounds_remove_the_first_records(logs).boxed_local(),
            keeps::a_record_vanishes_at_its_age(logs).boxed_local(),
            keeps::a_full_log_refuses_records_and_keeps_what_it_has(logs).boxed_local(),
            keeps::a_log_keeps_its_configuration(logs).boxed_local(),
        ] {
            self.check(rule).await;
        }
    }

    /// Returns whether a rule is kept.
    async fn check(&mut self, rule: impl Future<Output = ()>) -> bool {
        let checked = AssertUnwindSafe(rule).catch_unwind().await;
        let is_kept = checked.is_ok();
        self.0.extend(checked.err().map(text_of));
        is_kept
    }

    #[expect(clippy::panic, reason = "an assertion of a test tool")]
    fn end(self) {
        if !self.0.is_empty() {
            panic!("{}", self.0.join("\n"));
        }
    }
}

/// What a panic says: of a rule, or of the engine.
fn text_of(panic: Box<dyn Any + Send>) -> String {
    match panic.downcast::<Broken>() {
        Ok(broken) => broken.0,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            format!("the engine panics: {}", text.unwrap_or_default())
        }
    }
}

/// Ends the test of a rule.
struct Broken(String);

/// What an append with this id expects.
const fn with_id(id: &str) -> Expect<'_> {
    Expect {
        id: Some(id),
        last: None,
    }
}

/// A rule, and the name of all that its test makes.
#[derive(Clone, Copy)]
struct Rule<'a, T: ?Sized> {
    engine: &'a T,
    name: &'a str,
    must: &'a str,
}

impl<'a, T: ?Sized> Rule<'a, T> {
    const fn new(engine: &'a T, name: &'a str, must: &'a str) -> Self {
        Self { engine, name, must }
    }

    fn broken(&self, how: &str) -> ! {
        // Unlike a panic, it prints nothing.
        resume_unwind(Box::new(Broken(format!(
            "rule broken: {}: {how}",
            self.must
        ))))
    }

    fn holds<S: Into<String>>(&self, holds: bool, how: impl FnOnce() -> S) {
        if !holds {
            self.broken(&how().into());
        }
    }

    #[expect(clippy::needless_pass_by_value, reason = "callers read like sentences")]
    fn equal<V: Debug + PartialEq>(&self, what: &str, found: V, expected: V) {
        self.holds(found == expected, || {
            format!("{what}: {found:?}, expected {expected:?}")
        });
    }

    /// Expects a refusal of what cannot be used.
    fn refused<V>(&self, what: &str, outcome: Result<V, StoreError>) {
        let error = outcome.err();
        let is_it = matches!(error, Some(StoreError::Config { .. }));
        self.holds(is_it, || format!("{what} gives {error:?}, not `Config`"));
    }

    fn ok<V, E: Debug>(&self, what: &str, result: Result<V, E>) -> V {
        match result {
            Ok(it) => it,
            Err(error) => self.broken(&format!("{what} fails: {error:?}")),
        }
    }

    /// Waits for what must not take for ever.
    async fn soon<V>(&self, what: &str, future: impl Future<Output = V>) -> V {
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

    /// A subject of the log of this rule.
    fn subject(&self, rest: &str) -> String {
        format!("{}.m.{rest}", self.name)
    }

    /// The configuration of the log of this rule.
    fn config(&self) -> LogConfig {
        LogConfig::new(&self.subject(">"))
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

    async fn received(&self, messages: &mut Messages) -> Message {
        let next = self.soon("a message", messages.next()).await;
        next.unwrap_or_else(|| self.broken("a subscription ends before its store"))
    }

    /// What a watch reports next: `what`.
    async fn watched(&self, watched: &mut Watched, what: &str) -> Option<Record> {
        let next = self.next_of(watched, what).await;
        self.ok("a watch", next)
    }

    /// What a watch reports next; `None` if it ends with an error.
    async fn watched_or_error(&self, watched: &mut Watched) -> Option<Option<Record>> {
        self.next_of(watched, "a record or an error").await.ok()
    }

    async fn next_of(
        &self,
        watched: &mut Watched,
        what: &str,
    ) -> Result<Option<Record>, StoreError> {
        let next = self.soon(what, watched.next()).await;
        next.unwrap_or_else(|| self.broken("a watch ends without an error"))
    }
}

impl Rule<'_, dyn Logs + '_> {
    async fn try_open(&self, name: &str, config: LogConfig) -> Result<Arc<dyn Log>, StoreError> {
        let opening = self.engine.open(name, config);
        self.soon("the opening of a log", opening).await
    }

    async fn open(&self, config: LogConfig) -> Arc<dyn Log> {
        let opened = self.try_open(self.name, config).await;
        self.ok("the opening of a log", opened)
    }

    /// The log of this rule, opened by a new node.
    async fn log(&self) -> Arc<dyn Log> {
        self.open(self.config()).await
    }
}

impl Rule<'_, dyn Engine + '_> {
    async fn connect(&self) -> Arc<dyn Store> {
        self.soon("a connection", self.engine.connect()).await
    }

    async fn open(&self, store: &dyn Store, config: LogConfig) -> Arc<dyn Log> {
        let opening = self.soon("the opening of a log", store.log(self.name, config));
        self.ok("the opening of a log", opening.await)
    }
}
