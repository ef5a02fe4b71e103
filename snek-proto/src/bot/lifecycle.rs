//! [`Lifecycle`]: the states of a bot (Snek specification, appendix C).
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

    /// Returns the specification's name, such as `SHUTTING_DOWN`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Initializing => "INITIALIZING",
            Self::Initialized => "INITIALIZED",
            Self::Connecting => "CONNECTING",
            Self::Connected => "CONNECTED",
            Self::Running => "RUNNING",
            Self::ShuttingDown => "SHUTTING_DOWN",
            Self::Shutdown => "SHUTDOWN",
            Self::Error => "ERROR",
        }
    }

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

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A transition that is not allowed. The state is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{from} cannot become {to}")]
pub struct IllegalTransition {
    /// The state.
    pub from: State,
    /// The state that was requested.
    pub to: State,
}

/// The state of a bot, and its transitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifecycle {
    state: State,
}

impl Default for Lifecycle {
    fn default() -> Self {
        Self::new()
    }
}

impl Lifecycle {
    /// Creates the lifecycle of a bot that is being set up.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            state: State::Initializing,
        }
    }

    /// Returns the state.
    #[must_use]
    pub const fn state(&self) -> State {
        self.state
    }

    /// Changes the state.
    ///
    /// # Errors
    /// [`IllegalTransition`] if the state cannot become `to`; nothing changes.
    pub const fn transition(&mut self, to: State) -> Result<(), IllegalTransition> {
        if !self.state.may_become(to) {
            return Err(IllegalTransition {
                from: self.state,
                to,
            });
        }
        self.state = to;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(steps: &[State]) -> Result<State, IllegalTransition> {
        let mut bot = Lifecycle::new();
        for step in steps {
            bot.transition(*step)?;
        }
        Ok(bot.state())
    }

    #[test]
    fn a_bot_goes_through_its_states_in_order() {
        assert_eq!(walk(&State::ALL[1..7]), Ok(State::Shutdown));
    }

    #[test]
    fn a_lost_connection_and_a_failed_attempt_lead_to_connecting() {
        use State::{Connected, Connecting, Initialized, Running};
        let steps = [
            Initialized,
            Connecting,
            Connecting,
            Connected,
            Running,
            Connecting,
            Connected,
        ];
        assert_eq!(walk(&steps), Ok(Connected));
    }

    #[test]
    fn every_state_but_the_last_may_fail_or_shut_down() {
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

    #[test]
    fn an_illegal_step_changes_nothing() {
        let mut bot = Lifecycle::new();
        let error = bot.transition(State::Running).unwrap_err();
        assert_eq!(error.to_string(), "INITIALIZING cannot become RUNNING");
        assert_eq!(bot.state(), State::Initializing);
    }
}
