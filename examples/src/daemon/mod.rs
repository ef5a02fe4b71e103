//! A coding agent on one folder: the folder that cannot be left, what can be done in it, and the agent that
//! does it with a language model.

mod agent;
pub mod checklist;
pub mod command;
pub mod diff;
mod problem;
mod shown;
pub mod toolbox;
pub mod worker;
pub mod workspace;

pub use problem::{Code, Problem};
pub use toolbox::Toolbox;
pub use worker::Worker;
pub use workspace::Workspace;
