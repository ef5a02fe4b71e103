//! [`Feed`]: what fills a view: the lines of a running proxy, or of a file.

use std::io::{self, BufRead, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use super::{Shared, add, end, lock};
use crate::explain::Explainer;
use crate::recording::each_line;

/// Most lines that wait to be explained, and most of their bytes.
const MAX_WAITING: (usize, usize) = (20_000, 64 * 1024 * 1024);

/// A writer of a recording that also fills a view. It never waits for the view: lines that come too
/// fast for it are left out there, and counted. Each write has to be a line.
#[derive(Debug)]
pub struct Feed<W> {
    out: W,
    lines: SyncSender<(usize, String)>,
    waiting: Arc<AtomicUsize>,
    skipped: Arc<AtomicUsize>,
    n: usize,
}

impl<W: Write> Feed<W> {
    /// Creates a feed, and the thread that explains its lines to the view. The thread ends with the
    /// feed.
    ///
    /// # Errors
    /// If the system has no more threads.
    pub fn new(out: W, mut explainer: Explainer, view: Shared) -> io::Result<Self> {
        let (lines, received) = sync_channel(MAX_WAITING.0);
        let (waiting, skipped) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (still, lost) = (Arc::clone(&waiting), Arc::clone(&skipped));
        thread::Builder::new()
            .name("view".to_owned())
            .spawn(move || {
                let received: Receiver<(usize, String)> = received;
                for (n, line) in received {
                    still.fetch_sub(line.len(), Ordering::Relaxed);
                    lock(&view).dropped += lost.swap(0, Ordering::Relaxed);
                    add(&view, &mut explainer, n, &line);
                }
                end(&view, &explainer);
            })?;
        Ok(Self {
            out,
            lines,
            waiting,
            skipped,
            n: 0,
        })
    }
}

impl<W: Write> Write for Feed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write_all(bytes)?;
        self.n += 1;
        let line = String::from_utf8_lossy(bytes).into_owned();
        let len = line.len();
        let has_room = self.waiting.load(Ordering::Relaxed) + len <= MAX_WAITING.1;
        self.waiting.fetch_add(len, Ordering::Relaxed);
        if !has_room || self.lines.try_send((self.n, line)).is_err() {
            self.waiting.fetch_sub(len, Ordering::Relaxed);
            self.skipped.fetch_add(1, Ordering::Relaxed);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Fills a view with a whole recording.
///
/// # Errors
/// If it cannot be read.
pub fn open(input: impl BufRead, mut explainer: Explainer, view: &Shared) -> io::Result<()> {
    each_line(input, |n, line| {
        add(view, &mut explainer, n, line);
        Ok(())
    })?;
    end(view, &explainer);
    Ok(())
}
