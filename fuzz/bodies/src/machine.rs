//! [`drive`]: a machine under a list of operations, and the rules that hold for every machine.

use std::collections::VecDeque;
use std::fmt::{Debug, Display};
use std::mem::{Discriminant, discriminant, take};
use std::time::Duration;

use rpc_core::keepalive::KeepAlive;
use rpc_core::testing::conformance::closed_is_inert;
use rpc_core::{CloseFrame, Disconnect, Incoming, Instant, Limits, Machine, Outgoing, Refused};
use serde::Serialize;

use crate::frames::written;

use crate::script::Script;

/// Small enough for short scripts to reach.
pub(crate) const FEW: usize = 4;
/// Frames and events of one operation: limits are passed by so many at most.
pub(crate) const SLACK: usize = 8;

pub(crate) fn small() -> Limits {
    Limits {
        max_message_bytes: 2048,
        max_pending: FEW,
        max_outbox_frames: FEW,
        max_events: FEW,
        ..Limits::default()
    }
}

pub(crate) fn frequent_pings() -> KeepAlive {
    KeepAlive::every(Duration::from_secs(7), Duration::from_secs(3))
}

/// What a body knows of a machine from outside, and the rules that it adds to those of [`Machine`].
pub(crate) trait Model {
    type Conn: Machine;

    /// Most requests in flight.
    const IN_FLIGHT: usize = FEW;
    /// Most texts that wait to leave.
    const FRAMES: usize = FEW;

    /// Does one operation, from 0 to 63.
    fn operate(&mut self, op: u8, run: &mut Run<'_, Self::Conn>);

    /// A text leaves.
    fn sent(&mut self, text: &str, conn: &Self::Conn);

    /// A ping or a Close leaves.
    fn sent_control(&mut self, _frame: &Outgoing, _conn: &Self::Conn) {}

    /// Nothing more waits to leave.
    fn all_sent(&mut self, _conn: &Self::Conn) {}

    fn event(&mut self, event: <Self::Conn as Machine>::Event, run: &Run<'_, Self::Conn>);

    /// No more events wait; so many were taken.
    fn all_told(&mut self, _events: usize, _run: &mut Run<'_, Self::Conn>) {}

    /// The operations are over, and the line is about to end.
    fn settle(&mut self, _run: &mut Run<'_, Self::Conn>) {}
}

/// A machine, its clock, and the operations that are left.
pub(crate) struct Run<'s, C: Machine> {
    pub(crate) conn: C,
    pub(crate) now: Instant,
    pub(crate) script: Script<'s>,
    /// Texts that have arrived, the last few of them.
    received: VecDeque<String>,
    /// A Close has left, or the line was dropped.
    pub(crate) left: bool,
    /// The end was told.
    pub(crate) closed: bool,
    /// The kind of event that tells it.
    end: Option<Discriminant<C::Event>>,
}

/// What leaves a machine can be read.
pub(crate) fn readable<T, E: Display>(read: Result<T, E>) -> T {
    read.unwrap_or_else(|error| panic!("a machine sends its own frames only: {error}"))
}

/// Runs a new machine through the operations and to the end of its line. Gives what is left of both.
///
/// An operation of 64 to 127 is done without taking events first, one of 128 to 191 without taking
/// frames and events, one of 192 or more with taking one frame.
pub(crate) fn drive<'s, M: Model>(
    mut model: M,
    script: Script<'s>,
    conn: impl Fn(Instant) -> M::Conn,
) -> (M, Run<'s, M::Conn>) {
    let now = Instant::now();
    let mut run = Run {
        conn: conn(now),
        now,
        script,
        received: VecDeque::new(),
        left: false,
        closed: false,
        end: end_of(conn(now), now),
    };
    while let Some(op) = run.script.byte() {
        match op & 0xc0 {
            0x80 => {}
            0xc0 => run.take_frame(&mut model),
            _ => run.take_frames(&mut model),
        }
        if op & 0xc0 == 0 {
            run.take_events(&mut model);
        }
        model.operate(op & 0x3f, &mut run);
        assert!(run.conn.in_flight() <= M::IN_FLIGHT, "too much in flight");
    }
    model.settle(&mut run);
    run.disconnect(Disconnect::PeerClosed(None));
    run.take_events(&mut model);
    assert!(run.closed, "the end is told");
    let received: Vec<&str> = run.received.iter().map(String::as_str).collect();
    closed_is_inert(&mut run.conn, &received, run.now);
    (model, run)
}

/// The kind of the last event of a machine whose line ends at once.
fn end_of<C: Machine>(mut conn: C, now: Instant) -> Option<Discriminant<C::Event>> {
    conn.handle_disconnect(Disconnect::Eof, now);
    let last = std::iter::from_fn(|| conn.poll_event()).last();
    last.as_ref().map(discriminant)
}

impl<C: Machine> Run<'_, C> {
    pub(crate) fn take_frames<M: Model<Conn = C>>(&mut self, model: &mut M) {
        let mut texts = 0;
        while let Some(frame) = self.conn.poll_transmit() {
            texts += usize::from(matches!(frame, Outgoing::Text(_)));
            self.frame(model, &frame);
        }
        assert!(texts <= M::FRAMES, "frames that wait are bounded: {texts}");
        model.all_sent(&self.conn);
    }

    fn take_frame<M: Model<Conn = C>>(&mut self, model: &mut M) {
        if let Some(frame) = self.conn.poll_transmit() {
            self.frame(model, &frame);
        }
    }

    fn frame<M: Model<Conn = C>>(&mut self, model: &mut M, frame: &Outgoing) {
        assert!(!self.left, "a frame after a Close");
        self.left = matches!(frame, Outgoing::Close(_) | Outgoing::Abort);
        match frame {
            Outgoing::Text(text) => model.sent(text.as_str(), &self.conn),
            Outgoing::Ping(_) | Outgoing::Close(_) => model.sent_control(frame, &self.conn),
            Outgoing::Abort => {}
            other => panic!("a machine sends texts, not {other:?}"),
        }
    }

    pub(crate) fn take_events<M: Model<Conn = C>>(&mut self, model: &mut M) {
        let mut events = 0;
        while let Some(event) = self.conn.poll_event() {
            assert!(!self.closed, "an event after the last one");
            self.closed = self.end == Some(discriminant(&event));
            events += 1;
            model.event(event, self);
        }
        assert_eq!(self.closed, self.conn.is_closed(), "the end is told");
        model.all_told(events, self);
    }

    /// A text arrives. A line is read only while the machine wants input.
    pub(crate) fn hear(&mut self, text: &str) {
        if self.conn.wants_input() {
            self.force(text);
        }
    }

    /// A text arrives although the machine may want no input.
    pub(crate) fn force(&mut self, text: &str) {
        self.received.truncate(2 * FEW);
        self.received.push_front(text.to_owned());
        self.conn.handle_message(Incoming::Text(text), self.now);
    }

    /// The script's next text arrives.
    pub(crate) fn hear_text(&mut self) {
        let text = self.script.text();
        self.hear(text);
    }

    /// One of these texts arrives.
    pub(crate) fn hear_one_of(&mut self, texts: &[&str]) {
        let text = self.script.pick_text(texts);
        self.hear(text);
    }

    /// Bytes arrive, as for [`hear`](Self::hear).
    pub(crate) fn hear_binary(&mut self, bytes: &[u8]) {
        if self.conn.wants_input() {
            self.conn.handle_message(Incoming::Binary(bytes), self.now);
        }
    }

    /// Something happens to the line, as the next byte says.
    pub(crate) fn line(&mut self) {
        let what = self.script.byte_or_zero();
        self.happen(what);
    }

    /// The line is closed here, in one of two ways, or lost, bytes arrive, or a ping does.
    pub(crate) fn happen(&mut self, what: u8) {
        match what {
            0 => self.conn.close(self.now),
            1 => self.disconnect(Disconnect::Eof),
            2 => {
                let frame = CloseFrame::new(CloseFrame::GOING_AWAY, "bye");
                self.conn.close_with(frame, self.now);
            }
            3 => self.hear_binary(b"{\xff"),
            _ => self.conn.handle_message(Incoming::Ping(b"x"), self.now),
        }
    }

    /// Whether a command was taken: one that may be has to be unless there is no room, and no other.
    pub(crate) fn took<T>(&self, result: &Result<T, Refused>, may: bool) -> bool {
        match result {
            Ok(_) => assert!(may, "it was taken"),
            Err(Refused::Closed) => assert!(self.conn.is_closed(), "it is open"),
            Err(Refused::UnknownId | Refused::NotReady) => {
                assert!(!may || self.conn.is_closed(), "it was refused");
            }
            Err(_) => {}
        }
        result.is_ok()
    }

    pub(crate) fn pong(&mut self) {
        self.conn.handle_message(Incoming::Pong(b""), self.now);
    }

    pub(crate) fn timeout(&mut self) {
        self.conn.handle_timeout(self.now);
    }

    /// The line ends, and nothing leaves over it any more.
    pub(crate) fn disconnect(&mut self, why: Disconnect) {
        self.conn.handle_disconnect(why, self.now);
        let sent = self.conn.poll_transmit();
        assert!(sent.is_none(), "nothing leaves over a line that is gone");
    }

    /// Time passes, as much as the script says: every deadline fires, and each moves on.
    pub(crate) fn wait(&mut self) {
        let until = self.now + self.script.seconds();
        for _ in 0..1_000 {
            let Some(at) = self.conn.poll_timeout().filter(|at| *at <= until) else {
                self.now = until;
                return;
            };
            self.now = at.max(self.now);
            self.conn.handle_timeout(self.now);
            if let Some(next) = self.conn.poll_timeout() {
                assert!(next > at, "a handled deadline must move later");
            }
        }
        panic!("deadlines make no progress");
    }
}

/// What has to come out of a machine, in order.
pub(crate) struct Expected<E> {
    pub(crate) frames: VecDeque<String>,
    pub(crate) events: VecDeque<E>,
}

impl<E> Default for Expected<E> {
    fn default() -> Self {
        let (frames, events) = Default::default();
        Self { frames, events }
    }
}

impl<E: PartialEq + Debug> Expected<E> {
    /// A frame was taken, so it has to leave.
    pub(crate) fn leaves(&mut self, frame: &impl Serialize) {
        self.frames.push_back(written(frame).as_str().to_owned());
    }

    /// Whether this is the next frame, which has left then.
    pub(crate) fn is_next(&mut self, text: &str) -> bool {
        let is_next = self.frames.front().is_some_and(|next| next == text);
        is_next.then(|| self.frames.pop_front()).is_some()
    }

    pub(crate) fn reported(&mut self, event: &E) {
        assert_eq!(
            Some(event),
            self.events.pop_front().as_ref(),
            "what is told"
        );
    }

    /// All frames were taken.
    pub(crate) fn all_sent(&self, conn: &impl Machine) {
        let none = self.frames.is_empty();
        assert!(none || conn.is_closed(), "a frame is missing");
    }
}

/// Whether a command found no room, and the machine told of room since.
#[derive(Default)]
pub(crate) struct Room {
    blocked: bool,
    writable: bool,
}

impl Room {
    pub(crate) fn note<T>(&mut self, result: &Result<T, Refused>) {
        self.blocked |= matches!(result, Err(Refused::QueueFull));
    }

    pub(crate) const fn is_back(&mut self) {
        self.writable = true;
    }

    /// All frames were taken, and then all events.
    pub(crate) fn check(&mut self, closed: bool) {
        let room = take(self);
        let is_told = !room.blocked || room.writable || closed;
        assert!(is_told, "room came back and nobody was told");
    }
}

/// The name of an event; of a warning, what it warns of.
pub(crate) fn name_of(event: &impl Debug) -> String {
    let words = format!("{event:?}");
    let words = words.strip_prefix("Warning(").unwrap_or(&words);
    words
        .split(|letter: char| !letter.is_alphanumeric())
        .next()
        .unwrap_or_default()
        .to_owned()
}
