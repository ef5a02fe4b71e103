//! The table: rows and verdicts.

use crate::callgrind::{Cost, count_all};
use crate::goals;
use crate::work::{OURS, Work};

/// What the goal says to a ratio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Verdict {
    Met,
    Gap,
    /// Repeated, it was met sometimes.
    Unclear,
    /// The goal asks for nothing here.
    Compared,
}

impl Verdict {
    /// Of a ratio that has to be large enough.
    pub(crate) fn of(ratio: f64, at_least: Option<f64>) -> Self {
        match at_least {
            None => Self::Compared,
            // What rounding shows as enough is enough.
            Some(least) if ratio >= least - 0.004 => Self::Met,
            Some(_) => Self::Gap,
        }
    }

    /// Of the ratios of several repetitions: only if they agree.
    fn of_all(ratios: &[f64], at_least: Option<f64>) -> Self {
        let mut verdicts = ratios.iter().map(|ratio| Self::of(*ratio, at_least));
        let first = verdicts.next().unwrap_or(Self::Unclear);
        if verdicts.all(|verdict| verdict == first) {
            first
        } else {
            Self::Unclear
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Gap => "**gap**",
            Self::Unclear => "unclear",
            Self::Compared => "",
        }
    }
}

/// The parts of the table, in its order: a name for `--goals`, and the goal in words.
#[rustfmt::skip] // One section per line.
pub(crate) const SECTIONS: &[(&str, &str)] = &[
    ("1", "Goal 1: decode a hot frame of about 100 B"),
    ("2", "Goal 2: decode all other frames"),
    ("3", "Goal 3: a payload that is passed through"),
    ("4", "Goal 4: encode into a buffer that is used again"),
    ("5", "Goal 5: one call at a time"),
    ("6", "Goal 6: many calls in flight on one connection"),
    ("calls", "A call in instructions: both ends in one process, over TCP, 16 in flight"),
    ("7", "Goal 7: streams through a handler's channel"),
    ("8", "Goal 8: memory of a connection"),
    ("9", "Goal 9: the table of calls in flight"),
    ("costs", "Costs: broadcasts, signatures, resumed sessions, storage"),
    ("cluster", "Several nodes on NATS"),
    ("relay", "A relay between a client and a server"),
    ("ws", "The WebSocket layer alone, in memory"),
    ("growth", "Growth: what one costs when there are ten times as many"),
    ("time", "Orientation: the codec in time, as a loop in one process"),
    ("relay", "The proxy: processor time of a frame that passes"),
    ("decode", "Decoding a recording"),
    ("workers", "Orientation: both ends in one process, on a runtime with two workers"),
];

#[derive(Debug)]
struct Row {
    section: String,
    cells: [String; 6],
    verdict: Verdict,
}

/// The rows, sorted into the sections once printed.
#[derive(Debug, Default)]
pub(crate) struct Report {
    rows: Vec<Row>,
}

impl Report {
    /// Adds a row. The ratio is the peer's cost over ours: more is better.
    pub(crate) fn row(
        &mut self,
        section: &str,
        what: &str,
        ours: String,
        (peer, theirs): (&str, String),
        (ratio, at_least): (f64, Option<f64>),
    ) {
        let needed = at_least.map_or(String::new(), |least| format!("≥ {least:.2}"));
        let cells = [
            what.to_owned(),
            ours,
            peer.to_owned(),
            theirs,
            format!("{ratio:.2}"),
            needed,
        ];
        self.add(section, cells, Verdict::of(ratio, at_least));
    }

    /// Adds a row of something that was measured several times, ours and theirs in turn.
    pub(crate) fn repeated(
        &mut self,
        section: &str,
        what: &str,
        ours: String,
        (peer, theirs): (&str, String),
        (mut ratios, at_least): (Vec<f64>, Option<f64>),
    ) {
        ratios.sort_by(f64::total_cmp);
        let verdict = Verdict::of_all(&ratios, at_least);
        let middle = ratios[ratios.len() / 2];
        self.row(section, what, ours, (peer, theirs), (middle, at_least));
        if let (Some(row), [first, .., last]) = (self.rows.last_mut(), &ratios[..]) {
            row.cells[4] = format!("{middle:.2} ({first:.2} to {last:.2})");
            row.verdict = verdict;
        }
    }

    /// Adds a row with a bound of its own, beside no peer. `within` is whether it is kept.
    pub(crate) fn bound(
        &mut self,
        section: &str,
        what: &str,
        ours: String,
        bound: String,
        within: bool,
    ) {
        let none = String::new;
        let cells = [what.to_owned(), ours, none(), none(), none(), bound];
        let verdict = if within { Verdict::Met } else { Verdict::Gap };
        self.add(section, cells, verdict);
    }

    /// Adds a figure of ours that nothing is asked of.
    pub(crate) fn figure(&mut self, section: &str, what: &str, ours: String) {
        let none = String::new;
        let cells = [what.to_owned(), ours, none(), none(), none(), none()];
        self.add(section, cells, Verdict::Compared);
    }

    /// Adds a row that could not be measured, and why.
    pub(crate) fn missing(&mut self, section: &str, what: &str, peer: &str, why: &str) {
        let none = String::new;
        let cells = [
            what.to_owned(),
            none(),
            peer.to_owned(),
            why.to_owned(),
            none(),
            none(),
        ];
        self.add(section, cells, Verdict::Unclear);
    }

    fn add(&mut self, section: &str, cells: [String; 6], verdict: Verdict) {
        self.rows.push(Row {
            section: section.to_owned(),
            cells,
            verdict,
        });
    }

    /// Counts these works and adds their rows.
    pub(crate) fn counted(&mut self, works: &[Work]) {
        let mut jobs = Vec::new();
        for work in works {
            jobs.push((work, OURS));
            jobs.extend(work.peers.iter().map(|peer| (work, peer.name)));
        }
        let mut costs = count_all(&jobs).into_iter();
        for work in works {
            let Some(ours) = costs.next().flatten() else {
                self.missing(work.goal, work.name, "", "valgrind is not installed");
                continue;
            };
            if work.peers.is_empty() {
                self.figure(work.goal, work.name, cost(ours));
            }
            for peer in &work.peers {
                let Some(theirs) = costs.next().flatten() else {
                    continue;
                };
                let ratio = theirs.instructions / ours.instructions;
                let goal = goals::find(work.name, peer.name).map(|goal| goal.goal);
                let theirs = (peer.name, cost(theirs));
                self.row(work.goal, work.name, cost(ours), theirs, (ratio, goal));
            }
            if let Some(most) = work.max_allocations {
                // A table that grows now and then rounds to nothing.
                let within = ours.allocations <= most + 0.01;
                let found = format!("{:.2} allocs", ours.allocations);
                let bound = format!("≤ {most} allocs");
                self.bound(work.goal, work.name, found, bound, within);
            }
        }
    }

    /// The whole table in Markdown.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for &(section, title) in SECTIONS {
            let rows = self.rows.iter().filter(|row| row.section == section);
            let rows: Vec<_> = rows.collect();
            if rows.is_empty() {
                continue;
            }
            text += &format!("\n### {title}\n\n");
            text += "| what | ours | peer | theirs | theirs / ours | needed | |\n";
            text += "|---|---|---|---|---|---|---|\n";
            for row in rows {
                let verdict = row.verdict.text();
                text += &format!("| {} | {verdict} |\n", row.cells.join(" | "));
            }
        }
        let of = |verdict| {
            let rows = self.rows.iter();
            rows.filter(|row| row.verdict == verdict).count()
        };
        let (met, gaps, unclear) = (of(Verdict::Met), of(Verdict::Gap), of(Verdict::Unclear));
        text += &format!("\n{met} met, {gaps} gaps, {unclear} unclear\n");
        text
    }
}

fn cost(cost: Cost) -> String {
    format!(
        "{:.0} instr, {:.1} allocs",
        cost.instructions, cost.allocations
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_that_is_large_enough_meets_the_goal() {
        assert_eq!(Verdict::of(1.6, Some(1.6)), Verdict::Met);
        assert_eq!(Verdict::of(1.5, Some(1.6)), Verdict::Gap);
        assert_eq!(Verdict::of(0.1, None), Verdict::Compared);
        assert_eq!(Verdict::of_all(&[1.5, 1.7], Some(1.6)), Verdict::Unclear);
        assert_eq!(Verdict::of_all(&[1.6, 1.7], Some(1.6)), Verdict::Met);
    }
}
