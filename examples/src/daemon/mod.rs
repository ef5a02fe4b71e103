//! A coding agent on one folder: the folder that cannot be left, what can be done in it, and the agent that
//! does it with a language model.

pub mod command;
pub mod diff;
mod problem;
pub mod workspace;

pub use problem::{Code, Problem};
pub use workspace::Workspace;
