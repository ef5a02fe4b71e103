//! [`Feed`]: the lines of a running proxy for a view or a printer, and [`open`], those of a file for a view.

use std::io::{self, BufRead, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use super::{Shared, add, end};
use crate::explain::Explainer;
use crate::lock;
use crate::recording::each_line;

/// Most lines that wait to be explained, and most of their bytes.
const MAX_WAITING: (usize, usize) = (20_000, 64 * 1024 * 1024);

/// A writer of a recording that also passes its lines on. It never waits for who takes them: lines that come too
/// fast are left out there, and counted. Each write has to be a line.
#[derive(Debug)]
pub(crate) struct Feed<W> {
    out: W,
    lines: SyncSender<(usize, String)>,
    waiting: Arc<AtomicUsize>,
    skipped: Arc<AtomicUsize>,
    n: usize,
}

/// What a feed passes on.
#[derive(Debug)]
pub(crate) enum Fed<'l> {
    /// The line with this number.
    Line(usize, &'l str),
    /// So many lines came too fast.
    Lost(usize),
    /// Nothing follows.
    End,
}

impl<W: Write> Feed<W> {
    /// Creates a feed, and the thread that passes its lines on. The thread ends with the feed.
    ///
    /// # Errors
    /// If the system has no more threads.
    pub(crate) fn new(
        out: W,
        mut take: impl FnMut(Fed<'_>) + Send + 'static,
    ) -> io::Result<(Self, JoinHandle<()>)> {
        let (lines, received) = sync_channel(MAX_WAITING.0);
        let (waiting, skipped) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (still, lost) = (Arc::clone(&waiting), Arc::clone(&skipped));
        let thread = thread::Builder::new()
            .name("view".to_owned())
            .spawn(move || {
                let received: Receiver<(usize, String)> = received;
                for (n, line) in received {
                    still.fetch_sub(line.len(), Ordering::Relaxed);
                    let lost = lost.swap(0, Ordering::Relaxed);
                    if lost > 0 {
                        take(Fed::Lost(lost));
                    }
                    take(Fed::Line(n, &line));
                }
                take(Fed::End);
            })?;
        let feed = Self {
            out,
            lines,
            waiting,
            skipped,
            n: 0,
        };
        Ok((feed, thread))
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

/// Fills a view with a recording, of which more may come unless it `is_complete`.
///
/// # Errors
/// If it cannot be read.
pub(crate) fn open(
    input: impl BufRead,
    mut explainer: Explainer,
    view: &Shared,
    is_complete: bool,
) -> io::Result<()> {
    each_line(input, |n, line| {
        add(view, &mut explainer, n, line);
        Ok(())
    })?;
    match is_complete {
        true => end(view, &explainer),
        false => lock(view).end(&[]),
    }
    Ok(())
}
