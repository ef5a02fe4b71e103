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

    /// Returns whether the line ends the input.
    fn is_quit(&self) -> bool;
}
