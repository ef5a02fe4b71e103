//! [`KeepAlive`]: WebSocket pings, and when a silent peer counts as dead.

use std::time::Duration;

use crate::Instant;
use crate::error::CloseReason;
use crate::outbox::Outbox;
use crate::timers::{later, sooner};

const INTERVAL: Duration = Duration::from_secs(30);
const PONG_TIMEOUT: Duration = Duration::from_secs(15);
/// Most pings without an answer, however alive the peer is otherwise.
const MAX_UNANSWERED: u8 = 10;

crate::config! {
    /// How a side detects that its peer is gone.
    ///
    /// It sends a WebSocket ping every `interval`. *Anything* that arrives is a sign of life; if
    /// nothing arrives within `pong_timeout` of a ping, it closes the connection. A deadline that
    /// is handled more than one interval late, because the machine slept, first gives one fresh
    /// ping and one fresh `pong_timeout`.
    ///
    /// A server is stricter. Before its client has logged in, only pongs count. Then all frames
    /// do, and so do those that it sends itself to a client which has answered no ping on this
    /// connection: something on the way may swallow them. But after ten unanswered pings in a row,
    /// in which the client has sent nothing but pings, it closes: eleven intervals at most.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct KeepAlive {
        /// How often to ping; `None` means never. Default 30 s.
        pub interval: Option<Duration> = Some(INTERVAL),
        /// How long to wait for a sign of life after a ping. Default 15 s.
        pub pong_timeout: Duration = PONG_TIMEOUT,
    }
}

impl KeepAlive {
    /// Returns pings at this interval, and this long for each pong.
    #[must_use]
    pub const fn every(interval: Duration, pong_timeout: Duration) -> Self {
        Self {
            interval: Some(interval),
            pong_timeout,
        }
    }

    /// Returns a configuration without pings: a silent peer is never detected.
    #[must_use]
    pub const fn off() -> Self {
        Self {
            interval: None,
            pong_timeout: PONG_TIMEOUT,
        }
    }
}

/// The state of [`KeepAlive`] on one connection. The machine keeps the configuration, so that an
/// idle connection does not hold a second copy.
#[derive(Debug, Default)]
pub(crate) struct KeepaliveTimers {
    ping_at: Option<Instant>,
    /// When the peer counts as dead if nothing arrives.
    gone_at: Option<Instant>,
    /// Whether one late deadline was forgiven since the last sign of life.
    forgiven: bool,
    /// Pings since the last answer.
    unanswered: u8,
    /// Whether a pong has come on this connection.
    has_ponged: bool,
}

impl KeepaliveTimers {
    /// Starts the timers; the first ping leaves after one interval.
    pub(crate) fn start(&mut self, config: &KeepAlive, now: Instant) {
        // An interval of zero would spin.
        self.ping_at = config
            .interval
            .map(|interval| later(now, interval.max(Duration::from_millis(1))));
    }

    /// Closes the connection if nothing arrives within `pong_timeout` from now, without sending a
    /// ping.
    pub(crate) fn expect(&mut self, config: &KeepAlive, now: Instant) {
        let after = config.pong_timeout.max(Duration::from_millis(1));
        self.gone_at = Some(later(now, after));
    }

    /// Moves the deadline to `until` at the earliest: silence before that proves nothing.
    pub(crate) fn postpone(&mut self, until: Instant) {
        self.gone_at = self.gone_at.map(|at| at.max(until));
    }

    /// Notes a sign of life.
    #[inline]
    pub(crate) const fn on_input(&mut self) {
        self.gone_at = None;
        self.forgiven = false;
    }

    /// Notes a pong, or a frame that says as much.
    #[inline]
    pub(crate) const fn answered(&mut self, is_pong: bool) {
        self.unanswered = 0;
        self.has_ponged |= is_pong;
    }

    /// Notes that a frame leaves: a sign of life where the peer's pongs do not arrive.
    pub(crate) const fn sent(&mut self) {
        if !self.has_ponged {
            self.gone_at = None;
        }
    }

    /// Stops every timer: the connection has ended.
    pub(crate) const fn stop(&mut self) {
        self.ping_at = None;
        self.gone_at = None;
    }

    /// Returns when [`check`](Self::check) has to be called next and what for; `None` means never.
    pub(crate) fn next_timeout(&self) -> Option<(Instant, &'static str)> {
        let what = match self.ping_at {
            Some(_) => "pong",
            None => "silence",
        };
        let gone = self.gone_at.map(|at| (at, what));
        sooner(gone, self.ping_at.map(|at| (at, "heartbeat")))
    }

    /// Queues the ping that is due, if any. Returns the reason to close with if the peer is gone.
    /// With `reads_paused` no pong can be read, so silence proves nothing.
    pub(crate) fn check(
        &mut self,
        config: &KeepAlive,
        reads_paused: bool,
        now: Instant,
        outbox: &mut Outbox,
    ) -> Option<CloseReason> {
        if let Some(at) = self.gone_at.filter(|at| *at <= now) {
            let late = now.saturating_duration_since(at);
            let slept = late > config.interval.unwrap_or(config.pong_timeout);
            if !reads_paused && (self.forgiven || !slept) {
                self.stop();
                let after = config.pong_timeout;
                return Some(CloseReason::KeepAlive { after });
            }
            self.expect(config, now);
            if !reads_paused {
                self.forgiven = true;
                self.start(config, now);
                if self.ping_at.is_some() {
                    outbox.ping();
                }
            }
        }
        if self.ping_at.is_some_and(|at| at <= now) {
            self.start(config, now);
            // The answer to the last ping is still awaited: that one decides.
            if self.gone_at.is_none() {
                if self.unanswered >= MAX_UNANSWERED {
                    self.stop();
                    let after = config.interval.unwrap_or_default();
                    return Some(CloseReason::KeepAlive {
                        after: after.saturating_mul(self.unanswered.into()),
                    });
                }
                self.unanswered += u8::from(!reads_paused);
                self.expect(config, now);
                outbox.ping();
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[derive(Debug, PartialEq)]
    enum Due {
        Nothing,
        Ping,
        Gone,
    }

    struct Harness {
        config: KeepAlive,
        timers: KeepaliveTimers,
        outbox: Outbox,
    }

    impl Harness {
        fn new(config: KeepAlive, now: Instant) -> Self {
            let mut timers = KeepaliveTimers::default();
            timers.start(&config, now);
            Self {
                config,
                timers,
                outbox: Outbox::default(),
            }
        }

        fn check(&mut self, now: Instant, reads_paused: bool) -> Due {
            let timers = &mut self.timers;
            let gone = timers.check(&self.config, reads_paused, now, &mut self.outbox);
            match (gone, self.outbox.pop()) {
                (Some(CloseReason::KeepAlive { after }), None) => {
                    assert_eq!(after, self.config.pong_timeout);
                    Due::Gone
                }
                (None, Some(_)) => Due::Ping,
                (None, None) => Due::Nothing,
                other => panic!("{other:?}"),
            }
        }
    }

    fn line() -> (Harness, Instant) {
        let now = Instant::now();
        (Harness::new(KeepAlive::default(), now), now)
    }

    #[test]
    fn a_ping_leaves_every_interval_while_the_peer_lives() {
        let (mut line, start) = line();
        for round in 1..5 {
            let at = start + INTERVAL * round;
            assert_eq!(line.timers.next_timeout(), Some((at, "heartbeat")));
            assert_eq!(line.check(at - SECOND, false), Due::Nothing);
            assert_eq!(line.check(at, false), Due::Ping);
            assert_eq!(line.check(at, false), Due::Nothing);
            line.timers.on_input();
        }
    }

    #[test]
    fn silence_after_a_ping_disconnects() {
        let (mut line, start) = line();
        let ping = start + INTERVAL;
        assert_eq!(line.check(ping, false), Due::Ping);
        let late = ping + PONG_TIMEOUT;
        assert_eq!(line.timers.next_timeout(), Some((late, "pong")));
        assert_eq!(line.check(late - SECOND, false), Due::Nothing);
        assert_eq!(line.check(late, false), Due::Gone);
        assert_eq!(line.timers.next_timeout(), None);
    }

    #[test]
    fn silence_is_not_detected_while_reading_is_paused() {
        let (mut line, start) = line();
        let ping = start + INTERVAL;
        assert_eq!(line.check(ping, true), Due::Ping);
        let paused = ping + PONG_TIMEOUT;
        assert_eq!(line.check(paused, true), Due::Nothing);
        assert_eq!(line.check(paused + PONG_TIMEOUT, false), Due::Gone);
    }

    #[test]
    fn waking_from_sleep_gives_one_fresh_grace() {
        let (mut line, start) = line();
        let ping = start + INTERVAL;
        assert_eq!(line.check(ping, false), Due::Ping);
        let awake = ping + SECOND * 3600;
        assert_eq!(line.check(awake, false), Due::Ping);
        assert_eq!(line.check(awake, false), Due::Nothing);
        assert_eq!(line.check(awake + SECOND * 3600, false), Due::Gone);
    }

    #[test]
    fn without_pings_silence_alone_disconnects() {
        let start = Instant::now();
        let config = KeepAlive {
            pong_timeout: SECOND * 75,
            ..KeepAlive::off()
        };
        let mut line = Harness::new(config, start);
        line.timers.expect(&config, start);
        let late = start + SECOND * 75;
        assert_eq!(line.timers.next_timeout(), Some((late, "silence")));
        assert_eq!(line.check(late, true), Due::Nothing);
        let awake = late + SECOND * 3600;
        assert_eq!(line.check(awake, false), Due::Nothing);
        assert_eq!(line.check(awake + SECOND * 75, false), Due::Gone);
    }

    #[test]
    fn a_timeout_of_zero_never_spins() {
        let start = Instant::now();
        let config = KeepAlive::every(Duration::ZERO, Duration::ZERO);
        let mut line = Harness::new(config, start);
        let mut now = start;
        for _ in 0..10 {
            let (next, _) = line.timers.next_timeout().unwrap();
            assert!(next > now);
            now = next;
            assert_ne!(line.check(now, true), Due::Gone);
        }
    }

    #[test]
    fn a_disabled_keepalive_has_no_deadline() {
        let line = Harness::new(KeepAlive::off(), Instant::now());
        assert_eq!(line.timers.next_timeout(), None);
    }
}
