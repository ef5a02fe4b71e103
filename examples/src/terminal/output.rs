//! [`Output`]: lines to standard output, above the line that is being edited, if there is one.

use std::thread::{self, JoinHandle};

use tokio::sync::mpsc;

use super::Above;
use crate::cli;

/// Lines that may wait for a slow reader.
const WAITING: usize = 256;

/// Writes lines in a thread of its own, so that a terminal that is stopped (Ctrl-S) stops nothing
/// else.
#[derive(Debug)]
pub struct Output {
    lines: mpsc::Sender<String>,
    thread: JoinHandle<()>,
}

impl Output {
    /// Lines go above the line that is edited, or to standard output.
    #[must_use]
    pub fn new(above: Option<Above>) -> Self {
        let (lines, mut waiting) = mpsc::channel::<String>(WAITING);
        let thread = thread::spawn(move || {
            while let Some(line) = waiting.blocking_recv() {
                match &above {
                    Some(above) => above.print(line),
                    None => cli::say(line),
                }
            }
        });
        Self { lines, thread }
    }

    /// Writes a line, after those before it.
    ///
    /// # Cancel safety
    /// Dropping the future may leave the line out.
    pub async fn line(&self, line: String) {
        // The thread ends only with this value.
        let _ = self.lines.send(line).await;
    }

    /// Waits until everything is written.
    ///
    /// # Cancel safety
    /// Dropping the future stops the waiting only.
    pub async fn finish(self) {
        drop(self.lines);
        let _ = tokio::task::spawn_blocking(move || self.thread.join()).await;
    }
}
