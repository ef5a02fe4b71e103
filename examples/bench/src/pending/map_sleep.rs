//! What clients usually have: a map from the id's text, and a sleep of tokio for each call.

use std::collections::HashMap;
use std::future::Future;
use std::hint::black_box;
use std::pin::Pin;
use std::task::{Context, Waker};

use tokio::time::{Duration, Instant, Sleep, sleep_until};

use super::{Answers, IdText, Table};

struct MapSleep {
    calls: HashMap<String, (u64, Pin<Box<Sleep>>)>,
    answers: Answers,
    next: u64,
    deadline: Instant,
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
        answers: Answers::new(in_flight),
        next: 0,
        deadline: Instant::now() + Duration::from_secs(30),
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
        let registered = sleep
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
            .is_pending();
        assert!(registered);
        let id = format!("{:016x}", self.next);
        self.next += 1;
        self.answers.add(&id);
        self.calls.insert(id, (7, sleep));
    }
}

impl Table for MapSleep {
    fn round(&mut self) {
        self.start();
        let answered: IdText = self.answers.take();
        let text = std::str::from_utf8(&answered).unwrap();
        let (tag, _sleep) = self.calls.remove(black_box(text)).unwrap();
        assert!(tag == 7);
    }
}
