//! Goal 9: calls in flight. A round registers a call with a deadline, writes its id as text, and
//! completes another call by its id's text; which one is as good as random, as answers come.

mod map_sleep;
mod ours;

use std::hint::black_box;

use crate::goals;
use crate::process::resident;
use crate::work::Work;
use map_sleep::MapSleep;
use ours::Ours;

/// A table of calls.
trait Table {
    /// Registers a call with a deadline, and returns its id.
    fn start(&mut self) -> IdText;
    /// Completes the call with this id.
    fn complete(&mut self, id: &str);
}

/// An id as it is on the wire.
type IdText = [u8; 16];

/// A table with calls in flight: their ids, which the peer has received and will answer in any order.
struct InFlight<T> {
    table: T,
    open: Vec<IdText>,
    state: u64,
}

impl<T: Table> InFlight<T> {
    fn new(mut table: T, count: usize) -> Self {
        let mut open = Vec::with_capacity(count + 1);
        open.extend((0..count).map(|_| table.start()));
        Self {
            table,
            open,
            state: 0x2545_f491_4f6c_dd1d,
        }
    }

    /// Starts a call, and completes one that is as good as random.
    fn round(&mut self) {
        self.open.push(self.table.start());
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        let at = self.state % self.open.len() as u64;
        let answered = self.open.swap_remove(at as usize);
        let text = std::str::from_utf8(&answered).unwrap();
        self.table.complete(black_box(text));
    }
}

/// The rows whose instructions are compared with one another.
pub(crate) const ONE: &str = "a pending call, 1 in flight";
pub(crate) const MANY: &str = "a pending call, 1,000,000 in flight";

pub(crate) fn works() -> Vec<Work> {
    let beside = |name, count| {
        Work::new(name, 0, move |n| rounds(Ours::new(), count, n))
            .beside("map + sleep", goals::SLEEP, move |n| {
                map_sleep::within(|| rounds(MapSleep::new(), count, n))
            })
            .allocating(0.0)
    };
    vec![
        beside(ONE, 1),
        beside("a pending call, 1,000 in flight", 1_000).rounds(4_000),
        Work::new(MANY, 0, |n| rounds(Ours::new(), goals::MANY, n))
            .rounds(20_000)
            .allocating(0.0),
    ]
}

fn rounds(table: impl Table, in_flight: usize, n: u64) {
    let mut table = InFlight::new(table, in_flight);
    for _ in 0..n {
        table.round();
    }
}

/// Resident bytes per call of a table with [`goals::MANY`] in flight, in this process.
pub(crate) fn bytes() -> f64 {
    let before = resident(std::process::id());
    let _table = InFlight::new(Ours::new(), goals::MANY);
    let grown = resident(std::process::id()).saturating_sub(before);
    // The list of ids is ours, not the table's.
    grown as f64 / goals::MANY as f64 - size_of::<IdText>() as f64
}

/// [`bytes`], in a process of its own.
pub(crate) fn bytes_in_child() -> f64 {
    let own = std::env::current_exe().unwrap();
    let output = std::process::Command::new(own).arg("pending").output();
    let text = String::from_utf8(output.unwrap().stdout).unwrap();
    text.trim().parse().unwrap()
}
