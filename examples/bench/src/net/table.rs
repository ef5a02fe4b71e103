//! `bench table`: processor time and memory of whole processes, each end a process of its own.

use super::child::Child;
use super::kind::{CHAT, ECHO, ECHO_ONLY, PING};

/// What is measured.
enum Measured {
    /// Calls of a work, with so many in flight: processor time of both ends for each.
    Calls(&'static str, usize, usize),
    /// A stream of so many frames on each of so many connections: processor time of the server for
    /// each frame.
    Streams(usize, usize),
    /// So many idle connections that have each carried a message of so many bytes: resident memory of
    /// the server for each.
    Idle(usize, usize),
}

/// A row: our end, what it does, and the peers with the least ratio that is asked for.
type Row = (
    &'static str,
    Measured,
    &'static [(&'static str, Option<f64>)],
);

const JSONRPSEE: &str = "jsonrpsee";

#[rustfmt::skip] // One row per line, to be read and edited as a table.
const ROWS: &[Row] = &[
    ("exoclaw", Measured::Calls(PING, 1, 10_000), &[(ECHO_ONLY, Some(1.0 / 1.1)), (JSONRPSEE, Some(1.5))]),
    ("exoclaw", Measured::Calls(PING, 16, 50_000), &[(ECHO_ONLY, None), (JSONRPSEE, Some(4.5))]),
    ("exoclaw", Measured::Calls(PING, 1_000, 200_000), &[(ECHO_ONLY, None), (JSONRPSEE, Some(11.0))]),
    ("snek", Measured::Calls(ECHO, 1, 10_000), &[(ECHO_ONLY, Some(1.0 / 1.1)), (JSONRPSEE, None)]),
    ("snek", Measured::Calls(ECHO, 16, 50_000), &[(ECHO_ONLY, None), (JSONRPSEE, Some(4.5))]),
    ("snek", Measured::Calls(ECHO, 1_000, 200_000), &[(ECHO_ONLY, None), (JSONRPSEE, Some(10.0))]),
    ("exoclaw", Measured::Calls(CHAT, 16, 20_000), &[(ECHO_ONLY, None), (JSONRPSEE, None)]),
    ("exoclaw", Measured::Calls(CHAT, 1_000, 40_000), &[(ECHO_ONLY, None), (JSONRPSEE, None)]),
    ("exoclaw", Measured::Streams(1, 400_000), &[(ECHO_ONLY, None), (JSONRPSEE, Some(20.0))]),
    ("exoclaw", Measured::Streams(1_000, 400), &[(ECHO_ONLY, None), (JSONRPSEE, Some(12.0))]),
    ("exoclaw", Measured::Streams(5_000, 80), &[(ECHO_ONLY, None), (JSONRPSEE, Some(10.0))]),
    ("exoclaw", Measured::Idle(5_000, 0), &[(ECHO_ONLY, Some(1.0)), (JSONRPSEE, None)]),
    ("snek", Measured::Idle(5_000, 0), &[(ECHO_ONLY, Some(1.0)), (JSONRPSEE, None)]),
    ("connectonion", Measured::Idle(5_000, 0), &[(ECHO_ONLY, None), (JSONRPSEE, None)]),
    ("router", Measured::Idle(5_000, 0), &[(ECHO_ONLY, None), (JSONRPSEE, None)]),
    ("acolyte", Measured::Idle(5_000, 0), &[(ECHO_ONLY, None), (JSONRPSEE, None)]),
    ("exoclaw", Measured::Idle(5_000, 1_000_000), &[(JSONRPSEE, None)]),
    ("snek", Measured::Idle(5_000, 1_000_000), &[(JSONRPSEE, None)]),
    ("connectonion", Measured::Idle(5_000, 1_000_000), &[(JSONRPSEE, None)]),
    ("router", Measured::Idle(5_000, 1_000_000), &[(JSONRPSEE, None)]),
    ("acolyte", Measured::Idle(5_000, 1_000_000), &[(JSONRPSEE, None)]),
];

/// How often everything is measured.
const TURNS: usize = 3;

/// Prints a table of the rows whose name holds the text.
pub(crate) fn table(only: &str) {
    println!("| what | ours | peer | theirs | theirs / ours | needed |\n|---|---|---|---|---|---|");
    for (ours, measured, peers) in ROWS {
        let name = measured.name(ours);
        if !name.contains(only) {
            continue;
        }
        // In turn, so that what else the machine does disturbs all alike.
        let turns: Vec<Vec<f64>> = (0..TURNS)
            .map(|_| {
                let ends = std::iter::once(ours).chain(peers.iter().map(|(peer, _)| peer));
                ends.map(|end| measured.cost(end)).collect()
            })
            .collect();
        let least = |way: usize| {
            let costs = turns.iter().map(|turn| turn[way]);
            costs.fold(f64::INFINITY, f64::min)
        };
        for (at, (peer, needed)) in peers.iter().enumerate() {
            let mut ratios: Vec<f64> = turns.iter().map(|turn| turn[at + 1] / turn[0]).collect();
            ratios.sort_by(f64::total_cmp);
            let (low, median, high) = (ratios[0], ratios[TURNS / 2], ratios[TURNS - 1]);
            let needed = needed.map_or(String::new(), |least| {
                let verdict = if median >= least { "met" } else { "**gap**" };
                format!("≥ {least:.2}, {verdict}")
            });
            let (ours, theirs) = (least(0), least(at + 1));
            println!(
                "| {name} | {ours:.0} | {peer} | {theirs:.0} | {median:.2} ({low:.2} to {high:.2}) | {needed} |"
            );
        }
    }
}

impl Measured {
    fn name(&self, end: &str) -> String {
        match self {
            Self::Calls(work, count, _) => {
                format!("{end} {work}, {count} in flight: ns of both ends per call")
            }
            Self::Streams(count, _) => {
                format!("{end} stream on {count} connections: ns of the server per frame")
            }
            Self::Idle(count, bytes) => {
                format!("{end}, {count} idle connections after {bytes} B: bytes of the server each")
            }
        }
    }

    fn cost(&self, end: &str) -> f64 {
        eprintln!("{}", self.name(end));
        // What the client does, with which two numbers, and by what the cost is divided.
        let (word, kind, counts, per) = match *self {
            Self::Calls(work, in_flight, calls) => {
                let kind = format!("{end}: {work}");
                ("load", kind, (in_flight, calls), calls)
            }
            Self::Streams(count, frames) => {
                ("listen", end.to_owned(), (count, frames), count * frames)
            }
            Self::Idle(count, bytes) => ("hold", end.to_owned(), (count, bytes), count),
        };
        let mut server = Child::start(&["serve", &kind]);
        let address = server.line();
        let client = |count: usize| {
            let counts = (count.to_string(), counts.1.to_string());
            let mut client = Child::start(&[word, &kind, &address, &counts.0, &counts.1]);
            client.line();
            client
        };
        let cost = if let Self::Idle(count, _) = *self {
            // What the first few cost only once is left out.
            drop(client(10));
            let before = server.resident();
            let _client = client(count);
            server.resident().saturating_sub(before)
        } else {
            let mut client = client(counts.0);
            // Of a stream the server's end alone counts.
            let is_call = matches!(self, Self::Calls(..));
            let spent = |client: &Child| server.cpu() + if is_call { client.cpu() } else { 0 };
            let before = spent(&client);
            client.go();
            client.line();
            spent(&client) - before
        };
        cost as f64 / per as f64
    }
}
