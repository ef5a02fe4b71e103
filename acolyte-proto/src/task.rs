//! Tasks: what a server remembers of the chats that it accepted.

pub use crate::frame::{Task, TaskState};
