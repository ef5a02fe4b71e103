//! [`Report`]: the result of a run, in words and as JSON.

use serde::Serialize;

use super::run::{Finished, Load};
use super::stats::{Counts, LATE, Quantiles};

/// More processors than this in use by the generator, which has one thread, mean that it had no time left.
const BUSY: f64 = 0.9;

/// The result of a run. Times are in milliseconds unless they say otherwise.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Report {
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
    /// Processors that the process which made the calls has used on average: 1 is one that had no pause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processors: Option<f64>,
}

/// What a scenario measures beside its answers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Mark {
    /// What it is.
    pub name: String,
    /// From when the call was due.
    pub times: Quantiles,
}

/// How far a run was behind its schedule.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Behind {
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
    pub(crate) fn new(url: &str, load: &Load, finished: &Finished) -> Self {
        let stats = &finished.stats;
        let seconds = finished.time.as_secs_f64();
        let mark = load.scenario.mark().map(|name| Mark {
            name: name.to_owned(),
            times: stats.mark.quantiles(),
        });
        Self {
            url: url.to_owned(),
            protocol: load.scenario.protocol.name().to_owned(),
            scenario: load.scenario.kind.name().to_owned(),
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
            processors: finished.processors,
        }
    }

    /// Returns the report in words.
    pub(crate) fn words(&self) -> String {
        let stopped = if self.stopped { ", stopped early" } else { "" };
        let (protocol, scenario) = (&self.protocol, &self.scenario);
        let (connections, rate, seconds) = (self.connections, self.rate, self.seconds);
        let (ok, sent, per_second) = (self.ok, self.sent, self.per_second);
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
        if let Some(processors) = self.processors {
            text += &format!("\nload: {processors:.2} processors\n");
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
        let is_busy = self.processors.is_some_and(|it| it > BUSY);
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
            processors: None,
        }
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
        report.processors = Some(1.0);
        assert!(report.words().contains("no processor time left"));
    }
}
