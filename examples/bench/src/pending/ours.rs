//! `rpc_core::PendingCalls`.

use std::fmt::Write;
use std::hint::black_box;
use std::time::{Duration, Instant};

use rpc_core::{CallId, Match, PendingCalls};

use super::{Choice, MOST, Table};

struct Ours {
    calls: PendingCalls<u64>,
    choice: Choice,
    open: Vec<CallId>,
    text: String,
    deadline: Instant,
}

pub(super) fn table(in_flight: usize) -> impl Table {
    let now = Instant::now();
    let mut table = Ours {
        calls: PendingCalls::new(0x9e37_79b9_7f4a_7c15, MOST + 1, now),
        choice: Choice::new(),
        open: Vec::with_capacity(in_flight + 1),
        text: String::with_capacity(32),
        deadline: now + Duration::from_secs(30),
    };
    for _ in 0..in_flight {
        table.start();
    }
    table
}

impl Ours {
    fn start(&mut self) {
        // As time goes on, so do deadlines.
        self.deadline += Duration::from_micros(10);
        let id = self.calls.insert(7, Some(self.deadline)).unwrap();
        self.open.push(id);
        self.write(id);
    }
}

impl Ours {
    /// The id as text, as a frame has it.
    fn write(&mut self, id: CallId) {
        self.text.clear();
        write!(self.text, "{id}").unwrap();
        black_box(&self.text);
    }
}

impl Table for Ours {
    fn round(&mut self) {
        self.start();
        let answered = self.choice.take(&mut self.open);
        self.write(answered);
        let found = self.calls.complete_text(black_box(&self.text));
        assert!(found == Match::Live(7));
    }
}
