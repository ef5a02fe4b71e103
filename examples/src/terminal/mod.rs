//! [`Terminal`]: lines from a terminal with editing and history, or from a pipe, and lines to it.

mod editor;
mod history;
mod input;
mod output;
mod prompt;

pub(crate) use editor::write_above;
pub use editor::{Above, Terminal};
pub use input::{Input, open, plain};
pub use output::Output;

/// What a line asks a program for.
pub trait Line: Sized + Send + 'static {
    /// The longest line, in bytes.
    const MAX_BYTES: usize;

    /// Reads a line; `None` for one that asks for nothing.
    fn parse(text: &str) -> Option<Self>;

    /// What stands for a line that cannot be read, and why.
    fn wrong(why: String) -> Self;

    /// What Ctrl-C asks for.
    fn quit() -> Self;

    /// Whether it asks for the end: nothing is read after it.
    fn is_quit(&self) -> bool;
}
