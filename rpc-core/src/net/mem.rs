//! An in-memory transport: both ends in one process, no socket, works with a paused clock.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use futures_core::Stream;
use futures_sink::Sink;
use tokio::sync::mpsc;

use super::dial::{DialError, Dialer};
use super::queue::{wake, wake_from};
use super::transport::{Message, TransportError};
use crate::message::Outgoing;
use crate::sync::Mutex;

/// Creates two connected ends. Each holds at most `capacity` frames (at least 1) that the other end
/// has sent and this one has not read.
///
/// It behaves like a WebSocket: pings are answered, a Close is echoed and ends the stream, and a
/// dropped end looks like a cut connection.
#[must_use]
pub fn duplex(capacity: usize) -> (MemTransport, MemTransport) {
    let [a, b] = [(); 2].map(|()| {
        Arc::new(Pipe {
            state: Mutex::default(),
            capacity: capacity.max(1),
        })
    });
    let end = |incoming: &Arc<Pipe>, outgoing: &Arc<Pipe>| MemTransport {
        incoming: Arc::clone(incoming),
        outgoing: Arc::clone(outgoing),
        closed: false,
    };
    (end(&a, &b), end(&b, &a))
}

/// Creates a listener in memory and the [`Dialer`] that reaches it. Each dial creates a fresh
/// [`duplex`] of this capacity.
#[must_use]
pub fn listen(capacity: usize) -> (MemDialer, MemListener) {
    let (accept, incoming) = mpsc::unbounded_channel();
    (MemDialer { accept, capacity }, MemListener { incoming })
}

/// Pongs that may wait beyond the capacity.
const MAX_PONGS: usize = 32;

/// What happens to a frame in transit. Exhaustive: a frame arrives or not, and so does what
/// follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It arrives.
    Arrives,
    /// It arrives, and the connection ends after it.
    ArrivesLast,
    /// It is lost, and the connection stays.
    Lost,
    /// It is lost, and the connection with it.
    LostWithLine,
}

/// Decides about the frames of one direction, in order, including pings, pongs and Closes.
pub type Tap = Box<dyn FnMut(&Message) -> Fate + Send>;

#[derive(Debug)]
struct Pipe {
    state: Mutex<PipeState>,
    capacity: usize,
}

/// The taps of a pipe and of the opposite pipe.
struct Tapped {
    tap: Tap,
    back: Arc<Pipe>,
}

crate::debug::debug_fields!([] Tapped, _ => {});

#[derive(Debug, Default)]
struct PipeState {
    tapped: Option<Tapped>,
    frames: VecDeque<Message>,
    /// Whether the writer is gone or has sent a Close.
    ended: bool,
    /// Whether the reader is gone.
    abandoned: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl Pipe {
    fn push(&self, message: Message) {
        let mut state = self.state.lock();
        let mut fate = Fate::Arrives;
        if !state.ended && !state.abandoned {
            if let Some(tapped) = &mut state.tapped {
                fate = (tapped.tap)(&message);
            }
            if matches!(fate, Fate::Arrives | Fate::ArrivesLast) {
                state.frames.push_back(message);
            }
        }
        let cut = matches!(fate, Fate::ArrivesLast | Fate::LostWithLine);
        let tapped = state.tapped.take_if(|_| cut);
        let reader = state.reader.take();
        drop(state);
        wake(reader);
        if let Some(Tapped { back, .. }) = tapped {
            self.end(false);
            back.end(true);
        }
    }

    /// Sends a pong beyond the capacity, up to a limit: an end that pings and reads nothing gets no
    /// unlimited queue of pongs.
    fn answer(&self, pong: Message) {
        if self.state.lock().frames.len() < self.capacity.saturating_add(MAX_PONGS) {
            self.push(pong);
        }
    }

    /// Ends the stream after the frames that were sent; with `cut`, unread frames are lost.
    fn end(&self, cut: bool) {
        let mut state = self.state.lock();
        state.ended = true;
        state.tapped = None;
        if cut {
            state.frames.clear();
        }
        let wakers = (state.reader.take(), state.writer.take());
        drop(state);
        wake(wakers.0);
        wake(wakers.1);
    }
}

/// One end of a [`duplex`].
#[derive(Debug)]
pub struct MemTransport {
    incoming: Arc<Pipe>,
    outgoing: Arc<Pipe>,
    /// Whether a Close has been sent.
    closed: bool,
}

impl MemTransport {
    /// Sets the taps for the frames that this end sends and for those that it receives. They do not
    /// see frames that were sent before.
    pub fn tap(&self, sent: Tap, received: Tap) {
        self.outgoing.state.lock().tapped = Some(Tapped {
            tap: sent,
            back: Arc::clone(&self.incoming),
        });
        self.incoming.state.lock().tapped = Some(Tapped {
            tap: received,
            back: Arc::clone(&self.outgoing),
        });
    }

    /// Returns a handle that cuts the connection from outside, like a pulled cable.
    #[must_use]
    pub fn cutter(&self) -> Cutter {
        Cutter {
            pipes: [Arc::clone(&self.incoming), Arc::clone(&self.outgoing)],
        }
    }
}

/// Cuts the connection of a [`MemTransport`].
#[derive(Clone, Debug)]
pub struct Cutter {
    pipes: [Arc<Pipe>; 2],
}

impl Cutter {
    /// Cuts the connection: frames in transit are lost and both ends see the end of the stream.
    pub fn cut(&self) {
        for pipe in &self.pipes {
            pipe.end(true);
        }
    }
}

impl Stream for MemTransport {
    type Item = Result<Message, TransportError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut state = self.incoming.state.lock();
        let Some(message) = state.frames.pop_front() else {
            if state.ended {
                return Poll::Ready(None);
            }
            state.reader = Some(cx.waker().clone());
            return Poll::Pending;
        };
        wake_from(state, |state| state.writer.take());
        match &message {
            Message::Ping(payload) => self.outgoing.answer(Message::Pong(payload.clone())),
            Message::Close(frame) => {
                self.incoming.state.lock().ended = true;
                if !self.closed {
                    self.closed = true;
                    self.outgoing.push(Message::Close(frame.clone()));
                }
                self.outgoing.end(false);
            }
            _ => {}
        }
        Poll::Ready(Some(Ok(message)))
    }
}

impl Sink<Outgoing> for MemTransport {
    type Error = TransportError;

    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        let mut state = self.outgoing.state.lock();
        if state.abandoned || state.ended || self.closed {
            return Poll::Ready(Err(TransportError::Closed));
        }
        if state.frames.len() < self.outgoing.capacity {
            return Poll::Ready(Ok(()));
        }
        state.writer = Some(cx.waker().clone());
        Poll::Pending
    }

    fn start_send(mut self: Pin<&mut Self>, frame: Outgoing) -> Result<(), TransportError> {
        if self.closed {
            return Err(TransportError::Closed);
        }
        let message = match frame {
            Outgoing::Text(text) => Message::Text(text),
            Outgoing::Binary(bytes) => Message::Binary(bytes),
            Outgoing::Ping(bytes) => Message::Ping(bytes),
            Outgoing::Close(frame) => {
                self.closed = true;
                Message::Close(Some(frame))
            }
            Outgoing::Abort => return Err(TransportError::is_no_frame()),
        };
        self.outgoing.push(message);
        Ok(())
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Result<(), TransportError>> {
        if !self.closed {
            self.closed = true;
            self.outgoing.push(Message::Close(None));
        }
        Poll::Ready(Ok(()))
    }
}

impl Drop for MemTransport {
    fn drop(&mut self) {
        self.outgoing.end(false);
        let mut state = self.incoming.state.lock();
        state.abandoned = true;
        state.frames.clear();
        wake_from(state, |state| state.writer.take());
    }
}

/// Dials a [`MemListener`].
#[derive(Clone, Debug)]
pub struct MemDialer {
    accept: mpsc::UnboundedSender<MemTransport>,
    capacity: usize,
}

impl Dialer for MemDialer {
    type Transport = MemTransport;

    async fn dial(&self) -> Result<MemTransport, DialError> {
        let (ours, theirs) = duplex(self.capacity);
        self.accept
            .send(theirs)
            .map_err(|_| DialError::Unreachable {
                host: "memory".to_owned(),
                source: std::io::ErrorKind::ConnectionRefused.into(),
            })?;
        Ok(ours)
    }
}

/// Takes the connections that a [`MemDialer`] makes.
#[derive(Debug)]
pub struct MemListener {
    incoming: mpsc::UnboundedReceiver<MemTransport>,
}

impl MemListener {
    /// Returns the next connection; `None` once every dialer is gone.
    ///
    /// # Cancel safety
    /// Cancel-safe: a connection is either returned or stays queued.
    pub async fn accept(&mut self) -> Option<MemTransport> {
        self.incoming.recv().await
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{SinkExt, StreamExt};

    use super::*;
    use crate::message::{CloseFrame, Text};

    fn text(text: &str) -> Outgoing {
        Outgoing::Text(Text::from(text))
    }

    #[tokio::test]
    async fn frames_arrive_in_order_and_pings_are_answered() {
        let (mut a, mut b) = duplex(8);
        a.send(text("1")).await.unwrap();
        a.send(Outgoing::Ping("p".into())).await.unwrap();
        a.send(text("2")).await.unwrap();
        assert_eq!(b.next().await.unwrap().unwrap(), Message::Text("1".into()));
        assert_eq!(b.next().await.unwrap().unwrap(), Message::Ping("p".into()));
        assert_eq!(b.next().await.unwrap().unwrap(), Message::Text("2".into()));
        assert_eq!(a.next().await.unwrap().unwrap(), Message::Pong("p".into()));
    }

    #[tokio::test]
    async fn a_close_is_echoed_and_ends_both_streams() {
        let (mut a, mut b) = duplex(8);
        let frame = CloseFrame::new(1000, "bye");
        a.send(Outgoing::Close(frame.clone())).await.unwrap();
        assert_eq!(
            b.next().await.unwrap().unwrap(),
            Message::Close(Some(frame.clone()))
        );
        assert!(b.next().await.is_none());
        assert_eq!(
            a.next().await.unwrap().unwrap(),
            Message::Close(Some(frame))
        );
        assert!(a.next().await.is_none());
        assert!(b.send(text("late")).await.is_err());
    }

    #[tokio::test]
    async fn a_full_pipe_waits_until_the_reader_reads() {
        let (mut a, mut b) = duplex(1);
        a.send(text("1")).await.unwrap();
        let (sent, read) = tokio::join!(a.send(text("2")), b.next());
        sent.unwrap();
        assert_eq!(read.unwrap().unwrap(), Message::Text("1".into()));
    }

    #[tokio::test]
    async fn a_cut_loses_frames_in_flight() {
        let (mut a, mut b) = duplex(8);
        a.send(text("1")).await.unwrap();
        a.cutter().cut();
        assert!(b.next().await.is_none());
        assert!(a.next().await.is_none());
        assert!(a.send(text("2")).await.is_err());
    }

    #[tokio::test]
    async fn a_tap_decides_what_arrives() {
        let (mut a, mut b) = duplex(8);
        let mut fates = [Fate::Lost, Fate::Arrives, Fate::ArrivesLast].into_iter();
        let sent = Box::new(move |_: &Message| fates.next().unwrap_or(Fate::Arrives));
        a.tap(sent, Box::new(|_| Fate::Arrives));
        b.send(text("lost with the line")).await.unwrap();
        for word in ["lost", "1", "2"] {
            a.send(text(word)).await.unwrap();
        }
        assert!(a.send(text("3")).await.is_err());
        assert!(a.next().await.is_none());
        assert_eq!(b.next().await.unwrap().unwrap(), Message::Text("1".into()));
        assert_eq!(b.next().await.unwrap().unwrap(), Message::Text("2".into()));
        assert!(b.next().await.is_none());
        let (mut a, mut b) = duplex(8);
        a.tap(
            Box::new(|_| Fate::Arrives),
            Box::new(|_| Fate::LostWithLine),
        );
        b.send(text("1")).await.unwrap();
        assert!(a.next().await.is_none());
        assert!(b.next().await.is_none());
    }

    #[tokio::test]
    async fn pings_of_an_end_that_reads_nothing_are_bounded() {
        let (mut a, mut b) = duplex(4);
        for _ in 0..1000 {
            a.send(Outgoing::Ping("p".into())).await.unwrap();
            b.next().await.unwrap().unwrap();
        }
        assert!(a.incoming.state.lock().frames.len() <= 4 + MAX_PONGS);
        assert_eq!(a.next().await.unwrap().unwrap(), Message::Pong("p".into()));
    }

    #[tokio::test]
    async fn a_dropped_end_looks_like_a_cut() {
        let (a, mut b) = duplex(8);
        drop(a);
        assert!(b.next().await.is_none());
        assert!(b.send(text("1")).await.is_err());
    }
}
