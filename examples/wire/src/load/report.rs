//! [`Report`]: the result of a run, in words, as JSON, and beside an earlier one.

use serde::{Deserialize, Serialize};

use super::run::{Finished, Load};
use super::stats::{Counts, LATE, Quantiles};
use super::usage::Usage;

/// The version of the format.
const VERSION: u32 = 1;
/// More processors than this in use by the generator, which has one thread, mean that it had no time left.
const BUSY: f64 = 0.9;

/// The result of a run. Times are in milliseconds unless they say otherwise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The version of this format: 1.
    pub version: u32,
    /// The URL of the server, without its query.
    pub url: String,
    /// The protocol.
    pub protocol: String,
    /// The scenario.
    pub scenario: String,
    /// Connections.
    pub connections: usize,
    /// Calls a second that were due.
    pub rate: f64,
    /// How long calls that count were due, in seconds.
    pub seconds: f64,
    /// Whether the run was stopped before its time.
    pub stopped: bool,
    /// Calls that were due and sent, and count.
    pub sent: u64,
    /// Calls that were answered.
    pub ok: u64,
    /// Calls a second that were answered within the time.
    pub per_second: f64,
    /// Calls that failed, by what happened.
    pub failed: Counts,
    /// From due to answer.
    pub latency: Quantiles,
    /// From sent to answer.
    pub service: Quantiles,
    /// What the scenario measures beside it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mark: Option<Mark>,
    /// How far the run was behind its schedule.
    pub behind: Behind,
    /// Connections that were opened, again if they were lost.
    pub opened: u64,
    /// Attempts to connect that failed.
    pub refused: Counts,
    /// Connections that were lost.
    pub lost: Counts,
    /// What the process that made the calls has used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own: Option<Usage>,
    /// What the server has used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<Usage>,
}

/// What a scenario measures beside its answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mark {
    /// What it is.
    pub name: String,
    /// From when the call was due.
    pub times: Quantiles,
}

/// How far a run was behind its schedule.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Behind {
    /// Calls that were sent more than 2 ms after they were due.
    pub late: u64,
    /// The longest time between due and sent.
    pub longest: f64,
    /// Calls that had to wait because no connection was free, those of the warmup too.
    pub blocked: u64,
    /// Calls that were due and never sent.
    pub unsent: u64,
}

impl Report {
    /// Sums up a run.
    #[must_use]
    pub fn new(url: &str, load: &Load, finished: &Finished) -> Self {
        let stats = &finished.stats;
        let seconds = finished.time.as_secs_f64();
        let mark = load.scenario.mark().map(|name| Mark {
            name: name.to_owned(),
            times: stats.mark.quantiles(),
        });
        Self {
            version: VERSION,
            url: url.to_owned(),
            protocol: load.scenario.protocol.name().to_owned(),
            scenario: load.scenario.name(),
            connections: load.connections,
            rate: load.schedule.rate,
            seconds,
            stopped: finished.time < load.schedule.duration,
            sent: stats.sent,
            ok: stats.ok,
            per_second: ratio(stats.ok_in_time, seconds),
            failed: stats.failed.clone(),
            latency: stats.latency.quantiles(),
            service: stats.service.quantiles(),
            mark,
            behind: Behind {
                late: stats.late,
                longest: stats.longest_lag.as_secs_f64() * 1000.0,
                blocked: stats.late.saturating_sub(stats.overslept),
                unsent: stats.unsent,
            },
            opened: stats.opened,
            refused: stats.refused.clone(),
            lost: stats.lost.clone(),
            own: finished.own,
            server: finished.server,
        }
    }

    /// Returns which part of the calls failed.
    fn failures(&self) -> f64 {
        let failed = self.failed.total();
        #[expect(clippy::cast_precision_loss, reason = "no run has 2^53 calls")]
        ratio(failed, (failed + self.ok) as f64)
    }

    /// Returns the processor time of the server for a call, in microseconds.
    fn server_cpu(&self) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "no run has 2^53 calls")]
        let per_call = |usage: Usage| usage.cpu * 1e6 / self.ok as f64;
        self.server.filter(|_| self.ok > 0).map(per_call)
    }

    /// Returns the report in words.
    #[must_use]
    pub fn words(&self) -> String {
        let Self {
            protocol,
            scenario,
            connections,
            rate,
            seconds,
            ok,
            sent,
            per_second,
            ..
        } = self;
        let stopped = if self.stopped { ", stopped early" } else { "" };
        let mut text = format!(
            "{protocol} {scenario}: {connections} connections, {rate} calls/s for {seconds:.1} s{stopped}\n\n\
             answered  {ok} of {sent} sent, {per_second:.0} a second\n"
        );
        for (name, counts) in [
            ("failed", &self.failed),
            ("lost", &self.lost),
            ("not connected", &self.refused),
        ] {
            for (at, (kind, count)) in counts.sorted().into_iter().enumerate() {
                let name = if at == 0 { name } else { "" };
                text += &format!("{name:14} {count:>8}  {kind}\n");
            }
        }
        text += &format!(
            "\n{:26} {:>9} {:>9} {:>9} {:>9} {:>9}\n",
            "milliseconds", "p50", "p90", "p99", "p99.9", "max"
        );
        let mark = self.mark.as_ref();
        let mark = mark.map(|mark| (format!("{}, from due", mark.name), mark.times));
        let own = [
            ("latency, from due".to_owned(), self.latency),
            ("service time, from sent".to_owned(), self.service),
        ];
        for (name, times) in own.into_iter().chain(mark).filter(|(_, it)| it.count > 0) {
            let times = [times.p50, times.p90, times.p99, times.p999, times.max];
            let times = times.map(|time| format!(" {time:>9.3}")).concat();
            text += &format!("{name:26}{times}\n");
        }
        text.push('\n');
        for (name, usage) in [("server", self.server), ("load", self.own)] {
            let Some(usage) = usage else { continue };
            let (pid, cpu, processors) = (usage.pid, usage.cpu, usage.processors);
            let (before, most) = (mb(usage.memory_before), mb(usage.memory_most));
            let call = self.server_cpu().filter(|_| name == "server");
            let call = call.map_or_else(String::new, |cpu| format!(", {cpu:.1} µs a call"));
            text += &format!(
                "{name:7} pid {pid}: {processors:.2} processors, {cpu:.2} s; memory {before:.1} MB, \
                 at most {most:.1} MB{call}\n"
            );
        }
        text + &self.behind()
    }

    /// Says that the run fell behind its schedule, and why.
    fn behind(&self) -> String {
        let Behind {
            late,
            longest,
            blocked,
            unsent,
        } = self.behind;
        // A pause of the system here and there is none of the schedule.
        if late.max(unsent) * 100 <= self.sent {
            return String::new();
        }
        let is_busy = self.own.is_some_and(|usage| usage.processors > BUSY);
        let why = if is_busy {
            "this process had no processor time left, so latencies are partly its own"
        } else if (blocked + unsent) * 2 >= late {
            "no connection was free: the server is too slow for this rate, or needs more --connections"
        } else {
            "something else had the processor, so latencies are partly of this machine"
        };
        let limit = LATE.as_millis();
        format!(
            "behind schedule: {late} calls left more than {limit} ms late, at most {longest:.0} ms; {unsent} never \
             left. {why}\n"
        )
    }

    /// Puts this report beside an earlier one. Returns the table, and what is worse by more than this factor.
    #[must_use]
    pub fn compare(&self, earlier: &Self, allow: Option<f64>) -> (String, Vec<&'static str>) {
        type Row = (&'static str, fn(&Report) -> Option<f64>, Better);
        let rows: [Row; 9] = [
            (
                "answered a second",
                |it| Some(it.per_second),
                Better::Higher,
            ),
            (
                "failed, of 100",
                |it| Some(it.failures() * 100.0),
                Better::Lower,
            ),
            ("latency p50 ms", |it| Some(it.latency.p50), Better::Lower),
            ("latency p90 ms", |it| Some(it.latency.p90), Better::Lower),
            ("latency p99 ms", |it| Some(it.latency.p99), Better::Lower),
            ("latency p99.9 ms", |it| Some(it.latency.p999), Better::Told),
            ("latency max ms", |it| Some(it.latency.max), Better::Told),
            ("server µs a call", Self::server_cpu, Better::Told),
            (
                "server MB at most",
                |it| Some(mb(it.server?.memory_most)),
                Better::Told,
            ),
        ];
        let mut text = format!("{:26} {:>12} {:>12} {:>8}\n", "", "earlier", "now", "ratio");
        let mut worse = Vec::new();
        for (name, value, better) in rows {
            let (Some(then), Some(now)) = (value(earlier), value(self)) else {
                continue;
            };
            let ratio = match (then, now) {
                (0.0, 0.0) => "1.00".to_owned(),
                (0.0, _) => "-".to_owned(),
                _ => format!("{:.2}", now / then),
            };
            text += &format!("{name:26} {then:>12.3} {now:>12.3} {ratio:>8}\n");
            let is_worse = allow.is_some_and(|allow| match better {
                Better::Higher => now * allow < then,
                Better::Lower => now > then * allow,
                Better::Told => false,
            });
            worse.extend(is_worse.then_some(name));
        }
        (text, worse)
    }

    /// Returns what another run did in another way.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<&'static str> {
        let all = [
            ("protocol", self.protocol == other.protocol),
            ("scenario", self.scenario == other.scenario),
            ("--connections", self.connections == other.connections),
            ("--rate", self.rate.to_bits() == other.rate.to_bits()),
        ];
        let others = all.into_iter().filter(|(_, is_same)| !is_same);
        others.map(|(name, _)| name).collect()
    }
}

/// Which values are better.
#[derive(Clone, Copy)]
enum Better {
    Higher,
    Lower,
    /// It depends on single calls, or is not of the calls: it is told, not judged.
    Told,
}

fn mb(bytes: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "rounded anyway")]
    let bytes = bytes as f64;
    bytes / 1e6
}

fn ratio(part: u64, of: f64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "no run has 2^53 calls")]
    let part = part as f64;
    if of > 0.0 { part / of } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let latency = Quantiles {
            count: 1000,
            mean: 1.0,
            p50: 1.0,
            p90: 2.0,
            p99: 4.0,
            p999: 8.0,
            max: 9.0,
        };
        Report {
            version: VERSION,
            url: "ws://127.0.0.1:1/ws".to_owned(),
            protocol: "exoclaw".to_owned(),
            scenario: "echo".to_owned(),
            connections: 2,
            rate: 100.0,
            seconds: 10.0,
            stopped: false,
            sent: 1000,
            ok: 1000,
            per_second: 100.0,
            failed: Counts::default(),
            latency,
            service: latency,
            mark: None,
            behind: Behind {
                late: 0,
                longest: 0.1,
                blocked: 0,
                unsent: 0,
            },
            opened: 2,
            refused: Counts::default(),
            lost: Counts::default(),
            own: None,
            server: None,
        }
    }

    #[test]
    fn a_report_is_read_as_it_was_written() {
        let report = report();
        let text = serde_json::to_string(&report).unwrap();
        assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), report);
    }

    #[test]
    fn a_run_that_is_as_good_is_not_worse() {
        let (table, worse) = report().compare(&report(), Some(1.0));
        assert_eq!(worse, <[&str; 0]>::default());
        assert_eq!(table.lines().count(), 8, "{table}");
        assert!(report().differences(&report()).is_empty());
    }

    #[test]
    fn values_worse_than_allowed_are_named() {
        let mut now = report();
        now.latency.p99 = 5.0;
        now.latency.max = 900.0;
        now.per_second = 70.0;
        now.failed.add("timed out");
        let then = report();
        let all = ["answered a second", "failed, of 100", "latency p99 ms"];
        assert_eq!(now.compare(&then, Some(1.2)).1, all);
        let most = ["answered a second", "failed, of 100"];
        assert_eq!(now.compare(&then, Some(1.25)).1, most);
        let none: [&str; 0] = [];
        assert_eq!(now.compare(&then, None).1, none);
        // And the other way it is better.
        assert_eq!(then.compare(&now, Some(1.0)).1, none);
    }

    #[test]
    fn a_run_behind_its_schedule_says_so_and_why() {
        let mut report = report();
        assert!(!report.words().contains("behind"), "{}", report.words());
        report.behind.late = 500;
        assert!(report.words().contains("something else had the processor"));
        (report.behind.blocked, report.behind.unsent) = (400, 3);
        assert!(
            report
                .words()
                .contains("3 never left. no connection was free")
        );
        report.own = Some(Usage {
            pid: 1,
            cpu: 10.0,
            processors: 1.0,
            memory_before: 0,
            memory_most: 0,
        });
        assert!(report.words().contains("no processor time left"));
    }
}
