//! What clients usually have: a map from the id's text, and a sleep of tokio for each call.

use std::collections::HashMap;
use std::pin::Pin;
use std::task::{Context, Waker};

use tokio::time::{Duration, Instant, Sleep, sleep_until};

use super::{IdText, Table};

pub(super) struct MapSleep {
    calls: HashMap<String, (u64, Pin<Box<Sleep>>)>,
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

impl MapSleep {
    pub(super) fn new() -> Self {
        Self {
            calls: HashMap::new(),
            next: 0,
            deadline: Instant::now() + Duration::from_secs(30),
        }
    }
}

impl Table for MapSleep {
    fn start(&mut self) -> IdText {
        self.deadline += Duration::from_micros(10);
        let mut sleep = Box::pin(sleep_until(self.deadline));
        // The first poll registers it.
        let mut context = Context::from_waker(Waker::noop());
        assert!(sleep.as_mut().poll(&mut context).is_pending());
        let id = format!("{:016x}", self.next);
        self.next += 1;
        let text = id.as_bytes().try_into().unwrap();
        self.calls.insert(id, (7, sleep));
        text
    }

    fn complete(&mut self, id: &str) {
        let (tag, _sleep) = self.calls.remove(id).unwrap();
        assert!(tag == 7);
    }
}
