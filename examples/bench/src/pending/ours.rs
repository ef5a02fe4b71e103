//! `rpc_core::PendingCalls`.

use std::fmt::Write;
use std::time::{Duration, Instant};

use rpc_core::{Match, PendingCalls};

use super::{IdText, Table};
use crate::goals::MANY;

pub(super) struct Ours {
    calls: PendingCalls<u64>,
    text: String,
    deadline: Instant,
}

impl Ours {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self {
            calls: PendingCalls::new(0x9e37_79b9_7f4a_7c15, MANY + 1, now),
            text: String::with_capacity(32),
            deadline: now + Duration::from_secs(30),
        }
    }
}

impl Table for Ours {
    fn start(&mut self) -> IdText {
        // As time goes on, so do deadlines.
        self.deadline += Duration::from_micros(10);
        let id = self.calls.insert(7, Some(self.deadline)).unwrap();
        self.text.clear();
        write!(self.text, "{id}").unwrap();
        self.text.as_bytes().try_into().unwrap()
    }

    fn complete(&mut self, id: &str) {
        assert!(self.calls.complete_text(id) == Match::Live(7));
    }
}
