//! [`ChatView`]: a conversation at a terminal or in a pipe; [`open`]: the lines that people or programs write
//! into it.

mod chat_view;
mod command;
mod editor;
mod history;
mod input;
mod output;
mod painter;
mod plain;
mod prompt;
mod queue;
mod show;
mod view;

use std::mem::discriminant;

pub use chat_view::{ChatEvent, ChatView, PlanItem, PlanStatus};
pub use command::{Command, help, split_command, unknown};
pub use editor::Terminal;
pub(crate) use editor::write_above;
pub use input::{Input, is_interactive, is_watched, open, plain, read_all};
pub use output::Output;

/// A line of input to a program.
pub trait Line: Sized + Send + 'static {
    /// The longest line, in bytes.
    const MAX_BYTES: usize;

    /// Parses a line. Returns `None` for one without a request.
    fn parse(text: &str) -> Option<Self>;

    /// Returns the value for an invalid line, with the reason.
    fn wrong(why: String) -> Self;

    /// Returns the value for Ctrl-C.
    fn quit() -> Self;

    /// Returns whether the line ends the input. Default: what Ctrl-C gives does.
    fn is_quit(&self) -> bool {
        discriminant(self) == discriminant(&Self::quit())
    }

    /// Returns the value for Esc while something runs; `None` if nothing can be stopped.
    fn stop() -> Option<Self> {
        None
    }

    /// Returns the commands that begin with a slash.
    fn commands() -> &'static [Command] {
        &[]
    }
}

/// Whether lines are all that a terminal may get: its cursor cannot be moved, or a CI system keeps what it
/// shows.
fn is_plain() -> bool {
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    is_dumb || std::env::var_os("CI").is_some_and(|value| !value.is_empty())
}
