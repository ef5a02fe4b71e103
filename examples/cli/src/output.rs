//! [`Stdout`]: standard output, and what is done where it cannot be written.

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::text::escaped_json;

/// Whether something could not be written.
static IS_LOST: AtomicBool = AtomicBool::new(false);
/// Whether the error is another one than a reader that went away.
static HAS_FAILED: AtomicBool = AtomicBool::new(false);

/// Standard output. The first failure is reported on standard error, and makes the command fail at its
/// end; a reader that went away (`| head`) does not count.
#[derive(Clone, Copy, Debug)]
pub struct Stdout;

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        note_lost(io::stdout().write_all(bytes)).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        note_lost(io::stdout().flush())
    }
}

/// Writes a line to standard output. In JSON, what could control a terminal is escaped; other lines
/// must be [`printable`](crate::text::printable).
pub fn print_line(line: impl Display) {
    let line = line.to_string() + "\n";
    let _ = Stdout.write_all(escaped_json(&line).as_bytes());
    let _ = Stdout.flush();
}

/// Writes a line to standard output like [`print_line`], for a server: whether anybody can read it does not
/// matter to what it does.
pub fn announce(line: impl Display) {
    let mut out = io::stdout().lock();
    let _ = note_lost(writeln!(out, "{line}").and_then(|()| out.flush()));
}

/// Tells on standard error if this was not written to standard output. One that is closed takes everything: the
/// standard library opens the null device in its place, as callers do who want no output.
fn note_lost(outcome: io::Result<()>) -> io::Result<()> {
    outcome.inspect_err(|error| {
        IS_LOST.store(true, Ordering::Relaxed);
        if error.kind() != io::ErrorKind::BrokenPipe && !HAS_FAILED.swap(true, Ordering::Relaxed) {
            super::ask(format_args!(
                "error: cannot write to standard output: {error}"
            ));
        }
    })
}

/// A command whose help has no values of environment variables, which may be secret.
fn without_values(command: clap::Command) -> clap::Command {
    let command = command.mut_args(|arg| arg.hide_env_values(true));
    command.mut_subcommands(without_values)
}

/// Parses the command line.
///
/// # Errors
/// The exit code of a program that has only printed its help or version. A mistake ends the program.
pub fn parse<P: clap::Parser>() -> Result<P, ExitCode> {
    let parsed = without_values(P::command()).try_get_matches();
    parsed
        .and_then(|mut it| P::from_arg_matches_mut(&mut it))
        .map_err(|text| {
            if text.use_stderr() {
                text.exit();
            }
            let _ = note_lost(text.print());
            super::finish(Ok(()))
        })
}

/// Returns whether something could not be written to standard output, so that nothing more need be.
#[must_use]
pub fn is_output_lost() -> bool {
    IS_LOST.load(Ordering::Relaxed)
}

/// Writes what is left, and returns whether all was written, or the reader went away.
pub(super) fn end_output() -> bool {
    let _ = note_lost(io::stdout().flush());
    !HAS_FAILED.load(Ordering::Relaxed)
}
