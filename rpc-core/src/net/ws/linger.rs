//! [`Linger`]: how long a peer that violated the protocol is still read.

use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// Bytes read at once, onto the stack.
const READ: usize = 16 * 1024;
/// How often the peer is read before other tasks run.
const READS_AT_ONCE: usize = 64;
/// How long a peer that got the reason must be silent to count as quiet.
const QUIET: Duration = Duration::from_millis(200);
/// How long it then has to close the connection.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long it may go on sending.
const LONGEST: Duration = Duration::from_secs(5);

/// Discards what the peer sends until it is quiet, then ends this side's sending half and waits for
/// the peer to close. Not the other way round: some libraries that see the end of the connection
/// while they send never read what came before it.
pub(super) struct Linger {
    /// The final deadline.
    until: Instant,
    /// How long the peer may be silent.
    patience: Duration,
    timer: Pin<Box<Sleep>>,
    is_shut: bool,
}

impl Linger {
    pub(super) fn new() -> Self {
        Self {
            until: Instant::now() + LONGEST,
            patience: QUIET,
            timer: Box::pin(sleep(QUIET)),
            is_shut: false,
        }
    }

    /// Returns ready once the connection may be dropped. `is_flushed` says whether the peer can know
    /// the reason.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        socket: &mut (impl AsyncRead + AsyncWrite + Unpin),
        is_flushed: bool,
    ) -> Poll<()> {
        for _ in 0..READS_AT_ONCE {
            let mut memory = [MaybeUninit::uninit(); READ];
            let mut read = ReadBuf::uninit(&mut memory);
            match Pin::new(&mut *socket).poll_read(cx, &mut read) {
                Poll::Ready(Ok(())) if !read.filled().is_empty() && self.goes_on() => {}
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => {
                    ready!(self.timer.as_mut().poll(cx));
                    if self.is_shut || !is_flushed {
                        return Poll::Ready(());
                    }
                    self.is_shut = true;
                    self.patience = PATIENCE;
                    self.goes_on();
                    let _ = Pin::new(&mut *socket).poll_shutdown(cx);
                }
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Notes that the peer has sent something; returns whether there is time for more.
    fn goes_on(&mut self) -> bool {
        let now = Instant::now();
        let end = self.until.min(now + self.patience);
        self.timer.as_mut().reset(end);
        now < self.until
    }
}
