//! A coding agent for one folder: the folder, which it cannot leave, the tools, and the agent with
//! its language model.

mod agent;
pub mod ask_first;
pub mod checklist;
pub mod command;
mod diff;
pub mod git;
mod tool_error;
mod tool_output;
pub mod toolbox;
pub mod worker;
pub mod workspace;

pub use tool_error::{Code, ToolError};
pub use toolbox::Toolbox;
pub use worker::Worker;
pub use workspace::Workspace;
