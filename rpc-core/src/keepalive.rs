//! [`KeepAlive`]: WebSocket pings, and when a silent peer counts as gone; [`Heart`] for machines.

use std::time::{Duration, Instant};

use crate::error::CloseReason;
use crate::outbox::Outbox;
use crate::timers::{TimerKind, Timers, later};

const INTERVAL: Duration = Duration::from_secs(30);
const PONG_TIMEOUT: Duration = Duration::from_secs(15);

crate::config! {
    /// How a side finds out that its peer is gone.
    ///
    /// Every `interval` it sends a WebSocket ping. *Anything* that arrives counts as life; if nothing
    /// arrives within `pong_timeout` of a ping, the connection is closed. A deadline that is handled
    /// more than one interval late, because the machine slept, gives one fresh ping and one fresh
    /// `pong_timeout` first.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct KeepAlive {
        /// How often to ping; `None` is never. Default 30 s.
        pub interval: Option<Duration> = Some(INTERVAL) => with_interval,
        /// How long to wait for life after a ping. Default 15 s.
        pub pong_timeout: Duration = PONG_TIMEOUT => with_pong_timeout,
    }
}

impl KeepAlive {
    /// No pings: the peer's silence is never noticed.
    #[must_use]
    pub const fn off() -> Self {
        Self {
            interval: None,
            pong_timeout: PONG_TIMEOUT,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timer {
    /// No life since the last ping.
    Pong,
    /// The next ping.
    Ping,
}

impl TimerKind for Timer {
    const ALL: &'static [Self] = &[Self::Pong, Self::Ping];

    fn index(self) -> usize {
        self as usize
    }

    fn name(self) -> &'static str {
        match self {
            Self::Pong => "pong",
            Self::Ping => "heartbeat",
        }
    }
}

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pulse {
    /// Send a ping.
    Ping,
    /// Close: the peer is gone.
    Dead,
}

/// The state of [`KeepAlive`] on one connection, for use inside a machine.
///
/// ```
/// use std::time::{Duration, Instant};
/// use rpc_core::keepalive::{Heart, KeepAlive};
/// use rpc_core::{Limits, Outbox, Outgoing};
///
/// let start = Instant::now();
/// let mut outbox = Outbox::new(&Limits::default());
/// let mut heart = Heart::new(KeepAlive::default(), start);
/// let (ping, _) = heart.next_timeout().unwrap();
/// assert_eq!(ping, start + Duration::from_secs(30));
/// assert_eq!(heart.beat(ping, false, &mut outbox), None);
/// assert!(matches!(outbox.pop(), Some(Outgoing::Ping(_))));
/// let late = ping + Duration::from_secs(15);
/// assert!(heart.beat(late, false, &mut outbox).is_some()); // close: nothing was heard
/// ```
#[derive(Debug)]
pub struct Heart {
    config: KeepAlive,
    timers: Timers<Timer>,
    /// A late deadline has been forgiven since the peer was heard last.
    forgiven: bool,
}

impl Heart {
    /// The state at the start of a connection: the first ping leaves after one interval.
    #[must_use]
    pub fn new(config: KeepAlive, now: Instant) -> Self {
        let mut heart = Self {
            config,
            timers: Timers::new(),
            forgiven: false,
        };
        heart.schedule(now);
        heart
    }

    /// Something arrived, whatever it is: the peer lives.
    pub fn heard(&mut self) {
        self.timers.stop(Timer::Pong);
        self.forgiven = false;
    }

    /// Stops every timer: the connection has ended.
    pub fn stop(&mut self) {
        self.timers.stop_all();
    }

    /// When [`beat`](Self::beat) has to be called next, and what for; `None` is never.
    #[must_use]
    pub fn next_timeout(&self) -> Option<(Instant, &'static str)> {
        self.timers.next_timeout()
    }

    /// Sends the ping that is due, if one is. If the peer is gone, says so: it is time to close with
    /// this reason. A side that reads nothing because its application is slow is `deaf`: it cannot
    /// hear a pong, so silence proves nothing.
    #[must_use]
    pub fn beat(&mut self, now: Instant, deaf: bool, outbox: &mut Outbox) -> Option<CloseReason> {
        while let Some(pulse) = self.pop_due(now, deaf) {
            match pulse {
                Pulse::Ping => outbox.ping(),
                Pulse::Dead => {
                    let after = self.config.pong_timeout;
                    return Some(CloseReason::KeepAlive { after });
                }
            }
        }
        None
    }

    /// What is due; call it until `None`.
    fn pop_due(&mut self, now: Instant, deaf: bool) -> Option<Pulse> {
        while let Some((at, _)) = self.timers.poll_timeout() {
            match self.timers.pop_expired(now)? {
                Timer::Pong if deaf => {
                    self.timers
                        .set(Timer::Pong, later(now, self.config.pong_timeout));
                }
                Timer::Pong => {
                    let late = now.saturating_duration_since(at);
                    let slept = self.config.interval.is_some_and(|interval| late > interval);
                    if self.forgiven || !slept {
                        self.stop();
                        return Some(Pulse::Dead);
                    }
                    self.forgiven = true;
                    self.timers
                        .set(Timer::Pong, later(now, self.config.pong_timeout));
                    self.schedule(now);
                    return Some(Pulse::Ping);
                }
                Timer::Ping => {
                    self.schedule(now);
                    // The answer to the last ping is still awaited: that one decides.
                    if self.timers.get(Timer::Pong).is_none() {
                        self.timers
                            .set(Timer::Pong, later(now, self.config.pong_timeout));
                        return Some(Pulse::Ping);
                    }
                }
            }
        }
        None
    }

    fn schedule(&mut self, now: Instant) {
        if let Some(interval) = self.config.interval {
            // An interval of zero would spin.
            self.timers.set(
                Timer::Ping,
                later(now, interval.max(Duration::from_millis(1))),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn heart() -> (Heart, Instant) {
        let now = Instant::now();
        (Heart::new(KeepAlive::default(), now), now)
    }

    #[test]
    fn a_ping_leaves_every_interval_while_the_peer_lives() {
        let (mut heart, start) = heart();
        for round in 1..5 {
            let at = start + INTERVAL * round;
            assert_eq!(heart.pop_due(at - SECOND, false), None);
            assert_eq!(heart.pop_due(at, false), Some(Pulse::Ping));
            assert_eq!(heart.pop_due(at, false), None);
            heart.heard();
        }
    }

    #[test]
    fn silence_after_a_ping_is_death() {
        let (mut heart, start) = heart();
        let ping = start + INTERVAL;
        assert_eq!(heart.pop_due(ping, false), Some(Pulse::Ping));
        assert_eq!(heart.pop_due(ping + PONG_TIMEOUT - SECOND, false), None);
        assert_eq!(heart.pop_due(ping + PONG_TIMEOUT, false), Some(Pulse::Dead));
        assert_eq!(heart.next_timeout(), None);
    }

    #[test]
    fn a_side_that_does_not_read_declares_nobody_dead() {
        let (mut heart, start) = heart();
        let ping = start + INTERVAL;
        assert_eq!(heart.pop_due(ping, true), Some(Pulse::Ping));
        let deaf = ping + PONG_TIMEOUT;
        assert_eq!(heart.pop_due(deaf, true), None);
        assert_eq!(heart.pop_due(deaf + PONG_TIMEOUT, false), Some(Pulse::Dead));
    }

    #[test]
    fn a_machine_that_slept_gives_one_fresh_grace() {
        let (mut heart, start) = heart();
        let ping = start + INTERVAL;
        assert_eq!(heart.pop_due(ping, false), Some(Pulse::Ping));
        let awake = ping + SECOND * 3600;
        assert_eq!(heart.pop_due(awake, false), Some(Pulse::Ping));
        assert_eq!(heart.pop_due(awake, false), None);
        assert_eq!(
            heart.pop_due(awake + SECOND * 3600, false),
            Some(Pulse::Dead)
        );
    }

    #[test]
    fn switched_off_it_has_no_deadline() {
        let heart = Heart::new(KeepAlive::off(), Instant::now());
        assert_eq!(heart.next_timeout(), None);
    }
}
