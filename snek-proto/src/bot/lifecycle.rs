//! [`State`]: the states of a bot (Snek specification, appendix C).
//!
//! ```text
//! INITIALIZING → INITIALIZED → CONNECTING → CONNECTED → RUNNING → SHUTTING_DOWN → SHUTDOWN
//!                              ↑  ↺                       │
//!                              └────── connection lost ───┘
//! any state before SHUTDOWN → ERROR or SHUTTING_DOWN; ERROR → SHUTTING_DOWN
//! ```

use std::fmt;

/// A state of a bot. Exhaustive: the specification's list is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Sessions and background tasks are being set up.
    Initializing,
    /// Set up, not connecting yet.
    Initialized,
    /// Connecting or reconnecting.
    Connecting,
    /// Logged in, and the channels are known.
    Connected,
    /// Messages are being processed.
    Running,
    /// Ending gracefully.
    ShuttingDown,
    /// Everything is released. Nothing follows.
    Shutdown,
    /// Setup failed, or a fatal error occurred while running.
    Error,
}

impl State {
    /// Every state.
    pub const ALL: [Self; 8] = [
        Self::Initializing,
        Self::Initialized,
        Self::Connecting,
        Self::Connected,
        Self::Running,
        Self::ShuttingDown,
        Self::Shutdown,
        Self::Error,
    ];

    /// Returns whether `next` may follow this state.
    #[must_use]
    pub const fn may_become(self, next: Self) -> bool {
        match next {
            Self::Initializing => false,
            Self::Initialized => matches!(self, Self::Initializing),
            // A failed attempt is followed by the next one; a lost connection by a new one.
            Self::Connecting => {
                matches!(self, Self::Initialized | Self::Connecting | Self::Running)
            }
            Self::Connected => matches!(self, Self::Connecting),
            Self::Running => matches!(self, Self::Connected),
            Self::ShuttingDown => !matches!(self, Self::ShuttingDown | Self::Shutdown),
            Self::Shutdown => matches!(self, Self::ShuttingDown),
            Self::Error => !matches!(self, Self::Error | Self::Shutdown),
        }
    }
}

/// Writes the specification's name, such as `SHUTTING_DOWN`.
impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Initializing => "INITIALIZING",
            Self::Initialized => "INITIALIZED",
            Self::Connecting => "CONNECTING",
            Self::Connected => "CONNECTED",
            Self::Running => "RUNNING",
            Self::ShuttingDown => "SHUTTING_DOWN",
            Self::Shutdown => "SHUTDOWN",
            Self::Error => "ERROR",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bot_goes_through_its_states_in_order() {
        for step in State::ALL[..7].windows(2) {
            assert!(step[0].may_become(step[1]), "{step:?}");
        }
        assert!(!State::Initializing.may_become(State::Running));
    }

    #[test]
    fn a_lost_connection_and_a_failed_attempt_lead_to_connecting() {
        assert!(State::Running.may_become(State::Connecting));
        assert!(State::Connecting.may_become(State::Connecting));
    }

    #[test]
    fn every_state_but_the_last_can_fail_or_shut_down() {
        for state in State::ALL {
            let last = state == State::Shutdown;
            assert_eq!(
                state.may_become(State::Error),
                !last && state != State::Error
            );
            assert_eq!(
                state.may_become(State::ShuttingDown),
                !last && state != State::ShuttingDown
            );
            assert!(!State::Shutdown.may_become(state));
        }
    }
}
