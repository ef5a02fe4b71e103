//! What holds when the engine goes away, or has lost something.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{Engine, Fault, Rule, with_id};
use rpc_core::store::{AskError, Expect, Log, LogState, Store, StoreError};

impl Rule<'_, dyn Engine + '_> {
    /// Stops the engine. Returns whether it can be stopped.
    async fn stop(&self, stores: &[&Arc<dyn Store>]) -> bool {
        let can = self.engine.fault(Fault::Stop).await;
        for store in stores.iter().filter(|_| can) {
            let is_away = async || !store.is_connected();
            self.until("the end of a connection", is_away).await;
        }
        can
    }

    async fn start(&self, stores: &[&Arc<dyn Store>]) {
        self.engine.fault(Fault::Start).await;
        for store in stores {
            let is_back = async || store.is_connected();
            self.until("another connection", is_back).await;
        }
    }

    /// What the log holds, at the latest at the second call.
    async fn state_of_second(&self, log: &dyn Log) -> LogState {
        match self.soon("a state", log.state()).await {
            Ok(state) => state,
            Err(_) => {
                let again = self.soon("a state", log.state()).await;
                self.ok("the second call after the loss of a log", again)
            }
        }
    }
}

/// Without a connection requests end within the timeout, and messages are dropped instead of waiting.
///
/// # Cancel safety
/// Dropping the future ends the test.
pub(super) async fn requests_without_a_connection_end_in_time(engine: &dyn Engine) {
    let must = "without a connection requests fail with `Unavailable` within the timeout";
    let rule = Rule::new(engine, "away", must);
    let store = rule.connect().await;
    let log = rule.open(&*store, rule.config()).await;
    rule.append(&*log, "a", "it").await;
    if !rule.stop(&[&store]).await {
        return;
    }
    let began = Instant::now();
    let unavailable = |what: &str, error: Option<StoreError>| {
        let is_it = matches!(error, Some(StoreError::Unavailable { .. }));
        rule.holds(is_it, || format!("{what} gives {error:?}"));
    };
    let once = with_id("once");
    let appended = rule.try_append(&*log, "a", "it", once).await;
    unavailable("an append", appended.err());
    unavailable("a read", rule.soon("a read", log.get(1)).await.err());
    let within = Duration::from_secs(1);
    let asked = rule
        .soon("a question", store.ask("away.f", "it".into(), within))
        .await;
    match asked {
        Err(AskError::Store(error)) => unavailable("a question", Some(error)),
        asked => rule.broken(&format!("a question gives {asked:?}")),
    }
    // There may be room for it.
    if let Err(error) = rule
        .soon("a message", store.publish("away.f", "it".into()))
        .await
    {
        unavailable("a message", Some(error));
    }
    let took = began.elapsed();
    let most = 3 * store.timeout() + Duration::from_secs(6);
    rule.holds(took <= most, || format!("four requests take {took:?}"));
    let sent = store.try_publish("away.f", "it".into());
    rule.holds(!sent, || "a message is said to be sent");
    rule.start(&[&store]).await;
    let found = rule.soon("a read", log.get(1)).await;
    let found = rule.ok("a read after it is back", found);
    rule.holds(found.is_some(), || "what was stored is gone");
    // It may be done after all: its id says so.
    let again = rule.ok("it again", rule.try_append(&*log, "a", "it", once).await);
    let numbers = rule.numbers(&*log, ">").await;
    rule.equal("what is stored", numbers, vec![1, again.sequence]);
}

/// An engine that restarts has all that it had stored, and subscribers go on, with a gap.
///
/// # Cancel safety
/// Dropping the future ends the test.
pub(super) async fn a_restart_keeps_what_is_stored(engine: &dyn Engine) {
    let must =
        "after a restart records, numbers and ids are there, and subscriptions go on with a gap";
    let rule = Rule::new(engine, "restart", must);
    let store = rule.connect().await;
    let log = rule.open(&*store, rule.config()).await;
    let once = with_id("once");
    rule.append(&*log, "a", "it").await;
    rule.ok("an append", rule.try_append(&*log, "a", "it", once).await);
    let state = rule.ok("a state", log.state().await);
    let mut messages = rule.subscribe(&*store, "restart.f").await;
    let mut watch = rule.ok("a watch", log.watch(&rule.subject(">")).await);
    let there = rule.watched(&mut watch, "a record").await;
    let there = there.map(|it| it.sequence);
    rule.equal("what is watched", there, Some(2));
    let mark = rule.watched(&mut watch, "the mark of a watch").await;
    rule.equal("the mark of a watch", mark, None);
    let mut gaps = store.gaps();
    gaps.mark_unchanged();
    if !rule.stop(&[&store]).await {
        return;
    }
    rule.start(&[&store]).await;
    let is_reported = async || gaps.has_changed().unwrap_or(true);
    rule.until("the gap of a restart", is_reported).await;
    let after = rule.ok("a state", rule.soon("a state", log.state()).await);
    rule.equal("what the log holds", after, state);
    let again = rule.ok("an append", rule.try_append(&*log, "a", "it", once).await);
    let again = (again.sequence, again.is_duplicate);
    rule.equal("an id from before", again, (2, true));
    let number = rule.append(&*log, "b", "it").await;
    rule.equal("the next number", number, 3);
    // It may end with an error, and then brings nothing else.
    if let Some(next) = rule.watched_or_error(&mut watch).await {
        let next = next.map(|record| record.sequence);
        rule.equal("the next record that is watched", next, Some(3));
    }
    let other = rule.connect().await;
    rule.ok("a message", other.publish("restart.f", "it".into()).await);
    rule.received(&mut messages).await;
}

/// A deleted log is made again, empty, at the latest at the call after the one that has
/// found out.
///
/// # Cancel safety
/// Dropping the future ends the test.
pub(super) async fn a_lost_log_is_made_again(engine: &dyn Engine) {
    let must = "a lost log is made again, empty, by `ensure` or by the call that finds out";
    let rule = Rule::new(engine, "lost", must);
    let store = rule.connect().await;
    let log = rule.open(&*store, rule.config()).await;
    rule.append(&*log, "a", "it").await;
    let mut before = rule.ok("a state", log.state().await);
    rule.ok("`ensure`", rule.soon("`ensure`", store.ensure()).await);
    let same = rule.ok("a state", log.state().await);
    rule.equal("what `ensure` leaves of a log", same, before);
    if !engine.fault(Fault::DeleteLog(rule.name)).await {
        return;
    }
    for ensures in [false, true] {
        if ensures {
            engine.fault(Fault::DeleteLog(rule.name)).await;
            rule.ok("`ensure`", rule.soon("`ensure`", store.ensure()).await);
            rule.ok("the first call after `ensure`", log.state().await);
        }
        let after = rule.state_of_second(&*log).await;
        rule.equal("how many records it has", after.records, 0);
        let is_other = after.created != before.created;
        rule.holds(is_other, || "it is as old as the lost one");
        let number = rule.append(&*log, "a", "it").await;
        // An engine may have tried it with records that are gone.
        let numbers = rule.numbers(&*log, ">").await;
        rule.equal("what it has then", numbers, vec![number]);
        before = after;
    }
    engine.fault(Fault::DeleteLog(rule.name)).await;
    let first = rule.try_append(&*log, "a", "it", Expect::default()).await;
    let number = match first {
        Ok(stored) => stored.sequence,
        Err(_) => rule.append(&*log, "a", "it").await,
    };
    let numbers = rule.numbers(&*log, ">").await;
    rule.equal("what an append leaves there", numbers, vec![number]);
}

/// A watch of a log that is lost ends with an error, or goes on with the new one.
///
/// # Cancel safety
/// Dropping the future ends the test.
pub(super) async fn a_watch_of_a_lost_log_ends(engine: &dyn Engine) {
    let must = "a watch of a lost log ends with an error, or brings what the new log has";
    let rule = Rule::new(engine, "watch_lost", must);
    let store = rule.connect().await;
    let log = rule.open(&*store, rule.config()).await;
    rule.append(&*log, "a", "old").await;
    let mut watch = rule.ok("a watch", log.watch(&rule.subject(">")).await);
    rule.watched(&mut watch, "a record").await;
    let mark = rule.watched(&mut watch, "the mark of a watch").await;
    rule.equal("the mark of a watch", mark, None);
    if !engine.fault(Fault::DeleteLog(rule.name)).await {
        return;
    }
    rule.ok("`ensure`", rule.soon("`ensure`", store.ensure()).await);
    rule.append(&*log, "a", "new").await;
    if let Some(next) = rule.watched_or_error(&mut watch).await {
        let payload = next.map(|record| record.payload);
        rule.equal("what it brings", payload, Some("new".into()));
    }
}

/// An engine that comes back without its data has all logs again after [`Store::ensure`].
///
/// # Cancel safety
/// Dropping the future ends the test.
pub(super) async fn an_engine_without_data_is_filled_again(engine: &dyn Engine) {
    let must = "an engine that has lost its data has the logs again after `ensure`, and works";
    let rule = Rule::new(engine, "empty", must);
    let store = rule.connect().await;
    let log = rule.open(&*store, rule.config()).await;
    rule.append(&*log, "a", "it").await;
    let before = rule.ok("a state", log.state().await);
    let mut gaps = store.gaps();
    gaps.mark_unchanged();
    if !rule.stop(&[&store]).await {
        return;
    }
    let can = engine.fault(Fault::Empty).await;
    rule.start(&[&store]).await;
    if !can {
        return;
    }
    let is_reported = async || gaps.has_changed().unwrap_or(true);
    rule.until("the gap of a restart", is_reported).await;
    rule.ok("`ensure`", rule.soon("`ensure`", store.ensure()).await);
    let after = rule.ok("a state", rule.soon("a state", log.state()).await);
    rule.equal("how many records it has", after.records, 0);
    let is_other = after.created != before.created;
    rule.holds(
        is_other,
        || "it says that it was made when the lost one was",
    );
    let number = rule.append(&*log, "a", "it").await;
    let numbers = rule.numbers(&*log, ">").await;
    rule.equal("what it has then", numbers, vec![number]);
}
