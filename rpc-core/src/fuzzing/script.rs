//! [`Script`], and what every machine has to stand: [`fire`] and [`assert_inert`].

use std::fmt;
use std::time::{Duration, Instant};

use crate::error::Disconnect;
use crate::machine::Machine;
use crate::message::Incoming;

/// Bytes as a list of operations.
pub struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    /// These bytes.
    #[must_use]
    pub const fn new(data: &'a [u8]) -> Self {
        Self(data)
    }

    /// The next byte; `None` at the end.
    pub fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// The next byte; 0 at the end.
    pub fn byte_or_zero(&mut self) -> u8 {
        self.byte().unwrap_or_default()
    }

    /// A text: its length in a byte, then its bytes. Empty if it is not UTF-8.
    pub fn text(&mut self) -> &'a str {
        let len = usize::from(self.byte_or_zero()).min(self.0.len());
        let (text, rest) = self.0.split_at(len);
        self.0 = rest;
        std::str::from_utf8(text).unwrap_or_default()
    }

    /// An item of a list; `None` if it is empty.
    pub fn pick<'l, T>(&mut self, list: &'l [T]) -> Option<&'l T> {
        let at = usize::from(self.byte_or_zero());
        list.get(at.checked_rem(list.len())?)
    }

    /// Up to 255 s.
    pub fn seconds(&mut self) -> Duration {
        Duration::from_secs(u64::from(self.byte_or_zero()))
    }
}

impl fmt::Debug for Script<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Script({} bytes)", self.0.len())
    }
}

/// The deadlines of this span fire, and each must move on.
pub fn fire<M: Machine>(machine: &mut M, now: &mut Instant, wait: Duration) {
    let until = *now + wait;
    for _ in 0..1_000 {
        let Some(at) = machine.poll_timeout().filter(|at| *at <= until) else {
            *now = until;
            return;
        };
        *now = at.max(*now);
        machine.handle_timeout(*now);
        if let Some(next) = machine.poll_timeout() {
            assert!(next > at, "a handled deadline must move later");
        }
    }
    panic!("deadlines make no progress");
}

/// After the end nothing comes out, whatever goes in: these texts among others.
pub fn assert_inert<M: Machine>(machine: &mut M, now: Instant, texts: &[&str]) {
    let no_deadline = |machine: &M| {
        assert!(
            machine.poll_timeout().is_none(),
            "closed: no deadline may remain"
        );
    };
    assert!(machine.is_closed(), "a disconnect must close");
    no_deadline(machine);
    for text in texts {
        machine.handle_message(Incoming::Text(text), now);
    }
    machine.handle_message(Incoming::Binary(b"x"), now);
    machine.handle_timeout(now + Duration::from_secs(3600));
    machine.handle_disconnect(Disconnect::Eof, now);
    no_deadline(machine);
    assert!(
        machine.poll_transmit().is_none(),
        "closed: no frame may come out"
    );
    assert!(
        machine.poll_event().is_none(),
        "closed: no event may come out"
    );
}
