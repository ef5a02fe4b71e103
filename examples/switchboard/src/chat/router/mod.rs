//! The router at a terminal: what people see of messages, and what programs read.

pub(crate) mod console;
pub(crate) mod notes;
mod numbers;
pub(crate) mod show;
