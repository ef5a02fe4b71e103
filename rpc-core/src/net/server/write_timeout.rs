//! [`WriteTimeout`]: a stream whose peer must take what is written to it.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

use super::head::Head;

/// Fails a write that has made no progress for too long.
pub(super) struct WriteTimeout<S> {
    line: S,
    timeout: Duration,
    /// Made when the first write has to wait.
    timer: Option<Pin<Box<Sleep>>>,
    waits: bool,
    head: Head,
}

impl<S> WriteTimeout<S> {
    pub(super) const fn new(line: S, timeout: Duration) -> Self {
        Self {
            line,
            timeout,
            timer: None,
            waits: false,
            head: Head::new(),
        }
    }

    pub(super) fn into_inner(self) -> S {
        self.line
    }

    /// Passes on the result of a write, unless it has waited too long.
    fn check<T>(
        &mut self,
        written: Poll<io::Result<T>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.waits = false;
            return written;
        }
        let timeout = self.timeout;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(timeout)));
        if !std::mem::replace(&mut self.waits, true)
            && let Some(at) = Instant::now().checked_add(timeout)
        {
            timer.as_mut().reset(at);
        }
        let late = timer.as_mut().poll(cx);
        late.map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeout<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        let read = Pin::new(&mut this.line).poll_read(cx, buf);
        this.head.spoil(buf.filled_mut().iter_mut().skip(before));
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.line).poll_write(cx, buf);
        this.check(written, cx)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.line).poll_write_vectored(cx, bufs);
        this.check(written, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.line.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = Pin::new(&mut this.line).poll_flush(cx);
        this.check(flushed, cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().line).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_write_times_out_when_the_peer_reads_nothing() {
        let (line, mut peer) = tokio::io::duplex(4);
        let mut line = WriteTimeout::new(line, Duration::from_secs(30));
        let writing = tokio::spawn(async move { line.write_all(&[0; 64]).await });
        for _ in 0..5 {
            sleep(Duration::from_secs(20)).await;
            peer.read_exact(&mut [0; 4]).await.unwrap();
        }
        let error = writing.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
