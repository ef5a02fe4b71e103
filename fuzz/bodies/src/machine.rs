//! [`drive`]: a machine under a list of operations, and the rules that hold for every machine.

use std::time::Duration;

use rpc_core::keepalive::KeepAlive;
use rpc_core::{Disconnect, Incoming, Instant, Limits, Machine, Outgoing};

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

    /// What a peer may say. Nothing comes of it once the machine is closed.
    const TEXTS: &'static [&'static str];
    /// Whether the machine may drop the line at once.
    const MAY_ABORT: bool = false;

    /// Does one operation, from 0 to 63.
    fn operate(&mut self, op: u8, run: &mut Run<'_, Self::Conn>);

    /// A text leaves.
    fn sent(&mut self, text: &str, conn: &Self::Conn);

    /// A ping or a Close leaves.
    fn sent_control(&mut self, _frame: &Outgoing, _conn: &Self::Conn) {}

    /// Nothing more waits to leave; so many texts were taken.
    fn all_sent(&mut self, _texts: usize, _conn: &Self::Conn) {}

    fn event(&mut self, event: <Self::Conn as Machine>::Event, run: &Run<'_, Self::Conn>);

    /// Whether this is the event of the end.
    fn is_end(event: &<Self::Conn as Machine>::Event) -> bool;

    /// No more events wait; so many were taken.
    fn all_told(&mut self, _events: usize, _run: &mut Run<'_, Self::Conn>) {}

    /// The operations are over, and the line is about to end.
    fn settle(&mut self, _run: &mut Run<'_, Self::Conn>) {}
}

/// A machine, its clock, and the operations that are left.
pub(crate) struct Run<'s, C> {
    pub(crate) conn: C,
    pub(crate) now: Instant,
    pub(crate) script: Script<'s>,
    /// A Close has left, or the line was dropped.
    pub(crate) left: bool,
    /// The end was told.
    pub(crate) closed: bool,
}

/// Runs a new machine through the operations and to the end of its line. Gives what is left of both.
///
/// An operation of 128 or more is done without taking frames and events first, one of 64 to 127
/// without taking events.
pub(crate) fn drive<'s, M: Model>(
    mut model: M,
    script: Script<'s>,
    conn: impl FnOnce(Instant) -> M::Conn,
) -> (M, Run<'s, M::Conn>) {
    let now = Instant::now();
    let mut run = Run {
        conn: conn(now),
        now,
        script,
        left: false,
        closed: false,
    };
    while let Some(op) = run.script.byte() {
        if op & 0x80 == 0 {
            run.take_frames(&mut model);
        }
        if op & 0xc0 == 0 {
            run.take_events(&mut model);
        }
        model.operate(op & 0x3f, &mut run);
    }
    model.settle(&mut run);
    run.disconnect(Disconnect::PeerClosed(None));
    run.take_events(&mut model);
    assert!(run.closed, "the end is told");
    run.assert_inert(M::TEXTS);
    (model, run)
}

impl<C: Machine> Run<'_, C> {
    pub(crate) fn take_frames<M: Model<Conn = C>>(&mut self, model: &mut M) {
        let mut texts = 0;
        while let Some(frame) = self.conn.poll_transmit() {
            assert!(!self.left, "a frame after a Close");
            match &frame {
                Outgoing::Text(text) => {
                    texts += 1;
                    model.sent(text.as_str(), &self.conn);
                }
                Outgoing::Ping(_) => model.sent_control(&frame, &self.conn),
                Outgoing::Close(_) => {
                    self.left = true;
                    model.sent_control(&frame, &self.conn);
                }
                Outgoing::Abort if M::MAY_ABORT => self.left = true,
                other => panic!("a machine sends texts, not {other:?}"),
            }
        }
        model.all_sent(texts, &self.conn);
    }

    pub(crate) fn take_events<M: Model<Conn = C>>(&mut self, model: &mut M) {
        let mut events = 0;
        while let Some(event) = self.conn.poll_event() {
            assert!(!self.closed, "an event after the last one");
            self.closed = M::is_end(&event);
            events += 1;
            model.event(event, self);
        }
        assert_eq!(self.closed, self.conn.is_closed(), "the end is told");
        model.all_told(events, self);
    }

    /// A text arrives. A line is read only while the machine wants input.
    pub(crate) fn hear(&mut self, text: &str) {
        if self.conn.wants_input() {
            self.conn.handle_message(Incoming::Text(text), self.now);
        }
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

    pub(crate) fn ping(&mut self) {
        self.conn.handle_message(Incoming::Ping(b"x"), self.now);
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

    /// After the end nothing comes out, whatever goes in.
    fn assert_inert(&mut self, texts: &[&str]) {
        let conn = &mut self.conn;
        assert!(conn.is_closed(), "a disconnect must close");
        assert!(conn.poll_timeout().is_none(), "closed: a deadline remains");
        for text in texts {
            conn.handle_message(Incoming::Text(text), self.now);
        }
        conn.handle_message(Incoming::Binary(b"x"), self.now);
        conn.handle_timeout(self.now + Duration::from_secs(3600));
        conn.handle_disconnect(Disconnect::Eof, self.now);
        assert!(conn.poll_timeout().is_none(), "closed: a deadline remains");
        assert!(conn.poll_transmit().is_none(), "closed: a frame comes out");
        assert!(conn.poll_event().is_none(), "closed: an event comes out");
    }
}
