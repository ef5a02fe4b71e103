//! [`Alarm`]: wakes at a time more exactly than the timers of tokio, which count milliseconds.

use std::io;
#[cfg(target_os = "linux")]
use tokio::io::AsyncReadExt as _;
use tokio::time::Instant;

/// A timer. On Linux it is exact to some ten microseconds, elsewhere to a millisecond.
#[derive(Debug)]
pub(super) struct Alarm {
    #[cfg(target_os = "linux")]
    timer: tokio::net::unix::pipe::Receiver,
}

#[cfg(target_os = "linux")]
impl Alarm {
    pub(super) fn new() -> io::Result<Self> {
        use rustix::time::{TimerfdClockId, TimerfdFlags, timerfd_create};
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        // A timer is read as a pipe is, and `AsyncFd` has no safe constructor any more.
        let timer = tokio::net::unix::pipe::Receiver::from_owned_fd_unchecked(timer)?;
        Ok(Self { timer })
    }

    /// Waits until then.
    pub(super) async fn at(&mut self, time: Instant) -> io::Result<()> {
        use rustix::time::{Itimerspec, TimerfdTimerFlags, Timespec, timerfd_settime};
        const NONE: Timespec = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        loop {
            let left = time.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            let time = Itimerspec {
                it_interval: NONE,
                it_value: Timespec::try_from(left).map_err(io::Error::other)?,
            };
            timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &time)?;
            // Room for more than there is: a read that fills it would be followed by one in vain.
            let _bytes = self.timer.read(&mut [0; 16]).await?;
        }
    }
}

#[cfg(not(target_os = "linux"))]
impl Alarm {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {})
    }

    /// Waits until then.
    pub(super) async fn at(&mut self, time: Instant) -> io::Result<()> {
        tokio::time::sleep_until(time).await;
        Ok(())
    }
}
