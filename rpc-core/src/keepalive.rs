//! [`KeepAlive`]: WebSocket pings, and when a silent peer counts as gone; [`Heart`] for machines.

use std::time::{Duration, Instant};

use crate::timers::{TimerKind, Timers, later};

const INTERVAL: Duration = Duration::from_secs(30);
const PONG_TIMEOUT: Duration = Duration::from_secs(15);

/// How a side finds out that its peer is gone.
///
/// Every `interval` it sends a WebSocket ping. *Anything* that arrives counts as life; if nothing
/// arrives within `pong_timeout` of a ping, the connection is closed. A deadline that is handled
/// more than one interval late, because the machine slept, gives one fresh ping and one fresh
/// `pong_timeout` first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeepAlive {
    /// How often to ping; `None` is never. Default 30 s.
    pub interval: Option<Duration>,
    /// How long to wait for life after a ping. Default 15 s.
    pub pong_timeout: Duration,
}

impl Default for KeepAlive {
    fn default() -> Self {
        Self {
            interval: Some(INTERVAL),
            pong_timeout: PONG_TIMEOUT,
        }
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

    /// Sets [`interval`](Self::interval).
    #[must_use]
    pub const fn with_interval(mut self, interval: Option<Duration>) -> Self {
        self.interval = interval;
        self
    }

    /// Sets [`pong_timeout`](Self::pong_timeout).
    #[must_use]
    pub const fn with_pong_timeout(mut self, timeout: Duration) -> Self {
        self.pong_timeout = timeout;
        self
    }
}

/// The timers of a [`Heart`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Beat {
    /// No life since the last ping.
    Pong,
    /// The next ping.
    Ping,
}

impl TimerKind for Beat {
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

/// What a side has to do now. Exhaustive: a machine has to do something about each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pulse {
    /// Send a ping.
    Ping,
    /// Close: the peer is gone.
    Dead,
}

/// The state of [`KeepAlive`] on one connection, for use inside a machine.
///
/// ```
/// use std::time::{Duration, Instant};
/// use rpc_core::keepalive::{Heart, KeepAlive, Pulse};
///
/// let start = Instant::now();
/// let mut heart = Heart::new(KeepAlive::default(), start);
/// let (ping, _) = heart.poll_timeout().unwrap();
/// assert_eq!(ping, start + Duration::from_secs(30));
/// assert_eq!(heart.pop_due(ping, false), Some(Pulse::Ping));
/// assert_eq!(heart.pop_due(ping + Duration::from_secs(15), false), Some(Pulse::Dead));
/// ```
#[derive(Debug)]
pub struct Heart {
    config: KeepAlive,
    timers: Timers<Beat>,
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
        self.timers.stop(Beat::Pong);
        self.forgiven = false;
    }

    /// Stops every timer: the connection has ended.
    pub fn stop(&mut self) {
        self.timers.stop_all();
    }

    /// When [`pop_due`](Self::pop_due) has to be called next, and why; `None` is never.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<(Instant, Beat)> {
        self.timers.poll_timeout()
    }

    /// What is due; call it until `None`. A side that reads nothing because its application is
    /// slow is `deaf`: it cannot hear a pong, so silence proves nothing.
    pub fn pop_due(&mut self, now: Instant, deaf: bool) -> Option<Pulse> {
        while let Some((at, _)) = self.timers.poll_timeout() {
            match self.timers.pop_expired(now)? {
                Beat::Pong if deaf => {
                    self.timers
                        .set(Beat::Pong, later(now, self.config.pong_timeout));
                }
                Beat::Pong => {
                    let late = now.saturating_duration_since(at);
                    let slept = self.config.interval.is_some_and(|interval| late > interval);
                    if self.forgiven || !slept {
                        self.stop();
                        return Some(Pulse::Dead);
                    }
                    self.forgiven = true;
                    self.timers
                        .set(Beat::Pong, later(now, self.config.pong_timeout));
                    self.schedule(now);
                    return Some(Pulse::Ping);
                }
                Beat::Ping => {
                    self.schedule(now);
                    // The answer to the last ping is still awaited: that one decides.
                    if self.timers.get(Beat::Pong).is_none() {
                        self.timers
                            .set(Beat::Pong, later(now, self.config.pong_timeout));
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
                Beat::Ping,
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
        assert_eq!(heart.poll_timeout(), None);
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
        assert_eq!(heart.poll_timeout(), None);
    }
}
