//! The driver against a transport and a machine that do exactly what a test says.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use bytes::Bytes;
use futures_core::Stream;
use futures_sink::Sink;

use super::*;
use crate::Instant;
use crate::message::{CloseFrame, Incoming, Outgoing, Text};
use crate::net::mem;
use crate::net::transport::{Message, TransportError};

/// What a test sees of the line and decides about it.
#[derive(Default)]
struct Line {
    incoming: VecDeque<Message>,
    /// The stream ends behind `incoming`.
    ended: bool,
    reads: usize,
    sent: Vec<Outgoing>,
    flushes: usize,
    closes: usize,
    /// Frames that are taken before the sink is no longer ready.
    room: Option<usize>,
    flush_sticks: bool,
    writes_fail: bool,
    waker: Option<Waker>,
}

#[derive(Clone, Default)]
struct Mock(Arc<Mutex<Line>>);

impl Mock {
    fn with(change: impl FnOnce(&mut Line)) -> Self {
        let mock = Self::default();
        change(&mut mock.line());
        mock
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.0.lock().unwrap()
    }

    fn sent_and_flushed(&self) -> (usize, usize) {
        let line = self.line();
        (line.sent.len(), line.flushes)
    }

    /// Changes the line and wakes whoever waits for it.
    fn change(&self, change: impl FnOnce(&mut Line)) {
        let mut line = self.line();
        change(&mut line);
        let waker = line.waker.take();
        drop(line);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn wait<T>(line: &mut Line, cx: &Context<'_>) -> Poll<T> {
        line.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Stream for Mock {
    type Item = Result<Message, TransportError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut line = self.line();
        match line.incoming.pop_front() {
            Some(message) => {
                line.reads += 1;
                Poll::Ready(Some(Ok(message)))
            }
            None if line.ended => Poll::Ready(None),
            None => Self::wait(&mut line, cx),
        }
    }
}

impl Sink<Outgoing> for Mock {
    type Error = TransportError;

    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        let mut line = self.line();
        if line.writes_fail {
            return Poll::Ready(Err(io::Error::from(io::ErrorKind::BrokenPipe).into()));
        }
        if line.room == Some(0) {
            return Self::wait(&mut line, cx);
        }
        Poll::Ready(Ok(()))
    }

    fn start_send(self: Pin<&mut Self>, frame: Outgoing) -> Result<(), TransportError> {
        let mut line = self.line();
        line.room = line.room.map(|room| room - 1);
        line.sent.push(frame);
        Ok(())
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        let mut line = self.line();
        line.flushes += 1;
        if line.flush_sticks {
            return Self::wait(&mut line, cx);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        self.line().closes += 1;
        Poll::Ready(Ok(()))
    }
}

/// A machine that echoes texts if told to, and reports everything as events.
#[derive(Debug, Default)]
struct Parrot {
    out: VecDeque<Outgoing>,
    events: VecDeque<String>,
    echoes: bool,
    reads_paused: bool,
    closed: bool,
    deadline: Option<Instant>,
    timeouts: Vec<Instant>,
}

impl Parrot {
    fn sending(frames: usize) -> Self {
        let out = (0..frames).map(|n| text(&n.to_string())).collect();
        Self {
            out,
            ..Self::default()
        }
    }
}

impl Machine for Parrot {
    type Event = String;

    fn handle_message(&mut self, message: Incoming<'_>, now: Instant) {
        if let Incoming::Text(received) = message {
            if self.echoes {
                self.out.push_back(text(received));
            }
            self.events.push_back(received.to_owned());
            if received == "quit" {
                self.close(now);
            }
        }
    }

    fn handle_disconnect(&mut self, why: Disconnect, _: Instant) {
        if !self.closed {
            self.closed = true;
            self.deadline = None;
            self.events.push_back(format!("{why:?}"));
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.timeouts.push(now);
        if self.deadline.is_some_and(|at| at <= now) {
            self.deadline = None;
            self.events.push_back("timeout".to_owned());
        }
    }

    fn poll_transmit(&mut self) -> Option<Outgoing> {
        self.out.pop_front()
    }

    fn poll_event(&mut self) -> Option<String> {
        self.events.pop_front()
    }

    fn next_timeout(&self) -> Option<(Instant, &'static str)> {
        self.deadline.map(|at| (at, "test"))
    }

    fn is_closed(&self) -> bool {
        self.closed
    }

    fn wants_input(&self) -> bool {
        !self.reads_paused
    }

    fn close_with(&mut self, frame: CloseFrame, _: Instant) {
        self.out.push_back(Outgoing::Close(frame));
        self.closed = true;
    }
}

fn text(text: &str) -> Outgoing {
    Outgoing::Text(Text::from(text))
}

fn received(text: &str) -> Message {
    Message::Text(Text::from(text))
}

const SECOND: Duration = Duration::from_secs(1);

fn config() -> DriverConfig {
    DriverConfig {
        write_timeout: SECOND,
        close_timeout: SECOND,
        ..DriverConfig::default()
    }
}

/// Counts its wake-ups.
#[derive(Default)]
struct Bell(AtomicUsize);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Polls once; says whether the driver asked for another poll by itself.
fn poll_once<T: Transport>(driver: &mut Driver<Parrot, T>) -> (Poll<()>, bool) {
    let bell = Arc::new(Bell::default());
    let waker = Waker::from(Arc::clone(&bell));
    let (mut cx, now) = (Context::from_waker(&waker), time::now());
    let more = driver.poll_input(&mut cx, now);
    let polled = driver.poll_output(&mut cx, now, more);
    (polled, bell.0.load(Ordering::SeqCst) > 0)
}

async fn all_events<T: Transport>(driver: &mut Driver<Parrot, T>) -> Vec<String> {
    let mut events = Vec::new();
    while let Some(event) = driver.next().await {
        events.push(event);
    }
    events
}

#[tokio::test(start_paused = true)]
async fn a_hundred_queued_frames_leave_with_one_flush() {
    let mock = Mock::default();
    let mut driver = Driver::new(Parrot::sending(100), mock.clone());
    assert_eq!(poll_once(&mut driver), (Poll::Pending, false));
    assert_eq!(mock.sent_and_flushed(), (100, 1));
}

#[tokio::test(start_paused = true)]
async fn answers_to_many_frames_leave_with_one_flush() {
    let mock = Mock::with(|line| line.incoming.extend((0..50).map(|_| received("hi"))));
    let parrot = Parrot {
        echoes: true,
        ..Parrot::default()
    };
    let mut driver = Driver::new(parrot, mock.clone());
    let _ = poll_once(&mut driver);
    assert_eq!(mock.sent_and_flushed(), (50, 1));
}

#[tokio::test(start_paused = true)]
async fn an_idle_driver_flushes_nothing() {
    let mock = Mock::default();
    let mut driver = Driver::new(Parrot::default(), mock.clone());
    for _ in 0..3 {
        assert_eq!(poll_once(&mut driver), (Poll::Pending, false));
    }
    assert_eq!(mock.line().flushes, 0);
}

#[tokio::test(start_paused = true)]
async fn reading_stops_at_the_budget_and_asks_for_another_turn() {
    let mock = Mock::with(|line| line.incoming.extend((0..25).map(|_| received("hi"))));
    let mut config = config();
    config.read_budget = 10;
    let mut driver = Driver::with_config(Parrot::default(), mock.clone(), config);
    for (reads, again) in [(10, true), (20, true), (25, false)] {
        assert_eq!(poll_once(&mut driver), (Poll::Pending, again));
        assert_eq!(mock.line().reads, reads);
    }
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_reads_nothing_hits_the_write_timeout() {
    for stuck in [
        Mock::with(|line| line.room = Some(3)),
        Mock::with(|line| line.flush_sticks = true),
    ] {
        let mut driver = Driver::with_config(Parrot::sending(9), stuck.clone(), config());
        let start = driver.now();
        assert_eq!(all_events(&mut driver).await, ["WriteStalled"]);
        assert_eq!(driver.now() - start, SECOND);
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_peer_does_not_hit_the_write_timeout() {
    let mock = Mock::with(|line| {
        line.room = Some(1);
        line.flush_sticks = true;
    });
    let mut driver = Driver::with_config(Parrot::sending(10), mock.clone(), config());
    let slow = mock.clone();
    tokio::spawn(async move {
        for _ in 0..9 {
            tokio::time::sleep(SECOND * 6 / 10).await;
            slow.change(|line| line.room = Some(1));
        }
        tokio::time::sleep(SECOND * 6 / 10).await;
        slow.change(|line| {
            line.room = None;
            line.flush_sticks = false;
            line.ended = true;
        });
    });
    assert_eq!(all_events(&mut driver).await, ["Eof"]);
    assert_eq!(mock.line().sent.len(), 10);
}

#[tokio::test(start_paused = true)]
async fn an_unanswered_close_ends_at_the_close_timeout() {
    let mock = Mock::default();
    let mut parrot = Parrot::sending(1);
    parrot.close(Instant::now());
    let mut driver = Driver::with_config(parrot, mock.clone(), config());
    let start = driver.now();
    assert_eq!(driver.next().await, None);
    assert_eq!(driver.now() - start, SECOND);
    let last = mock.line().sent.pop();
    assert!(matches!(last, Some(Outgoing::Close(_))), "{last:?}");
}

#[tokio::test(start_paused = true)]
async fn an_answered_close_ends_at_once_and_keeps_what_came_before() {
    let mock = Mock::default();
    let mut parrot = Parrot::sending(1);
    parrot.close(Instant::now());
    let mut driver = Driver::with_config(parrot, mock.clone(), config());
    assert_eq!(poll_once(&mut driver), (Poll::Pending, false));
    mock.change(|line| {
        line.incoming.push_back(Message::Close(None));
        line.ended = true;
    });
    let start = driver.now();
    assert_eq!(driver.next().await, None);
    assert_eq!(driver.now(), start);
    assert_eq!(mock.line().closes, 0, "one Close is enough");
}

#[tokio::test(start_paused = true)]
async fn final_frames_are_sent_before_remaining_input_is_handled() {
    for behind in [vec![], vec![received("more")], vec![Message::Close(None)]] {
        let mock = Mock::with(|line| {
            line.incoming.push_back(received("quit"));
            line.incoming.extend(behind);
            line.ended = true;
        });
        let parrot = Parrot {
            echoes: true,
            ..Parrot::default()
        };
        let mut driver = Driver::with_config(parrot, mock.clone(), config());
        assert_eq!(all_events(&mut driver).await, ["quit"]);
        assert_eq!(mock.sent_and_flushed(), (2, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_ends_without_a_close_shuts_the_transport_down() {
    let mock = Mock::default();
    let parrot = Parrot {
        closed: true,
        ..Parrot::default()
    };
    let mut driver = Driver::with_config(parrot, mock.clone(), config());
    assert_eq!(driver.next().await, None);
    assert_eq!(mock.line().closes, 1);
}

#[tokio::test(start_paused = true)]
async fn the_peers_close_is_answered_and_reported() {
    let (ours, mut theirs) = mem::duplex(4);
    let mut driver = Driver::new(Parrot::default(), ours);
    let goodbye = CloseFrame::new(CloseFrame::GOING_AWAY, "bye");
    Pin::new(&mut theirs)
        .start_send(Outgoing::Close(goodbye.clone()))
        .unwrap();
    let expected = format!("{:?}", Disconnect::PeerClosed(Some(goodbye.clone())));
    assert_eq!(all_events(&mut driver).await, [expected]);
    let answer = poll_fn(|cx| Pin::new(&mut theirs).poll_next(cx)).await;
    assert_eq!(answer.unwrap().unwrap(), Message::Close(Some(goodbye)));
}

#[tokio::test(start_paused = true)]
async fn the_answer_to_the_peers_close_is_flushed_even_when_nothing_was_sent() {
    let mock = Mock::with(|line| line.incoming.push_back(Message::Close(None)));
    let mut driver = Driver::new(Parrot::default(), mock.clone());
    let _ = poll_once(&mut driver);
    assert_eq!(mock.line().flushes, 1);
}

#[tokio::test(start_paused = true)]
async fn after_a_failed_write_the_peers_last_frames_are_read() {
    let mock = Mock::with(|line| line.writes_fail = true);
    let parrot = Parrot {
        // Nothing is read before the write fails.
        reads_paused: true,
        ..Parrot::sending(1)
    };
    let mut driver = Driver::new(parrot, mock.clone());
    let goodbye = CloseFrame::new(CloseFrame::POLICY, "you talk too much");
    mock.line()
        .incoming
        .extend([received("last"), Message::Close(Some(goodbye.clone()))]);
    let expected = format!("{:?}", Disconnect::PeerClosed(Some(goodbye)));
    assert_eq!(all_events(&mut driver).await, ["last".to_owned(), expected]);
}

#[tokio::test(start_paused = true)]
async fn a_failed_write_is_reported() {
    let mock = Mock::with(|line| line.writes_fail = true);
    let mut driver = Driver::new(Parrot::sending(1), mock);
    let events = all_events(&mut driver).await;
    assert!(events[0].starts_with("Failed"), "{events:?}");
    assert_eq!(events.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_wants_no_input_still_sends() {
    let mock = Mock::with(|line| line.incoming.push_back(received("hi")));
    let parrot = Parrot {
        reads_paused: true,
        ..Parrot::sending(1)
    };
    let mut driver = Driver::new(parrot, mock.clone());
    assert_eq!(poll_once(&mut driver), (Poll::Pending, false));
    assert_eq!(mock.line().reads, 0);
    assert_eq!(mock.line().sent.len(), 1);
    driver.machine_mut().reads_paused = false;
    assert_eq!(driver.next().await, Some("hi".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_deadline_is_never_handled_early() {
    let at = Driver::new(Parrot::default(), Mock::default()).now() + SECOND;
    let parrot = Parrot {
        deadline: Some(at),
        ..Parrot::default()
    };
    let mut driver = Driver::new(parrot, Mock::default());
    let _ = poll_once(&mut driver);
    // The deadline moves while the timer is armed for the earlier one.
    driver.machine_mut().deadline = Some(at + SECOND);
    assert_eq!(driver.next().await, Some("timeout".to_owned()));
    assert_eq!(driver.now(), at + SECOND);
    assert_eq!(driver.machine().timeouts, [at + SECOND]);
}

#[tokio::test(start_paused = true)]
async fn an_earlier_deadline_is_honored() {
    let now = Driver::new(Parrot::default(), Mock::default()).now();
    let parrot = Parrot {
        deadline: Some(now + SECOND * 100),
        ..Parrot::default()
    };
    let mut driver = Driver::new(parrot, Mock::default());
    let _ = poll_once(&mut driver);
    driver.machine_mut().deadline = Some(now + SECOND);
    assert_eq!(driver.next().await, Some("timeout".to_owned()));
    assert_eq!(driver.now(), now + SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_is_handled_by_a_task_out_of_budget() {
    let at = time::now() + SECOND;
    let parrot = Parrot {
        deadline: Some(at),
        ..Parrot::default()
    };
    let mut driver = Driver::new(parrot, Mock::default());
    poll_fn(|cx| {
        while pin!(tokio::task::consume_budget()).poll(cx).is_ready() {}
        assert!(driver.poll_next(cx).is_pending());
        Poll::Ready(())
    })
    .await;
    let next = tokio::time::timeout(SECOND * 100, driver.next()).await;
    assert_eq!(next, Ok(Some("timeout".to_owned())));
    assert_eq!(time::now(), at);
}

#[tokio::test(start_paused = true)]
async fn a_late_wake_up_passes_the_current_time() {
    let at = Driver::new(Parrot::default(), Mock::default()).now() + SECOND;
    let parrot = Parrot {
        deadline: Some(at),
        ..Parrot::default()
    };
    let mut driver = Driver::new(parrot, Mock::default());
    let _ = poll_once(&mut driver);
    // The computer slept.
    tokio::time::advance(SECOND * 3600).await;
    assert_eq!(driver.next().await, Some("timeout".to_owned()));
    assert_eq!(driver.machine().timeouts, [at + SECOND * 3599]);
}

#[tokio::test(start_paused = true)]
async fn an_abort_drops_the_connection_without_a_close() {
    let mut parrot = Parrot::sending(1);
    parrot.out.push_back(Outgoing::Abort);
    parrot.closed = true;
    let line = Mock::default();
    let mut driver = Driver::new(parrot, line.clone());
    assert!(poll_once(&mut driver).0.is_ready());
    assert_eq!(line.line().sent, [text("0")]);
    assert_eq!(line.line().closes, 0);
    // The driver has let go of the line.
    assert_eq!(Arc::strong_count(&line.0), 1);
}

#[tokio::test(start_paused = true)]
async fn an_abort_does_not_wait_for_a_stuck_transport() {
    let line = Mock::with(|line| line.room = Some(0));
    let mut driver = Driver::new(Parrot::sending(1), line.clone());
    assert!(poll_once(&mut driver).0.is_pending());
    let parrot = driver.machine_mut();
    parrot.closed = true;
    parrot.out = VecDeque::from([Outgoing::Abort]);
    assert!(poll_once(&mut driver).0.is_ready());
    assert!(line.line().sent.is_empty());
    assert_eq!(Arc::strong_count(&line.0), 1);
}

#[tokio::test(start_paused = true)]
async fn final_frames_wait_for_a_stuck_transport() {
    let line = Mock::with(|line| line.room = Some(0));
    let mut parrot = Parrot::sending(1);
    parrot.close(Instant::now());
    let mut driver = Driver::new(parrot, line.clone());
    for _ in 0..2 {
        assert!(poll_once(&mut driver).0.is_pending());
    }
    line.line().room = None;
    assert!(poll_once(&mut driver).0.is_pending());
    let close = Outgoing::Close(CloseFrame::new(CloseFrame::NORMAL, ""));
    assert_eq!(line.line().sent, [text("0"), close]);
}

#[tokio::test(start_paused = true)]
async fn next_is_cancel_safe() {
    let mock = Mock::default();
    let parrot = Parrot {
        echoes: true,
        ..Parrot::default()
    };
    let mut driver = Driver::new(parrot, mock.clone());
    for n in 0..20 {
        let expected = n.to_string();
        {
            let mut next = std::pin::pin!(driver.next());
            let polled = next.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert!(polled.is_pending());
        }
        mock.change(|line| line.incoming.push_back(received(&expected)));
        assert_eq!(driver.next().await, Some(expected));
    }
    assert_eq!(mock.line().sent.len(), 20);
}

#[tokio::test(start_paused = true)]
async fn debug_output_of_queued_frames_hides_their_text() {
    let mut driver = Driver::new(Parrot::default(), Mock::default());
    driver.machine_mut().out.push_back(text("hunter2"));
    driver
        .machine_mut()
        .out
        .push_back(Outgoing::Binary(Bytes::from_static(b"hunter2")));
    let printed = format!("{driver:?}");
    assert!(!printed.contains("hunter2"), "{printed}");
}
