//! [`Schedule`] and [`Stats`]: when calls are due, and what became of them. Time is an argument, counted from the
//! start of the run.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::cli::duration;
use crate::text::{printable, shortened};

/// How many kinds of errors are told apart, and how long their names are.
const MAX_KINDS: usize = 32;
const MAX_NAME: usize = 80;
/// Calls are due in groups, at most so often, in nanoseconds: to wake for each one would cost more than the call.
const GROUP: u32 = 500_000;
/// What leaves later than this is late.
pub(super) const LATE: Duration = Duration::from_millis(2);

/// Longer times count as this one.
const LONGEST: Duration = Duration::from_secs(3600);

/// When calls are due.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct Schedule {
    /// Calls a second, of all connections together. Of more than 2,000, several are due at once.
    #[arg(long, value_name = "R", default_value = "100", value_parser = rate)]
    pub rate: f64,
    /// How long to make calls that count.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub duration: Duration,
    /// How long to make calls before those, which do not count.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    pub warmup: Duration,
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok();
    let rate = rate.filter(|rate: &f64| (0.001..=10_000_000.0).contains(rate));
    rate.ok_or_else(|| "write calls a second, such as 100 or 0.5".to_owned())
}

impl Schedule {
    /// Returns when the last call is due.
    pub(crate) fn end(&self) -> Duration {
        self.warmup + self.duration
    }

    /// Returns when a call is due; `None` if there is no such call.
    pub(crate) fn due(&self, number: u64) -> Option<Duration> {
        #[expect(clippy::cast_precision_loss, reason = "no run has 2^53 calls")]
        let due = Duration::try_from_secs_f64(number as f64 / self.rate).ok()?;
        let due = Duration::new(due.as_secs(), due.subsec_nanos() / GROUP * GROUP);
        (due < self.end()).then_some(due)
    }

    fn counts(&self, due: Duration) -> bool {
        due >= self.warmup && due < self.end()
    }
}

/// A call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    /// Which one it is.
    pub number: u64,
    /// When it is due.
    pub due: Duration,
}

/// How often each of several things happened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(crate) struct Counts(BTreeMap<String, u64>);

impl Counts {
    /// Counts one. Beyond a number of kinds, they are counted as `others`.
    pub(crate) fn add(&mut self, kind: &str) {
        let name = printable(kind);
        let name = shortened(&name, MAX_NAME);
        let has_room = self.0.contains_key(&*name) || self.0.len() < MAX_KINDS;
        let name = if has_room { &name } else { "others" };
        *self.0.entry(name.to_owned()).or_default() += 1;
    }

    /// Returns how many there are.
    pub(crate) fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// Returns them, the most frequent first.
    pub(crate) fn sorted(&self) -> Vec<(&str, u64)> {
        let mut all: Vec<_> = self.0.iter().map(|(k, n)| (k.as_str(), *n)).collect();
        all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        all
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = self.sorted().into_iter();
        let words: Vec<_> = kinds.map(|(kind, n)| format!("{kind} ({n})")).collect();
        f.write_str(&words.join(", "))
    }
}

/// Quantiles of times, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Quantiles {
    /// How many times there are.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// The median.
    pub p50: f64,
    /// What 90 of 100 do not exceed.
    pub p90: f64,
    /// What 99 of 100 do not exceed.
    pub p99: f64,
    /// What 999 of 1,000 do not exceed.
    pub p999: f64,
    /// The longest.
    pub max: f64,
}

/// Times, to three digits.
#[derive(Clone, Debug)]
pub(crate) struct Times(Histogram<u64>);

impl Default for Times {
    fn default() -> Self {
        #[expect(clippy::expect_used, reason = "up to five digits are accepted")]
        Self(Histogram::new(3).expect("three digits are accepted"))
    }
}

impl Times {
    fn add(&mut self, time: Duration) {
        // It grows as it has to.
        let _ = self.0.record(micros(time.min(LONGEST)));
    }

    /// Returns the quantiles.
    pub(crate) fn quantiles(&self) -> Quantiles {
        #[expect(clippy::cast_precision_loss, reason = "no run takes 2^53 µs")]
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

/// What became of the calls that count.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stats {
    schedule: Schedule,
    /// From when they were due to the answer.
    pub latency: Times,
    /// From when they were sent to the answer.
    pub service: Times,
    /// What the scenario measures beside.
    pub mark: Times,
    /// Those that were answered.
    pub ok: u64,
    /// Those that were answered before the end of the schedule.
    pub ok_in_time: u64,
    /// Those that failed, by kind.
    pub failed: Counts,
    /// Those that were sent.
    pub sent: u64,
    /// Those that were due and never sent. They have failed, too.
    pub unsent: u64,
    /// Those that were sent late.
    pub late: u64,
    /// Those that this process noticed late.
    pub overslept: u64,
    /// The longest time between due and sent.
    pub longest_lag: Duration,
    /// The connections that are open.
    pub open: usize,
    /// The connections that were opened.
    pub opened: u64,
    /// The attempts that failed, by kind.
    pub refused: Counts,
    /// The connections that ended, by kind.
    pub lost: Counts,
}

impl Stats {
    /// Creates them for a schedule, which says what counts.
    pub(crate) fn new(schedule: Schedule) -> Self {
        Self {
            schedule,
            ..Self::default()
        }
    }

    /// Returns how many had to wait because no connection was free, also of the warmup.
    pub(crate) const fn blocked(&self) -> u64 {
        self.late.saturating_sub(self.overslept)
    }

    /// A call is due, as this process notices now.
    pub(crate) fn woken(&mut self, due: Duration, now: Duration) {
        let is_late = now.saturating_sub(due) > LATE;
        self.overslept += u64::from(is_late && self.schedule.counts(due));
    }

    /// A call is sent.
    pub(crate) fn sent(&mut self, call: Call, now: Duration) {
        if self.schedule.counts(call.due) {
            self.sent += 1;
            let lag = now.saturating_sub(call.due);
            self.late += u64::from(lag > LATE);
            self.longest_lag = self.longest_lag.max(lag);
        }
    }

    /// A call is answered.
    pub(crate) fn answered(&mut self, call: Call, sent: Duration, now: Duration) {
        if self.schedule.counts(call.due) {
            self.ok += 1;
            self.ok_in_time += u64::from(now < self.schedule.end());
            self.latency.add(now.saturating_sub(call.due));
            self.service.add(now.saturating_sub(sent));
        }
    }

    /// A call has failed.
    pub(crate) fn failed(&mut self, call: Call, kind: &str) {
        if self.schedule.counts(call.due) {
            self.failed.add(kind);
        }
    }

    /// The run has ended before a call could be sent.
    pub(crate) fn unsent(&mut self, call: Call, now: Duration) {
        if self.schedule.counts(call.due) {
            self.unsent += 1;
            self.failed.add("never sent");
            self.latency.add(now.saturating_sub(call.due));
        }
    }

    /// What the scenario measures beside has happened for what was due at this time.
    pub(crate) fn marked(&mut self, due: Duration, now: Duration) {
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
    }

    const fn call(due: u64) -> Call {
        Call {
            number: due / 10,
            due: ms(due),
        }
    }

    #[test]
    fn calls_are_due_evenly_until_the_end() {
        let schedule = Schedule {
            rate: 10.0,
            warmup: ms(200),
            duration: ms(500),
        };
        let due: Vec<_> = (0..9).map(|number| schedule.due(number)).collect();
        let wanted: Vec<_> = (0..9).map(|n| (n < 7).then(|| ms(n * 100))).collect();
        assert_eq!(due, wanted);
        assert!(!schedule.counts(ms(199)) && schedule.counts(ms(200)) && !schedule.counts(ms(700)));
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
