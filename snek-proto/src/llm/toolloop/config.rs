//! The limits of a tool loop.

use std::sync::{Arc, Mutex};

use rpc_core::breaker::CircuitBreaker;

use crate::limits::{MAX_CONSECUTIVE_TOOL_ERRORS, MAX_REPEATED_TOOL_CALLS, MAX_TOOL_CALL_DEPTH};

rpc_core::config! {
    /// The limits of a [`ToolLoop`](super::ToolLoop). The defaults are the specification's.
    #[derive(Clone, Debug)]
    pub struct ToolLoopConfig {
        /// How often the model is asked with tools. Default 25. With 0 it is only asked without
        /// them.
        pub max_rounds: usize = MAX_TOOL_CALL_DEPTH,
        /// How often one tool runs with the same arguments. Default 5. With 0 no tool runs.
        pub max_repeated: usize = MAX_REPEATED_TOOL_CALLS,
        /// How many errors in a row stop the loop. Default 3. 0 counts as 1.
        pub max_consecutive_errors: usize = MAX_CONSECUTIVE_TOOL_ERRORS,
        /// Asked before each run of a tool. The loops of one configuration and its clones share it,
        /// so tools that keep failing are not called for a while.
        pub breaker: Arc<Mutex<CircuitBreaker>> = Arc::default(),
    }
}
