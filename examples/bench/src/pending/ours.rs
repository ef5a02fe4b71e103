//! `rpc_core::PendingCalls`.

use std::collections::VecDeque;
use std::fmt::Write;
use std::hint::black_box;
use std::time::{Duration, Instant};

use rpc_core::{CallId, Match, PendingCalls};

use super::{MOST, Table};

struct Ours {
    calls: PendingCalls<u64>,
    order: VecDeque<CallId>,
    text: String,
    deadline: Instant,
}

pub(super) fn table(in_flight: usize) -> impl Table {
    let now = Instant::now();
    let mut table = Ours {
        calls: PendingCalls::new(0x9e37_79b9_7f4a_7c15, MOST + 1, now),
        order: VecDeque::with_capacity(in_flight + 1),
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
        self.order.push_back(id);
    }
}

impl Table for Ours {
    fn round(&mut self) {
        self.start();
        let oldest = self.order.pop_front().unwrap();
        self.text.clear();
        write!(self.text, "{oldest}").unwrap();
        let found = self.calls.complete_text(black_box(&self.text));
        assert!(found == Match::Live(7));
    }
}
