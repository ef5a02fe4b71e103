//! `rpc_core::PendingCalls`.

use std::fmt::Write;
use std::hint::black_box;
use std::time::{Duration, Instant};

use rpc_core::{Match, PendingCalls};

use super::{Answers, IdText, Table};
use crate::goals::MANY;

struct Ours {
    calls: PendingCalls<u64>,
    answers: Answers,
    text: String,
    deadline: Instant,
}

pub(super) fn table(in_flight: usize) -> impl Table {
    let now = Instant::now();
    let mut table = Ours {
        calls: PendingCalls::new(0x9e37_79b9_7f4a_7c15, MANY + 1, now),
        answers: Answers::new(in_flight),
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
        self.text.clear();
        write!(self.text, "{id}").unwrap();
        self.answers.add(&self.text);
    }
}

impl Table for Ours {
    fn round(&mut self) {
        self.start();
        let answered: IdText = self.answers.take();
        let text = std::str::from_utf8(&answered).unwrap();
        let found = self.calls.complete_text(black_box(text));
        assert!(found == Match::Live(7));
    }
}
