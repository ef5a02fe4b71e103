//! [`Stats`]: the outcome of the calls of a run.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::schedule::{Call, Schedule};
use crate::text::printable;

/// The most kinds of errors that are distinguished.
const MAX_KINDS: usize = 32;
/// The longest name of a kind, in characters: some are the words of a server.
const MAX_NAME: usize = 80;
/// A call that is sent later than this after it was due has left behind the schedule.
pub(super) const LATE: Duration = Duration::from_millis(2);
/// The longest time that is distinguished from longer ones.
const LONGEST: Duration = Duration::from_secs(3600);

/// How often things of each kind happened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Counts(BTreeMap<String, u64>);

impl Counts {
    /// Counts one of this kind. Control characters of its name are escaped, and long names cut; kinds beyond
    /// 32 are counted together.
    pub fn add(&mut self, kind: &str) {
        if let Some(count) = self.0.get_mut(kind) {
            *count += 1;
            return;
        }
        let name = printable(kind);
        let name = match name.char_indices().nth(MAX_NAME) {
            Some((at, _)) => format!("{}…", name.get(..at).unwrap_or_default()),
            None => name.into_owned(),
        };
        let is_known = self.0.contains_key(&name);
        let name = if is_known || self.0.len() < MAX_KINDS {
            name
        } else {
            "others".to_owned()
        };
        *self.0.entry(name).or_default() += 1;
    }

    /// Returns how many there are of all kinds.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// Returns the kinds, the most frequent first.
    #[must_use]
    pub fn sorted(&self) -> Vec<(&str, u64)> {
        let mut all: Vec<_> = self.0.iter().map(|(k, n)| (k.as_str(), *n)).collect();
        all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        all
    }
}

/// What a histogram says, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Quantiles {
    /// How many times were measured.
    pub count: u64,
    /// The mean.
    pub mean: f64,
    /// The median.
    pub p50: f64,
    /// 90 of 100 are at most this.
    pub p90: f64,
    /// 99 of 100 are at most this.
    pub p99: f64,
    /// 999 of 1,000 are at most this.
    pub p999: f64,
    /// The longest.
    pub max: f64,
}

/// Durations, in microseconds with three digits.
#[derive(Clone, Debug)]
pub struct Times(Histogram<u64>);

impl Times {
    fn new() -> Option<Self> {
        Histogram::new_with_max(micros(LONGEST), 3).ok().map(Self)
    }

    fn add(&mut self, time: Duration) {
        self.0.saturating_record(micros(time));
    }

    /// Returns the quantiles.
    #[must_use]
    pub fn quantiles(&self) -> Quantiles {
        #[expect(clippy::cast_precision_loss, reason = "at most an hour")]
        let ms = |micros: u64| micros as f64 / 1000.0;
        let at = |quantile| ms(self.0.value_at_quantile(quantile));
        Quantiles {
            count: self.0.len(),
            mean: self.0.mean() / 1000.0,
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: ms(self.0.max()),
        }
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// The outcome of the calls of a run, and of its connections.
#[derive(Clone, Debug)]
pub struct Stats {
    schedule: Schedule,
    /// From when a call was due until its answer: what a caller sees.
    pub latency: Times,
    /// From when a call was sent until its answer.
    pub service: Times,
    /// What the scenario measures beside it, such as the time until the first text.
    pub mark: Times,
    /// Calls that were answered.
    pub ok: u64,
    /// Calls of those that were answered before the end of the schedule.
    pub ok_in_time: u64,
    /// Calls that were not answered well, by what happened.
    pub failed: Counts,
    /// Calls that were sent.
    pub sent: u64,
    /// Calls that were sent late.
    pub late: u64,
    /// The longest time between due and sent.
    pub longest_lag: Duration,
    /// Connections that were opened.
    pub opened: u64,
    /// Attempts to connect that failed.
    pub refused: Counts,
    /// Connections that ended before the run did.
    pub lost: Counts,
}

impl Stats {
    /// Creates statistics of a run by this schedule. `None` if there is no memory for them.
    #[must_use]
    pub fn new(schedule: Schedule) -> Option<Self> {
        Some(Self {
            schedule,
            latency: Times::new()?,
            service: Times::new()?,
            mark: Times::new()?,
            ok: 0,
            ok_in_time: 0,
            failed: Counts::default(),
            sent: 0,
            late: 0,
            longest_lag: Duration::ZERO,
            opened: 0,
            refused: Counts::default(),
            lost: Counts::default(),
        })
    }

    /// Notes that a call was sent at this time of the run.
    pub fn sent(&mut self, call: Call, now: Duration) {
        if !self.schedule.counts(call.due) {
            return;
        }
        self.sent += 1;
        let lag = now.saturating_sub(call.due);
        self.late += u64::from(lag > LATE);
        self.longest_lag = self.longest_lag.max(lag);
    }

    /// Notes that a call was answered at `now`, after it was sent at `sent`.
    pub fn answered(&mut self, call: Call, sent: Duration, now: Duration) {
        if !self.schedule.counts(call.due) {
            return;
        }
        self.ok += 1;
        self.ok_in_time += u64::from(now < self.schedule.end());
        self.latency.add(now.saturating_sub(call.due));
        self.service.add(now.saturating_sub(sent));
    }

    /// Notes that a call failed.
    pub fn failed(&mut self, call: Call, kind: &str) {
        if self.schedule.counts(call.due) {
            self.failed.add(kind);
        }
    }

    /// Notes that a call was due and never sent: its caller has waited until `now`.
    pub fn unsent(&mut self, call: Call, now: Duration) {
        self.failed(call, "never sent");
        if self.schedule.counts(call.due) {
            self.latency.add(now.saturating_sub(call.due));
        }
    }

    /// Notes what a scenario measures beside its answers, about what was due then.
    pub fn marked(&mut self, due: Duration, now: Duration) {
        if self.schedule.counts(due) {
            self.mark.add(now.saturating_sub(due));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn stats() -> Stats {
        Stats::new(Schedule {
            rate: 100.0,
            warmup: ms(100),
            duration: ms(1000),
        })
        .unwrap()
    }

    const fn call(due: u64) -> Call {
        Call {
            number: due / 10,
            due: ms(due),
        }
    }

    #[test]
    fn a_stall_is_in_the_latency_of_every_call_that_waited_for_it() {
        let mut stats = stats();
        // A server that stands still from 200 to 700 ms, while calls are due each 10 ms, one at a time.
        for due in (100..200).chain(700..1100).step_by(10) {
            stats.sent(call(due), ms(due));
            stats.answered(call(due), ms(due), ms(due + 1));
        }
        for due in (200..700).step_by(10) {
            stats.sent(call(due), ms(699));
            stats.answered(call(due), ms(699), ms(700));
        }
        let (latency, service) = (stats.latency.quantiles(), stats.service.quantiles());
        assert_eq!((latency.count, stats.ok, stats.sent), (100, 100, 100));
        assert!(service.p99 <= 1.001, "{service:?}");
        assert!(latency.p90 > 390.0 && latency.mean > 100.0, "{latency:?}");
        assert!((latency.max - 500.0).abs() < 1.0, "{latency:?}");
        assert_eq!((stats.late, stats.longest_lag), (50, ms(499)));
    }

    #[test]
    fn calls_of_the_warmup_count_nowhere() {
        let mut stats = stats();
        stats.sent(call(90), ms(99));
        stats.answered(call(90), ms(99), ms(150));
        stats.failed(call(90), "timed out");
        stats.marked(ms(90), ms(150));
        assert_eq!((stats.sent, stats.ok, stats.failed.total()), (0, 0, 0));
        assert_eq!(stats.mark.quantiles().count, 0);
    }

    #[test]
    fn answers_after_the_end_do_not_count_as_throughput() {
        let mut stats = stats();
        stats.answered(call(1090), ms(1090), ms(1200));
        assert_eq!((stats.ok, stats.ok_in_time), (1, 0));
    }

    #[test]
    fn kinds_of_errors_are_bounded_and_printable() {
        let mut counts = Counts::default();
        counts.add("error \u{1b}[31m");
        counts.add("error \u{1b}[31m");
        counts.add(&"x".repeat(500));
        assert_eq!(counts.sorted()[0], ("error \\u{1b}[31m", 2));
        assert_eq!(counts.sorted()[1].0.chars().count(), MAX_NAME + 1);
        for n in 0..100 {
            counts.add(&format!("error {n}"));
        }
        assert_eq!(counts.sorted().len(), MAX_KINDS + 1);
        assert_eq!(counts.total(), 103);
        assert_eq!(counts.sorted()[0], ("others", 70));
    }
}
