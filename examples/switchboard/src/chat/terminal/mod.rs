//! [`ChatView`]: a conversation at a terminal or in a pipe; [`open`]: the lines that people or programs write
//! into it.

mod chat_view;
mod command;
mod editor;
pub(crate) mod history;
mod input;
mod painter;
mod plain;
mod prompt;
mod queue;
mod view;

pub use chat_view::{ChatEvent, ChatView, PlanItem, PlanStatus};
pub use command::{Command, Line, Waits};
pub use editor::Terminal;
pub(crate) use editor::write_above;
pub(crate) use history::state_folder;
pub use input::{Input, Settings, is_interactive, is_watched, only, open, plain};

/// Shows events, each at once.
trait Show: Send {
    /// Shows an event.
    fn show(&mut self, event: ChatEvent);
}

/// Whether lines are all that a terminal may get: its cursor cannot be moved, or a CI system keeps what it
/// shows.
fn is_plain() -> bool {
    crate::cli::is_dumb() || std::env::var_os("CI").is_some_and(|value| !value.is_empty())
}
