//! [`Linger`]: how long a peer that broke the rules is listened to.

use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// Bytes read at once, onto the stack.
const READ: usize = 16 * 1024;
/// How often the peer is read before other tasks get their turn.
const READS_AT_ONCE: usize = 64;
/// When a peer that was told what it did wrong counts as quiet.
const QUIET: Duration = Duration::from_millis(200);
/// How long it then has to hang up.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long it may go on sending.
const LONGEST: Duration = Duration::from_secs(5);

/// Throws away what the peer sends until it is quiet, then ends the line's sending side, and waits
/// for the peer to hang up. Not the other way round: some libraries that are told of the end of a
/// line while they send never look at what came before it.
pub(super) struct Linger {
    /// The end, whatever comes.
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

    /// Ready once the line may be dropped. `is_told` says whether the peer can know by now.
    pub(super) fn poll<S>(
        &mut self,
        cx: &mut Context<'_>,
        socket: &mut S,
        is_told: bool,
    ) -> Poll<()>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        for _ in 0..READS_AT_ONCE {
            let mut memory = [MaybeUninit::uninit(); READ];
            let mut read = ReadBuf::uninit(&mut memory);
            match Pin::new(&mut *socket).poll_read(cx, &mut read) {
                Poll::Ready(Ok(())) if !read.filled().is_empty() && self.goes_on() => {}
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => {
                    ready!(self.timer.as_mut().poll(cx));
                    if self.is_shut || !is_told {
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

    /// The peer has sent something; whether there is time for more.
    fn goes_on(&mut self) -> bool {
        let now = Instant::now();
        let end = self.until.min(now + self.patience);
        self.timer.as_mut().reset(end);
        now < self.until
    }
}
