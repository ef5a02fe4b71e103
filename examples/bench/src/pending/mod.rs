//! Goal 9: calls in flight. A round registers a call with a deadline, writes its id as text, and
//! completes another call by its id's text; which one is as good as random, as answers come.

mod map_sleep;
mod ours;

use crate::goals;
use crate::process::resident;
use crate::work::Work;

/// A table with some calls in flight.
pub(crate) trait Table {
    /// Starts a call, completes one.
    fn round(&mut self);
}

/// An id as it is on the wire.
type IdText = [u8; 16];

/// The ids that the peer has received and will answer, in any order.
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
        Work::new(ONE, 0, |n| rounds(ours::table(1), n))
            .beside("map + sleep", goals::SLEEP, |n| {
                map_sleep::within(|| rounds(map_sleep::table(1), n))
            })
            .allocating(0.0),
        Work::new("a pending call, 1,000 in flight", 0, |n| {
            rounds(ours::table(1_000), n)
        })
        .beside("map + sleep", goals::SLEEP, |n| {
            map_sleep::within(|| rounds(map_sleep::table(1_000), n))
        })
        .rounds(4_000)
        .allocating(0.0),
        Work::new(MANY, 0, |n| rounds(ours::table(goals::MANY), n))
            .rounds(20_000)
            .allocating(0.0),
    ]
}

fn rounds(mut table: impl Table, n: u64) {
    for _ in 0..n {
        table.round();
    }
}

/// Resident bytes per call of a table with [`goals::MANY`] in flight, in this process.
pub(crate) fn bytes() -> f64 {
    let before = resident(std::process::id());
    let _table = ours::table(goals::MANY);
    let grown = resident(std::process::id()).saturating_sub(before);
    // The list of answers is ours, not the table's.
    grown as f64 / goals::MANY as f64 - size_of::<IdText>() as f64
}

/// [`bytes`], in a process of its own.
pub(crate) fn bytes_in_child() -> f64 {
    let own = std::env::current_exe().unwrap();
    let output = std::process::Command::new(own).arg("pending").output();
    let text = String::from_utf8(output.unwrap().stdout).unwrap();
    text.trim().parse().unwrap()
}
