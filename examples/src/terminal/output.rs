//! [`Output`]: lines to standard output, above the edited line, if there is one.

use std::thread::{self, JoinHandle};

use tokio::sync::mpsc;

use super::Above;
use crate::cli;

/// Most lines waiting for a slow reader.
const WAITING: usize = 256;

#[derive(Debug)]
enum Written {
    Line(String),
    Status { label: String, status: String },
}

/// A writer of lines in its own thread, so that a stopped terminal (Ctrl-S) stops nothing else.
#[derive(Debug)]
pub struct Output {
    lines: mpsc::Sender<Written>,
    thread: JoinHandle<()>,
}

impl Output {
    /// Creates a writer above the edited line, or to standard output.
    #[must_use]
    pub fn new(above: Option<Above>) -> Self {
        let (lines, mut waiting) = mpsc::channel::<Written>(WAITING);
        let thread = thread::spawn(move || {
            while let Some(written) = waiting.blocking_recv() {
                match (written, &above) {
                    (Written::Line(line), Some(above)) => above.print(line),
                    (Written::Line(line), None) => cli::say(line),
                    (Written::Status { label, status }, Some(above)) => above.show(label, status),
                    (Written::Status { .. }, None) => {}
                }
            }
        });
        Self { lines, thread }
    }

    /// Writes a line, after earlier ones.
    ///
    /// # Cancel safety
    /// Dropping the future may lose the line.
    pub async fn line(&self, line: String) {
        // The thread ends only with this value.
        let _ = self.lines.send(Written::Line(line)).await;
    }

    /// Sets the prefix of the edited line, and the status above it, which is not kept on the screen. Does
    /// nothing without an edited line.
    ///
    /// # Cancel safety
    /// Dropping the future may lose the change.
    pub async fn status(&self, label: String, status: String) {
        let _ = self.lines.send(Written::Status { label, status }).await;
    }

    /// Waits until everything is written.
    ///
    /// # Cancel safety
    /// Dropping the future only stops waiting.
    pub async fn finish(self) {
        drop(self.lines);
        let _ = tokio::task::spawn_blocking(move || self.thread.join()).await;
    }
}
