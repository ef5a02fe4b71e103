//! What clients usually have: a map from the id's text, and a sleep of tokio for each call.

use std::collections::HashMap;
use std::fmt::Write;
use std::future::Future;
use std::hint::black_box;
use std::pin::Pin;
use std::task::{Context, Waker};

use tokio::time::{Duration, Instant, Sleep, sleep_until};

use super::{Choice, Table};

struct MapSleep {
    calls: HashMap<String, (u64, Pin<Box<Sleep>>)>,
    choice: Choice,
    open: Vec<u64>,
    next: u64,
    deadline: Instant,
    text: String,
}

/// Runs something where sleeps can be made.
pub(super) fn within<T>(work: impl FnOnce() -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let _guard = runtime.enter();
    work()
}

pub(super) fn table(in_flight: usize) -> impl Table {
    let mut table = MapSleep {
        calls: HashMap::new(),
        choice: Choice::new(),
        open: Vec::with_capacity(in_flight + 1),
        next: 0,
        deadline: Instant::now() + Duration::from_secs(30),
        text: String::with_capacity(32),
    };
    for _ in 0..in_flight {
        table.start();
    }
    table
}

impl MapSleep {
    fn start(&mut self) {
        self.deadline += Duration::from_micros(10);
        let mut sleep = Box::pin(sleep_until(self.deadline));
        // The first poll registers it.
        assert!(
            sleep
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()))
                .is_pending()
        );
        let id = format!("{:016x}", self.next);
        self.open.push(self.next);
        self.next += 1;
        self.calls.insert(id, (7, sleep));
    }
}

impl Table for MapSleep {
    fn round(&mut self) {
        self.start();
        let answered = self.choice.take(&mut self.open);
        self.text.clear();
        write!(self.text, "{answered:016x}").unwrap();
        let (tag, _sleep) = self.calls.remove(black_box(self.text.as_str())).unwrap();
        assert!(tag == 7);
    }
}
