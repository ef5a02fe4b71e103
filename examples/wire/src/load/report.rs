//! The result of a run, in words and as JSON.

use serde_json::{Value, json};

use super::run::{Finished, Load};
use super::stats::LATE;

/// More processors than this in use by the generator, which has one thread, mean that it had no time left.
const BUSY: f64 = 0.9;

impl Finished {
    /// Returns whether it was stopped before its time.
    pub(crate) fn is_stopped(&self, load: &Load) -> bool {
        self.time < load.schedule.duration
    }

    /// Returns how many calls a second were answered within the time.
    fn per_second(&self) -> f64 {
        let seconds = self.time.as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "no run has 2^53 calls")]
        let ok = self.stats.ok_in_time as f64;
        if seconds > 0.0 { ok / seconds } else { 0.0 }
    }

    /// Returns the report as an object. Times are in milliseconds, but for the `seconds` in which calls were due:
    /// `latency` from when a call was due to its answer, `service` from when it was sent, `behind` how far the run was
    /// behind its schedule, and how many calls were `blocked` because no connection was free.
    pub(crate) fn json(&self, url: &str, load: &Load) -> Value {
        let (stats, scenario) = (&self.stats, &load.scenario);
        let mut report = json!({
            "url": url, "protocol": scenario.protocol, "scenario": scenario.kind,
            "connections": load.connections, "rate": load.schedule.rate,
            "seconds": self.time.as_secs_f64(), "stopped": self.is_stopped(load),
            "sent": stats.sent, "ok": stats.ok, "per_second": self.per_second(), "failed": stats.failed,
            "latency": stats.latency.quantiles(), "service": stats.service.quantiles(),
            "behind": {
                "late": stats.late, "longest": stats.longest_lag.as_secs_f64() * 1000.0,
                "blocked": stats.blocked(), "unsent": stats.unsent,
            },
            "opened": stats.opened, "refused": stats.refused, "lost": stats.lost,
        });
        if let Some(name) = scenario.mark() {
            report["mark"] = json!({ "name": name, "times": stats.mark.quantiles() });
        }
        if let Some(processors) = self.processors {
            report["processors"] = processors.into();
        }
        report
    }

    /// Returns the report in words.
    pub(crate) fn words(&self, load: &Load) -> String {
        let (stats, scenario) = (&self.stats, &load.scenario);
        let stopped = match self.is_stopped(load) {
            true => ", stopped early",
            false => "",
        };
        let (protocol, kind) = (scenario.protocol.name(), scenario.kind.name());
        let (connections, rate) = (load.connections, load.schedule.rate);
        let (seconds, per_second) = (self.time.as_secs_f64(), self.per_second());
        let mut text = format!(
            "{protocol} {kind}: {connections} connections, {rate} calls/s for {seconds:.1} s{stopped}\n\n\
             answered  {} of {} sent, {per_second:.0} a second\n",
            stats.ok, stats.sent
        );
        for (name, counts) in [
            ("failed", &stats.failed),
            ("lost", &stats.lost),
            ("not connected", &stats.refused),
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
        let mark = scenario.mark().map(|name| format!("{name}, from due"));
        for (name, times) in [
            ("latency, from due", &stats.latency),
            ("service time, from sent", &stats.service),
            (mark.as_deref().unwrap_or_default(), &stats.mark),
        ] {
            let it = times.quantiles();
            if it.count > 0 {
                let times = [it.p50, it.p90, it.p99, it.p999, it.max];
                let times = times.map(|time| format!(" {time:>9.3}")).concat();
                text += &format!("{name:26}{times}\n");
            }
        }
        if let Some(processors) = self.processors {
            text += &format!("\nload: {processors:.2} processors\n");
        }
        text + &self.behind()
    }

    /// Says that the run fell behind its schedule, and why.
    fn behind(&self) -> String {
        let stats = &self.stats;
        let (late, unsent) = (stats.late, stats.unsent);
        // A pause of the system here and there is none of the schedule.
        if late.max(unsent) * 100 <= stats.sent {
            return String::new();
        }
        let is_busy = self.processors.is_some_and(|it| it > BUSY);
        let why = if is_busy {
            "this process had no processor time left, so latencies are partly its own"
        } else if (stats.blocked() + unsent) * 2 >= late {
            "no connection was free: the server is too slow for this rate, or needs more --connections"
        } else {
            "something else had the processor, so latencies are partly of this machine"
        };
        let (limit, longest) = (LATE.as_millis(), stats.longest_lag.as_millis());
        format!(
            "behind schedule: {late} calls left more than {limit} ms late, at most {longest} ms; {unsent} never \
             left. {why}\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::load::Schedule;
    use crate::load::stats::Stats;

    #[test]
    fn a_run_behind_its_schedule_says_so_and_why() {
        let mut run = Finished {
            stats: Stats::new(Schedule::default()),
            time: Duration::from_secs(10),
            processors: None,
        };
        run.stats.sent = 1000;
        assert_eq!(run.behind(), "");
        (run.stats.late, run.stats.overslept) = (500, 500);
        assert!(run.behind().contains("something else had the processor"));
        (run.stats.overslept, run.stats.unsent) = (100, 3);
        let words = run.behind();
        assert!(words.contains("3 never left. no connection was free"));
        run.processors = Some(1.0);
        assert!(run.behind().contains("no processor time left"));
    }
}
