//! [`Schedule`] and [`Dispatch`]: when calls are due, and on which connection each leaves. Pure: time is
//! an argument, counted from the start of the run.

use std::collections::VecDeque;
use std::time::Duration;

/// The times at which calls are due: evenly spread, whatever becomes of the calls before.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    /// Calls a second.
    pub rate: f64,
    /// How long calls are made that do not count.
    pub warmup: Duration,
    /// How long to make calls that count.
    pub duration: Duration,
}

impl Schedule {
    /// Returns when the last call is due at the latest.
    #[must_use]
    pub fn end(&self) -> Duration {
        self.warmup + self.duration
    }

    /// Returns when the call with this number, from 0, is due; `None` if it is not part of the run.
    #[must_use]
    pub fn due(&self, number: u64) -> Option<Duration> {
        #[expect(clippy::cast_precision_loss, reason = "no run has 2^53 calls")]
        let due = Duration::try_from_secs_f64(number as f64 / self.rate).ok()?;
        (due < self.end()).then_some(due)
    }

    /// Returns whether a call that is due then counts.
    #[must_use]
    pub fn counts(&self, due: Duration) -> bool {
        due >= self.warmup && due < self.end()
    }

    /// Returns how many calls that count are due in all.
    #[must_use]
    pub fn counted(&self) -> u64 {
        self.due_before(self.end()) - self.due_before(self.warmup)
    }

    /// Returns the number of the first call that is not due before `time`.
    fn due_before(&self, time: Duration) -> u64 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "neither negative nor that large"
        )]
        let mut number = (time.as_secs_f64() * self.rate) as u64;
        // What the division has rounded, `due` has rounded the same way.
        number = number.saturating_sub(1);
        while self.due(number).is_some_and(|due| due < time) {
            number += 1;
        }
        number
    }
}

/// A call to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its number, from 0.
    pub number: u64,
    /// When it is due.
    pub due: Duration,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Send this call on this connection.
    Send(usize, Call),
    /// This call waited for a connection for longer than a caller would.
    GaveUp(Call),
    /// Nothing is due before then.
    Wait(Duration),
    /// No connection is free: go on when one is, or at this time, when the oldest call gives up.
    Blocked(Duration),
    /// The run is over.
    Over,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    is_open: bool,
    is_listed: bool,
    in_flight: usize,
}

/// Gives each call to a connection that is free: all take turns. A call for which none is free waits in the
/// schedule itself, so nothing grows; its latency counts from when it was due all the same.
#[derive(Debug)]
pub struct Dispatch {
    schedule: Schedule,
    patience: Duration,
    most_in_flight: usize,
    next: u64,
    slots: Vec<Slot>,
    free: VecDeque<usize>,
    /// Calls for which no connection was free when they were due, and the last of them.
    blocked: u64,
    last_blocked: Option<u64>,
    is_stopped: bool,
}

impl Dispatch {
    /// Creates a dispatch for so many connections, none of which is open, with so many calls in flight on
    /// each. A call waits no longer than `patience`.
    #[must_use]
    pub fn new(
        schedule: Schedule,
        connections: usize,
        most_in_flight: usize,
        patience: Duration,
    ) -> Self {
        Self {
            schedule,
            patience,
            most_in_flight: most_in_flight.max(1),
            next: 0,
            slots: vec![Slot::default(); connections],
            free: VecDeque::with_capacity(connections),
            blocked: 0,
            last_blocked: None,
            is_stopped: false,
        }
    }

    /// Makes a connection take calls.
    pub fn opened(&mut self, connection: usize) {
        if let Some(slot) = self.slots.get_mut(connection) {
            slot.is_open = true;
            slot.in_flight = 0;
        }
        self.list(connection);
    }

    /// Makes a connection take no calls until it is open again. Its calls in flight are over.
    pub fn closed(&mut self, connection: usize) {
        if let Some(slot) = self.slots.get_mut(connection) {
            slot.is_open = false;
        }
    }

    /// Says that a call of a connection is over.
    pub fn finished(&mut self, connection: usize) {
        if let Some(slot) = self.slots.get_mut(connection) {
            slot.in_flight = slot.in_flight.saturating_sub(1);
        }
        self.list(connection);
    }

    /// Ends the schedule.
    pub fn stop(&mut self) {
        self.is_stopped = true;
    }

    /// Returns how many connections are open.
    #[must_use]
    pub fn open(&self) -> usize {
        self.slots.iter().filter(|slot| slot.is_open).count()
    }

    /// Returns the calls that count, were due before `now`, and were neither sent nor given up.
    pub fn backlog(&self, now: Duration) -> impl Iterator<Item = Call> {
        let from = self
            .next
            .max(self.schedule.due_before(self.schedule.warmup));
        let to = self.schedule.due_before(now.min(self.schedule.end()));
        let schedule = self.schedule;
        (from..to).filter_map(move |number| {
            let due = schedule.due(number)?;
            Some(Call { number, due })
        })
    }

    /// Returns how many calls had to wait because no connection was free.
    #[must_use]
    pub const fn blocked(&self) -> u64 {
        self.blocked
    }

    fn list(&mut self, connection: usize) {
        if let Some(slot) = self.slots.get_mut(connection)
            && slot.is_open
            && !slot.is_listed
            && slot.in_flight < self.most_in_flight
        {
            slot.is_listed = true;
            self.free.push_back(connection);
        }
    }

    /// Decides what to do at this time.
    pub fn next(&mut self, now: Duration) -> Next {
        let is_over = now >= self.schedule.end();
        let due = self.schedule.due(self.next).filter(|_| !self.is_stopped);
        let Some(due) = due else {
            return match is_over || self.is_stopped {
                true => Next::Over,
                false => Next::Wait(self.schedule.end()),
            };
        };
        if due > now {
            return Next::Wait(due);
        }
        let call = Call {
            number: self.next,
            due,
        };
        if now - due >= self.patience {
            self.next += 1;
            return Next::GaveUp(call);
        }
        while let Some(connection) = self.free.pop_front() {
            let Some(slot) = self.slots.get_mut(connection) else {
                continue;
            };
            slot.is_listed = false;
            if !slot.is_open {
                continue;
            }
            slot.in_flight += 1;
            self.next += 1;
            self.list(connection);
            return Next::Send(connection, call);
        }
        // Who is behind stops with the schedule, and does not run on for as long as it is behind.
        if is_over {
            return Next::Over;
        }
        if self.last_blocked.replace(self.next) != Some(self.next) {
            self.blocked += 1;
        }
        Next::Blocked((due + self.patience).min(self.schedule.end()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    const SCHEDULE: Schedule = Schedule {
        rate: 10.0,
        warmup: ms(200),
        duration: ms(500),
    };

    fn sent(dispatch: &mut Dispatch, now: Duration) -> Vec<(usize, u64)> {
        let mut all = Vec::new();
        while let Next::Send(connection, call) = dispatch.next(now) {
            all.push((connection, call.number));
        }
        all
    }

    #[test]
    fn calls_are_due_evenly_and_those_of_the_warmup_do_not_count() {
        let due: Vec<_> = (0..9).map(|number| SCHEDULE.due(number)).collect();
        let wanted: Vec<_> = (0..9).map(|n| (n < 7).then(|| ms(n * 100))).collect();
        assert_eq!(due, wanted);
        assert_eq!(SCHEDULE.counted(), 5);
        assert!(!SCHEDULE.counts(ms(199)) && SCHEDULE.counts(ms(200)) && !SCHEDULE.counts(ms(700)));
    }

    #[test]
    fn a_rate_without_an_exact_interval_has_as_many_calls_as_it_says() {
        for rate in [3.0, 7.0, 333.3, 20_000.0, 0.5] {
            let schedule = Schedule {
                rate,
                warmup: Duration::ZERO,
                duration: Duration::from_secs(10),
            };
            let last = schedule.counted() - 1;
            assert!(schedule.due(last).is_some() && schedule.due(last + 1).is_none());
            assert!(
                (schedule.counted() as f64 - rate * 10.0).abs() <= 1.0,
                "{rate}"
            );
        }
    }

    #[test]
    fn connections_take_turns() {
        let mut dispatch = Dispatch::new(SCHEDULE, 2, 9, ms(1000));
        dispatch.opened(0);
        dispatch.opened(1);
        assert_eq!(sent(&mut dispatch, ms(0)), [(0, 0)]);
        assert_eq!(dispatch.next(ms(99)), Next::Wait(ms(100)));
        assert_eq!(sent(&mut dispatch, ms(310)), [(1, 1), (0, 2), (1, 3)]);
    }

    #[test]
    fn a_call_without_a_free_connection_is_sent_late_and_keeps_its_due_time() {
        let mut dispatch = Dispatch::new(SCHEDULE, 1, 1, ms(1000));
        dispatch.opened(0);
        assert_eq!(sent(&mut dispatch, ms(0)), [(0, 0)]);
        assert_eq!(dispatch.next(ms(100)), Next::Blocked(ms(700)));
        assert!(matches!(dispatch.next(ms(200)), Next::Blocked(_)));
        assert_eq!(dispatch.backlog(ms(450)).count(), 3);
        assert_eq!(dispatch.blocked(), 1);
        dispatch.finished(0);
        let call = Call {
            number: 1,
            due: ms(100),
        };
        assert_eq!(dispatch.next(ms(450)), Next::Send(0, call));
    }

    #[test]
    fn no_call_waits_longer_than_the_timeout() {
        let mut dispatch = Dispatch::new(SCHEDULE, 1, 1, ms(150));
        assert_eq!(dispatch.next(ms(0)), Next::Blocked(ms(150)));
        let Next::GaveUp(call) = dispatch.next(ms(150)) else {
            panic!("waits");
        };
        assert_eq!(call.number, 0);
        assert_eq!(dispatch.next(ms(150)), Next::Blocked(ms(250)));
        dispatch.opened(0);
        assert_eq!(sent(&mut dispatch, ms(160)), [(0, 1)]);
    }

    #[test]
    fn a_closed_connection_gets_nothing_until_it_is_open_again() {
        let mut dispatch = Dispatch::new(SCHEDULE, 1, 2, ms(1000));
        dispatch.opened(0);
        assert_eq!(sent(&mut dispatch, ms(0)), [(0, 0)]);
        dispatch.closed(0);
        assert_eq!(dispatch.open(), 0);
        assert!(matches!(dispatch.next(ms(100)), Next::Blocked(_)));
        dispatch.opened(0);
        assert_eq!(sent(&mut dispatch, ms(300)), [(0, 1), (0, 2)]);
    }

    #[test]
    fn the_run_ends_with_its_schedule_however_far_behind_it_is() {
        let mut dispatch = Dispatch::new(SCHEDULE, 1, 1, ms(1000));
        dispatch.opened(0);
        assert_eq!(sent(&mut dispatch, ms(0)), [(0, 0)]);
        assert_eq!(dispatch.next(ms(700)), Next::Over);
        assert_eq!(dispatch.backlog(ms(900)).count(), 5);
        // But nothing is left that only a pause of this process has held up.
        dispatch.finished(0);
        assert_eq!(sent(&mut dispatch, ms(701)), [(0, 1)]);
        assert_eq!(dispatch.next(ms(701)), Next::Over);
        let mut dispatch = Dispatch::new(SCHEDULE, 1, 1, ms(1000));
        dispatch.stop();
        assert_eq!(dispatch.next(ms(0)), Next::Over);
    }
}
