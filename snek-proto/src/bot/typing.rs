//! [`Typing`]: a guard that shows a typing indicator, and the table behind it.

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use rpc_core::Instant;
use rpc_core::net::time;
use rpc_core::sync::Mutex;
use rpc_core::timers::later;
use tokio::sync::Notify;

use super::context::Shared;
use crate::color::random_color;
use crate::id::ChannelUid;

/// The least time between two refreshes, whatever is configured.
const MIN_INTERVAL: Duration = Duration::from_millis(50);

/// A guard that shows a typing indicator until it is dropped:
/// [`Context::typing`](super::Context::typing).
///
/// The indicator appears at once and is refreshed [every
/// second](super::BotConfig::typing_interval), each time in another bright colour. It ends
/// however the handler ends, because dropping the guard stops the refreshing; failures are ignored.
/// The bot itself refreshes it, so no task can outlive the guard or the bot.
///
/// ```
/// # use snek_proto::error::BotError;
/// # use snek_proto::bot::Context;
/// # async fn think() -> String { String::new() }
/// # async fn handler(cx: &Context) -> Result<(), BotError> {
/// let typing = cx.typing();
/// let answer = think().await;
/// drop(typing);
/// cx.reply(answer).await?;
/// // or, the same
/// let answer = cx.typing().during(think()).await;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "the indicator ends when the guard is dropped"]
pub struct Typing {
    shared: Arc<Shared>,
    channel: ChannelUid,
}

impl Typing {
    pub(super) fn new(shared: Arc<Shared>, channel: ChannelUid) -> Self {
        if shared.typing.table.lock().enter(&channel, time::now()) {
            shared.typing.changed.notify_one();
        }
        Self { shared, channel }
    }

    /// Shows the indicator until `work` completes.
    ///
    /// # Cancel safety
    /// Dropping the future drops `work` and ends the indicator.
    pub async fn during<F: Future>(self, work: F) -> F::Output {
        work.await
    }
}

impl Drop for Typing {
    fn drop(&mut self) {
        self.shared.typing.table.lock().leave(&self.channel);
    }
}

/// The channels in which the bot types, for all its handlers.
#[derive(Debug, Default)]
pub(super) struct TypingBoard {
    table: Mutex<Table>,
    changed: Notify,
}

/// There are at most as many channels as handlers.
#[derive(Debug, Default)]
struct Table(HashMap<ChannelUid, Entry>);

#[derive(Debug)]
struct Entry {
    guards: usize,
    due: Instant,
}

impl Table {
    /// Adds a guard. Returns whether it is the channel's first.
    fn enter(&mut self, channel: &ChannelUid, now: Instant) -> bool {
        let first = Entry {
            guards: 0,
            due: now,
        };
        let entry = self.0.entry(channel.clone()).or_insert(first);
        entry.guards += 1;
        entry.guards == 1
    }

    fn leave(&mut self, channel: &ChannelUid) {
        let Some(entry) = self.0.get_mut(channel) else {
            return;
        };
        entry.guards -= 1;
        if entry.guards == 0 {
            self.0.remove(channel);
        }
    }

    /// Returns a channel whose indicator is due, and schedules its next refresh one interval from
    /// now.
    fn pop_due(&mut self, now: Instant, interval: Duration) -> Option<ChannelUid> {
        let entries = self.0.iter_mut();
        let (channel, entry) = entries.min_by_key(|(_, entry)| entry.due)?;
        if entry.due > now {
            return None;
        }
        entry.due = later(now, interval);
        Some(channel.clone())
    }

    fn next_due(&self) -> Option<Instant> {
        self.0.values().map(|entry| entry.due).min()
    }
}

/// Refreshes the indicators of a bot while it is polled.
pub(super) async fn refresh(shared: &Shared) -> Infallible {
    let board = &shared.typing;
    let interval = shared.config.typing_interval.max(MIN_INTERVAL);
    loop {
        let next = loop {
            let mut table = board.table.lock();
            let Some(channel) = table.pop_due(time::now(), interval) else {
                break table.next_due();
            };
            drop(table);
            show(shared, channel);
        };
        let changed = board.changed.notified();
        match next {
            Some(at) => {
                let _ = time::timeout(at.saturating_duration_since(time::now()), changed).await;
            }
            None => changed.await,
        }
    }
}

/// Shows one indicator. Failures are ignored: the next one follows.
fn show(shared: &Shared, channel: ChannelUid) {
    let color = random_color((shared.config.client.link.entropy)());
    let _ = shared.client.try_command(move |conn, _| {
        let _ = conn.set_typing(channel.as_str(), &color);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn typing_is_sent_once_per_interval_per_channel() {
        let mut table = Table::default();
        let now = Instant::now();
        let (one, two) = (ChannelUid::new("one"), ChannelUid::new("two"));
        assert!(table.enter(&one, now));
        assert!(!table.enter(&one, now));
        assert!(table.enter(&two, now + SECOND / 2));
        assert_eq!(table.pop_due(now, SECOND), Some(one.clone()));
        assert_eq!(table.pop_due(now, SECOND), None);
        assert_eq!(table.next_due(), Some(now + SECOND / 2));
        assert_eq!(table.pop_due(now + SECOND, SECOND), Some(two));
        assert_eq!(table.pop_due(now + SECOND, SECOND), Some(one));
        assert_eq!(table.pop_due(now + SECOND, SECOND), None);
    }

    #[test]
    fn the_last_guard_of_a_channel_frees_its_state() {
        let mut table = Table::default();
        let now = Instant::now();
        let channel = ChannelUid::new("one");
        table.enter(&channel, now);
        table.enter(&channel, now);
        assert!(table.pop_due(now, SECOND).is_some());
        table.leave(&channel);
        assert_eq!(table.next_due(), Some(now + SECOND));
        table.leave(&channel);
        assert_eq!(table.next_due(), None);
        assert!(table.0.is_empty());
        table.leave(&channel);
    }
}
