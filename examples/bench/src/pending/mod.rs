//! Goal 9: calls in flight. A round registers a call with a deadline, writes its id as text, and
//! completes another call by its id's text; which one is as good as random, as answers come.

mod map_sleep;
mod ours;

use std::time::Instant;

use crate::goals;
use crate::net::growth;
use crate::work::Work;

/// A table with some calls in flight.
pub(crate) trait Table {
    /// Starts a call, completes one.
    fn round(&mut self);
}

/// An id as it is on the wire.
type IdText = [u8; 16];

/// The ids that the peer has been told and will answer, in any order.
struct Answers {
    open: Vec<IdText>,
    state: u64,
}

impl Answers {
    fn new(in_flight: usize) -> Self {
        Self {
            open: Vec::with_capacity(in_flight + 1),
            state: 0x2545_f491_4f6c_dd1d,
        }
    }

    fn add(&mut self, id: &str) {
        self.open.push(id.as_bytes().try_into().unwrap());
    }

    /// One that is as good as random.
    fn take(&mut self) -> IdText {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        let at = self.state % self.open.len() as u64;
        self.open.swap_remove(at as usize)
    }
}

/// The rows whose instructions are compared with one another.
pub(crate) const ONE: &str = "a pending call, 1 in flight";
pub(crate) const MANY: &str = "a pending call, 1,000,000 in flight";

pub(crate) fn works() -> Vec<Work> {
    vec![
        Work::new("9", ONE, 0, |n| rounds(ours::table(1), n))
            .beside("map + sleep", |n| {
                map_sleep::within(|| rounds(map_sleep::table(1), n))
            })
            .allocating(0.0),
        Work::new("9", "a pending call, 1,000 in flight", 0, |n| {
            rounds(ours::table(1_000), n)
        })
        .beside("map + sleep", |n| {
            map_sleep::within(|| rounds(map_sleep::table(1_000), n))
        })
        .rounds(4_000)
        .allocating(0.0),
        Work::new("9", MANY, 0, |n| rounds(ours::table(goals::MANY), n))
            .rounds(20_000)
            .allocating(0.0),
    ]
}

fn rounds(mut table: impl Table, n: u64) {
    for _ in 0..n {
        table.round();
    }
}

/// Nanoseconds per round and resident bytes per call, in this process.
pub(crate) fn figures(name: &str, in_flight: usize) -> (f64, f64) {
    match name {
        "ours" => measured(in_flight, || ours::table(in_flight)),
        "map + sleep" => map_sleep::within(|| measured(in_flight, || map_sleep::table(in_flight))),
        other => panic!("no table {other}"),
    }
}

fn measured<T: Table>(in_flight: usize, make: impl FnOnce() -> T) -> (f64, f64) {
    const ROUNDS: u32 = 200_000;
    let before = crate::process::resident(std::process::id());
    let mut table = make();
    let grown = crate::process::resident(std::process::id()).saturating_sub(before);
    for _ in 0..in_flight.min(100_000) {
        table.round();
    }
    // The least of several: the machine has other work too.
    let least = (0..7)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..ROUNDS {
                table.round();
            }
            start.elapsed().as_secs_f64() * 1e9 / f64::from(ROUNDS)
        })
        .fold(f64::INFINITY, f64::min);
    // The list of answers is ours, not the table's.
    let answers = size_of::<IdText>() as f64;
    (least, grown as f64 / in_flight as f64 - answers)
}

/// Adds the rows that are measured in time and memory, each in a process of its own.
pub(crate) fn table(report: &mut crate::report::Report, quick: bool) {
    let levels: &[usize] = if quick {
        &[1, 1_000, 100_000]
    } else {
        &[1, 1_000, 100_000, goals::MANY]
    };
    let mut first = None;
    for &level in levels {
        // In turn, so that what else the machine does disturbs both alike.
        let both: Vec<_> = (0..3)
            .map(|_| (in_child("ours", level), in_child("map + sleep", level)))
            .collect();
        let least = |times: &mut dyn Iterator<Item = f64>| times.fold(f64::INFINITY, f64::min);
        let time = least(&mut both.iter().map(|(ours, _)| ours.0));
        let their_time = least(&mut both.iter().map(|(_, theirs)| theirs.0));
        let ((_, bytes), (_, their_bytes)) = both[0];
        let ratios = both.iter().map(|(ours, theirs)| theirs.0 / ours.0);
        // Memory of a few calls disappears in what a page holds.
        let memory = |bytes: f64| match level {
            0..10_000 => String::new(),
            _ => format!(", {bytes:.0} B"),
        };
        let at_least = (level <= 1_000).then_some(2.5);
        report.repeated(
            "9",
            &format!("time of a pending call, {level} in flight (orientation)"),
            format!("{time:.0} ns{}", memory(bytes)),
            (
                "map + sleep",
                format!("{their_time:.0} ns{}", memory(their_bytes)),
            ),
            (ratios.collect(), at_least),
        );
        let first = *first.get_or_insert(time);
        if level == levels[levels.len() - 1] {
            let growth = time / first;
            let what = format!("growth of the time from 1 to {level} in flight (orientation)");
            report.bound(
                "9",
                &what,
                format!("{growth:.1}"),
                "≤ 7.5".to_owned(),
                growth <= 7.5,
            );
            let what = format!("memory of a pending call, {level} in flight");
            report.bound(
                "9",
                &what,
                format!("{bytes:.0} B"),
                "≤ 128 B".to_owned(),
                bytes <= 128.0,
            );
        }
    }
}

/// Adds the rows of growth, tenfold by tenfold.
pub(crate) fn growth(report: &mut crate::report::Report, quick: bool) {
    let most = if quick { 100_000 } else { goals::MANY };
    let levels = (0..).map(|tens| 10_usize.pow(tens));
    let levels: Vec<usize> = levels.take_while(|level| *level <= most).collect();
    let mut times = Vec::new();
    let mut memory = Vec::new();
    for level in levels {
        let (time, bytes) = in_child("ours", level);
        times.push((level, time));
        if level >= 10_000 {
            memory.push((level, bytes));
        }
    }
    let what = "time of a call in the table alone, calls in flight";
    growth::rows(report, what, &times, "ns", goals::TIME_PER_TENFOLD);
    let what = "memory of a call in the table alone, calls in flight";
    growth::rows(report, what, &memory, "B", goals::MEMORY_PER_TENFOLD);
}

/// [`figures`], in a process of its own.
pub(crate) fn in_child(way: &str, in_flight: usize) -> (f64, f64) {
    eprintln!("pending calls, {way}, {in_flight} in flight");
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["pending", way, &in_flight.to_string()])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut numbers = text
        .split_whitespace()
        .map(|number| number.parse().unwrap());
    (numbers.next().unwrap(), numbers.next().unwrap())
}
