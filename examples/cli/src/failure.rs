//! [`Failure`]: the end of a command that did not do what it should, and its exit code.

use std::fmt::{self, Display};
use std::process::ExitCode;

use rpc_core::net::ws::ConnectError;
use serde_json::json;

use super::print_line;

/// The exit codes of every command, for help texts.
pub const EXIT_CODES: &str = "\
Exit codes: 0 success, 1 failure, 2 wrong usage (options, environment or configuration), 3 no server or
refused by it: nothing was done, 130 aborted.";

/// The exit code for a failure at run time.
const FAILURE: u8 = 1;
/// The exit code for a wrong command line, environment or configuration.
pub const USAGE: u8 = 2;
/// The exit code if the peer is absent or refuses.
pub const REFUSED: u8 = 3;
/// The exit code after an abort by the user, as shells report Ctrl-C.
const ABORTED: u8 = 130;

/// An error message with an exit code.
#[derive(Debug)]
pub struct Failure {
    code: u8,
    message: String,
}

impl Failure {
    fn with_code(code: u8, message: impl Display) -> Self {
        let message = message.to_string();
        Self { code, message }
    }

    /// Returns the exit code.
    #[must_use]
    pub const fn code(&self) -> u8 {
        self.code
    }

    /// Creates a failure of the program.
    pub fn new(message: impl Display) -> Self {
        Self::with_code(FAILURE, message)
    }

    /// Creates a failure because the peer is absent or refuses. Nothing was done.
    pub fn refused(message: impl Display) -> Self {
        Self::with_code(REFUSED, message)
    }

    /// Creates a failure because the user aborted it.
    #[must_use]
    pub fn aborted() -> Self {
        Self::aborted_with("aborted")
    }

    /// Creates a failure because the user aborted it, with what that has cut off.
    pub fn aborted_with(message: impl Display) -> Self {
        Self::with_code(ABORTED, message)
    }

    /// Creates a failure because of wrong usage. The message says what is right.
    pub fn usage(message: impl Display) -> Self {
        Self::with_code(USAGE, message)
    }

    /// Prints the message as a line of JSON to standard output, if `json` is wanted.
    pub fn report(&self, json: bool) {
        if json {
            print_line(json!({ "event": "error", "message": self.message }));
        }
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        Self::usage(match error {
            ConnectError::Insecure { .. } => {
                format!("{error}: use wss:// or https://, or allow it with --insecure")
            }
            error => error.to_string(),
        })
    }
}

/// Ends a program: prints nothing on success, otherwise `error: ...`, and returns the exit code.
pub fn finish(outcome: Result<(), Failure>) -> ExitCode {
    let is_written = super::output::end_output();
    match outcome {
        Ok(()) if is_written => ExitCode::SUCCESS,
        // That was reported when it happened.
        Ok(()) => ExitCode::from(FAILURE),
        Err(Failure { code, message }) => {
            let message = crate::text::printable_lines(&message);
            super::ask(format_args!("error: {message}"));
            ExitCode::from(code)
        }
    }
}
