//! The table: rows, verdicts, and the head that says what was measured where.

use crate::callgrind::{Cost, count};
use crate::work::Work;

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

#[derive(Debug)]
struct Row {
    goal: String,
    cells: [String; 6],
    verdict: Verdict,
}

/// Rows, in the order of the goals once printed.
#[derive(Debug, Default)]
pub(crate) struct Report {
    rows: Vec<Row>,
    without_valgrind: bool,
}

impl Report {
    /// Adds a row. The ratio is the peer's cost over ours: more is better.
    pub(crate) fn row(
        &mut self,
        goal: &str,
        what: &str,
        ours: String,
        (peer, theirs): (&str, String),
        (ratio, at_least): (f64, Option<f64>),
    ) {
        let needed = at_least.map_or(String::new(), |least| format!("≥ {least:.2}"));
        self.rows.push(Row {
            goal: goal.to_owned(),
            cells: [
                what.to_owned(),
                ours,
                peer.to_owned(),
                theirs,
                format!("{ratio:.2}"),
                needed,
            ],
            verdict: Verdict::of(ratio, at_least),
        });
    }

    /// Adds a row of something that was measured several times, ours and theirs in turn.
    pub(crate) fn repeated(
        &mut self,
        goal: &str,
        what: &str,
        ours: String,
        (peer, theirs): (&str, String),
        (mut ratios, at_least): (Vec<f64>, Option<f64>),
    ) {
        ratios.sort_by(f64::total_cmp);
        let verdict = Verdict::of_all(&ratios, at_least);
        let middle = ratios[ratios.len() / 2];
        self.row(goal, what, ours, (peer, theirs), (middle, at_least));
        if let (Some(row), [first, .., last]) = (self.rows.last_mut(), &ratios[..]) {
            row.cells[4] = format!("{middle:.2} ({first:.2} to {last:.2})");
            row.verdict = verdict;
        }
    }

    /// Adds a row with a bound of its own, beside no peer. `within` is whether it is kept.
    pub(crate) fn bound(
        &mut self,
        goal: &str,
        what: &str,
        ours: String,
        bound: String,
        within: bool,
    ) {
        self.rows.push(Row {
            goal: goal.to_owned(),
            cells: [
                what.to_owned(),
                ours,
                String::new(),
                String::new(),
                String::new(),
                bound,
            ],
            verdict: if within { Verdict::Met } else { Verdict::Gap },
        });
    }

    /// Adds a row that is still to be measured.
    pub(crate) fn missing(&mut self, goal: &str, what: &str) {
        let dash = String::new();
        self.rows.push(Row {
            goal: goal.to_owned(),
            cells: [
                what.to_owned(),
                "not measured yet".to_owned(),
                dash.clone(),
                dash.clone(),
                dash.clone(),
                dash,
            ],
            verdict: Verdict::Compared,
        });
    }

    /// Counts a work and adds its rows.
    pub(crate) fn counted(&mut self, work: &Work) {
        let Some(ours) = count(work, "ours") else {
            self.without_valgrind = true;
            self.missing(work.goal, work.name);
            return;
        };
        for peer in &work.peers {
            let Some(theirs) = count(work, peer.name) else {
                continue;
            };
            let ratio = theirs.instructions / ours.instructions;
            self.row(
                work.goal,
                work.name,
                cost(ours),
                (peer.name, cost(theirs)),
                (ratio, peer.at_least),
            );
        }
        if let Some(most) = work.max_allocations {
            // A table that grows now and then rounds to nothing.
            let within = ours.allocations <= most + 0.01;
            let found = format!("{:.2} allocs", ours.allocations);
            self.bound(
                work.goal,
                work.name,
                found,
                format!("≤ {most} allocs"),
                within,
            );
        }
    }

    pub(crate) fn print(mut self) {
        self.rows.sort_by(|a, b| a.goal.cmp(&b.goal));
        println!("{}", versions());
        if self.without_valgrind {
            println!("\nvalgrind was not found: nothing is counted.");
        }
        println!("\n| goal | what | ours | peer | theirs | theirs / ours | needed | |");
        println!("|---|---|---|---|---|---|---|---|");
        for row in &self.rows {
            println!(
                "| {} | {} | {} |",
                row.goal,
                row.cells.join(" | "),
                row.verdict.text()
            );
        }
        let of = |verdict| {
            self.rows
                .iter()
                .filter(|row| row.verdict == verdict)
                .count()
        };
        let (met, gaps, unclear) = (of(Verdict::Met), of(Verdict::Gap), of(Verdict::Unclear));
        println!("\n{met} met, {gaps} gaps, {unclear} unclear");
    }
}

fn cost(cost: Cost) -> String {
    format!(
        "{:.0} instr, {:.1} allocs",
        cost.instructions, cost.allocations
    )
}

/// The peers' versions, from the lock file, and what the program was built for.
fn versions() -> String {
    const PEERS: [&str; 7] = [
        "serde_json",
        "sonic-rs",
        "jsonrpsee",
        "rmcp",
        "tokio",
        "tokio-tungstenite",
        "fastwebsockets",
    ];
    let lock = include_str!("../Cargo.lock");
    let found = PEERS.map(|peer| {
        let start = format!("name = \"{peer}\"\nversion = \"");
        let version = lock
            .split_once(start.as_str())
            .and_then(|(_, rest)| rest.split_once('"'));
        format!("{peer} {}", version.map_or("?", |(version, _)| version))
    });
    let processor = if cfg!(target_feature = "avx2") {
        "processors with AVX2"
    } else {
        "any processor of its architecture"
    };
    format!("Peers: {}. Built for {processor}.", found.join(", "))
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
