//! [`Output`]: lines to standard output, above the line that is being edited, if there is one.

use std::thread::{self, JoinHandle};

use examples::cli;
use rustyline::ExternalPrinter;
use tokio::sync::mpsc;

/// Lines that may wait for a slow reader.
const WAITING: usize = 256;

/// Writes lines in a thread of its own, so that a terminal that is stopped (Ctrl-S) stops nothing
/// else.
pub(crate) struct Output {
    lines: mpsc::Sender<String>,
    thread: JoinHandle<()>,
}

impl Output {
    pub(crate) fn new(printer: Option<Box<dyn ExternalPrinter + Send>>) -> Self {
        let (lines, mut waiting) = mpsc::channel::<String>(WAITING);
        let thread = thread::spawn(move || {
            let mut printer = printer;
            while let Some(line) = waiting.blocking_recv() {
                let printed = printer.as_mut().map(|it| it.print(format!("{line}\n")));
                // The editor has ended, or there is none.
                if !matches!(printed, Some(Ok(()))) {
                    printer = None;
                    cli::say(line);
                }
            }
        });
        Self { lines, thread }
    }

    /// Writes a line, after those before it.
    pub(crate) async fn line(&self, line: String) {
        // The thread ends only with this value.
        let _ = self.lines.send(line).await;
    }

    /// Waits until everything is written.
    pub(crate) async fn finish(self) {
        drop(self.lines);
        let _ = tokio::task::spawn_blocking(move || self.thread.join()).await;
    }
}
