//! The limits of a tool loop.

use crate::limits::{MAX_CONSECUTIVE_TOOL_ERRORS, MAX_REPEATED_TOOL_CALLS, MAX_TOOL_CALL_DEPTH};

/// When a [`ToolLoop`](super::ToolLoop) ends by itself. The defaults are the specification's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolLoopConfig {
    /// How often the model is asked with tools. Default 25. With 0 it is asked without them.
    pub max_rounds: usize,
    /// How often one tool is run with the same arguments. Default 5. With 0 nothing is run.
    pub max_repeated: usize,
    /// How many errors in a row stop the loop. Default 3. 0 counts as 1.
    pub max_consecutive_errors: usize,
}

impl Default for ToolLoopConfig {
    fn default() -> Self {
        Self {
            max_rounds: MAX_TOOL_CALL_DEPTH,
            max_repeated: MAX_REPEATED_TOOL_CALLS,
            max_consecutive_errors: MAX_CONSECUTIVE_TOOL_ERRORS,
        }
    }
}

impl ToolLoopConfig {
    /// Sets [`max_rounds`](Self::max_rounds).
    #[must_use]
    pub const fn with_max_rounds(mut self, rounds: usize) -> Self {
        self.max_rounds = rounds;
        self
    }

    /// Sets [`max_repeated`](Self::max_repeated).
    #[must_use]
    pub const fn with_max_repeated(mut self, calls: usize) -> Self {
        self.max_repeated = calls;
        self
    }

    /// Sets [`max_consecutive_errors`](Self::max_consecutive_errors).
    #[must_use]
    pub const fn with_max_consecutive_errors(mut self, errors: usize) -> Self {
        self.max_consecutive_errors = errors;
        self
    }
}
