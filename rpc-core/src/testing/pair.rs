//! [`Pair`]: two machines wired together under virtual time.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;

use crate::Instant;
use crate::error::Disconnect;
use crate::machine::Machine;
use crate::message::{Incoming, Outgoing};

/// More rounds than this at one instant means that a machine makes no progress.
const STUCK: usize = 100_000;

/// One of the two ends. There is no third, so the enum is exhaustive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The client's end.
    Client,
    /// The server's end.
    Server,
}

/// What is on the line: what a machine sends, or what its transport answers.
enum Wire {
    Sent(Outgoing),
    Pong(Bytes),
}

/// One direction of the line.
struct Lane {
    frames: VecDeque<(Instant, Wire)>,
    /// How many text frames to lose next, for tests of lost answers.
    drop_next: usize,
}

/// A client and a server machine wired together: virtual time, latency, cuts, injected frames.
///
/// Answers pings as a transport does (switch it off with [`mute_pongs`](Self::mute_pongs) to
/// simulate a half-open socket). A machine that [aborts](Outgoing::Abort) looks to the other one
/// like a cut connection.
///
/// ```text
/// let mut pair = Pair::new(ClientConn::new(..), ServerConn::new(..), now);
/// pair.settle();                                   // until nothing more happens at this instant
/// pair.advance(Duration::from_secs(30));           // deadlines fire on the way, in order
/// assert_eq!(pair.take_client_events(), [...]);
/// println!("{}", pair.trace());
/// ```
pub struct Pair<C: Machine, S: Machine> {
    /// The client machine, for commands.
    pub client: C,
    /// The server machine, for commands.
    pub server: S,
    start: Instant,
    now: Instant,
    latency: Duration,
    pongs: bool,
    to_client: Lane,
    to_server: Lane,
    client_events: Vec<C::Event>,
    server_events: Vec<S::Event>,
    hold_events: [bool; 2],
    trace: String,
}

impl<C: Machine, S: Machine> Pair<C, S> {
    /// Connects two fresh machines at `now`, without latency.
    pub fn new(client: C, server: S, now: Instant) -> Self {
        let lane = || Lane {
            frames: VecDeque::new(),
            drop_next: 0,
        };
        Self {
            client,
            server,
            start: now,
            now,
            latency: Duration::ZERO,
            pongs: true,
            to_client: lane(),
            to_server: lane(),
            client_events: Vec::new(),
            server_events: Vec::new(),
            hold_events: [false; 2],
            trace: String::new(),
        }
    }

    /// Sets how long every frame takes from now on; order is kept.
    pub const fn set_latency(&mut self, latency: Duration) {
        self.latency = latency;
    }

    /// Returns the virtual time.
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// Returns the virtual time since the beginning.
    pub fn elapsed(&self) -> Duration {
        self.now - self.start
    }

    /// Returns the frames so far, a line for each: its time, who sent it, and what it is, such as
    /// `+20ms S> {"ok":true}`, or `+20ms S> (dropped) {"ok":true}`.
    pub fn trace(&self) -> &str {
        &self.trace
    }

    /// Stops answering pings on both ends, as a half-open socket does.
    pub const fn mute_pongs(&mut self) {
        self.pongs = false;
    }

    /// Loses the next `frames` text frames that leave `from`.
    pub const fn drop_next(&mut self, from: Side, frames: usize) {
        match from {
            Side::Client => self.to_server.drop_next += frames,
            Side::Server => self.to_client.drop_next += frames,
        }
    }

    /// Stops taking the events of one side, like an application that hangs; `false` resumes.
    pub const fn hold_events(&mut self, side: Side, hold: bool) {
        self.hold_events[side as usize] = hold;
    }

    /// Gives `side` a text frame as if the peer had sent it.
    pub fn inject(&mut self, side: Side, text: &str) {
        let (lane, from) = match side {
            Side::Client => (&mut self.to_client, 'S'),
            Side::Server => (&mut self.to_server, 'C'),
        };
        note(&mut self.trace, self.now - self.start, from, text);
        lane.frames
            .push_back((self.now, Wire::Sent(Outgoing::Text(text.into()))));
        self.settle();
    }

    /// Cuts the connection: frames in transit are lost, both ends see the end of the stream now.
    pub fn cut(&mut self) {
        note(&mut self.trace, self.now - self.start, '*', "(cut)");
        for lane in [&mut self.to_client, &mut self.to_server] {
            lane.frames.clear();
            lane.frames
                .push_back((self.now, Wire::Sent(Outgoing::Abort)));
        }
        self.settle();
    }

    /// Runs everything that is due at this instant.
    pub fn settle(&mut self) {
        for _ in 0..STUCK {
            let mut active = self.flush();
            active |= self.deliver();
            active |= fire(&mut self.client, self.now) | fire(&mut self.server, self.now);
            if !active {
                return;
            }
        }
        stuck(&self.trace);
    }

    /// Advances the time; deliveries and deadlines on the way happen in order.
    pub fn advance(&mut self, time: Duration) {
        let until = self.now + time;
        self.settle();
        while let Some(next) = self.next_instant().filter(|next| *next <= until) {
            self.now = next.max(self.now);
            self.settle();
        }
        self.now = until;
        self.settle();
    }

    /// Returns when the next delivery or deadline is. Frames for a machine that wants no input wait
    /// without a time.
    pub fn next_instant(&self) -> Option<Instant> {
        let reads = [
            self.client.is_closed() || self.client.wants_input(),
            self.server.is_closed() || self.server.wants_input(),
        ];
        let first = |lane: &Lane| lane.frames.front().map(|(due, _)| *due);
        let lanes = [
            first(&self.to_client).filter(|_| reads[0]),
            first(&self.to_server).filter(|_| reads[1]),
        ];
        let deadlines = [self.client.poll_timeout(), self.server.poll_timeout()];
        lanes.into_iter().chain(deadlines).flatten().min()
    }

    /// Returns the client's events since the last call.
    pub fn take_client_events(&mut self) -> Vec<C::Event> {
        std::mem::take(&mut self.client_events)
    }

    /// Returns the server's events since the last call.
    pub fn take_server_events(&mut self) -> Vec<S::Event> {
        std::mem::take(&mut self.server_events)
    }

    /// Moves frames from the machines to the lanes, and events from the machines to the lists.
    fn flush(&mut self) -> bool {
        let (at, due) = (self.now - self.start, self.now + self.latency);
        let mut note = |from, how: &str, frame: &Outgoing| {
            note(&mut self.trace, at, from, &format!("{how}{}", show(frame)));
        };
        let sent = |how: &str, frame: &Outgoing| note('C', how, frame);
        let mut active = drain(&mut self.client, &mut self.to_server, due, sent);
        let sent = |how: &str, frame: &Outgoing| note('S', how, frame);
        active |= drain(&mut self.server, &mut self.to_client, due, sent);
        let [client, server] = self.hold_events;
        active |= !client && take_events(&mut self.client, &mut self.client_events);
        active |= !server && take_events(&mut self.server, &mut self.server_events);
        active
    }

    /// Delivers one frame to each machine.
    fn deliver(&mut self) -> bool {
        let (to_client, to_server) = (&mut self.to_client, &mut self.to_server);
        let pong_at = self.pongs.then(|| self.now + self.latency);
        deliver(&mut self.client, to_client, to_server, self.now, pong_at)
            | deliver(&mut self.server, to_server, to_client, self.now, pong_at)
    }
}

fn take_events<M: Machine>(machine: &mut M, events: &mut Vec<M::Event>) -> bool {
    let before = events.len();
    events.extend(std::iter::from_fn(|| machine.poll_event()));
    events.len() > before
}

fn fire<M: Machine>(machine: &mut M, now: Instant) -> bool {
    let is_due = machine.poll_timeout().is_some_and(|at| at <= now);
    if is_due {
        machine.handle_timeout(now);
    }
    is_due
}

/// Delivers the next frame of a lane, if it is due and the machine reads. A ping is answered on the way
/// back, at `pong_at`.
fn deliver<M: Machine>(
    machine: &mut M,
    lane: &mut Lane,
    back: &mut Lane,
    now: Instant,
    pong_at: Option<Instant>,
) -> bool {
    let reads = machine.is_closed() || machine.wants_input();
    let is_due = lane.frames.front().is_some_and(|(due, _)| *due <= now);
    let next = (is_due && reads).then(|| lane.frames.pop_front()).flatten();
    let Some((_, wire)) = next else {
        return false;
    };
    if let (Wire::Sent(Outgoing::Ping(payload)), Some(at)) = (&wire, pong_at) {
        back.frames.push_back((at, Wire::Pong(payload.clone())));
    }
    let message = match &wire {
        Wire::Sent(Outgoing::Close(frame)) => {
            let frame = Some(frame.clone());
            machine.handle_disconnect(Disconnect::PeerClosed(frame), now);
            return true;
        }
        Wire::Sent(Outgoing::Abort) => {
            machine.handle_disconnect(Disconnect::Eof, now);
            return true;
        }
        Wire::Sent(Outgoing::Text(text)) => Incoming::Text(text.as_str()),
        Wire::Sent(Outgoing::Binary(bytes)) => Incoming::Binary(bytes),
        Wire::Sent(Outgoing::Ping(payload)) => Incoming::Ping(payload),
        Wire::Pong(payload) => Incoming::Pong(payload),
    };
    if !machine.is_closed() {
        machine.handle_message(message, now);
    }
    true
}

fn drain<M: Machine>(
    machine: &mut M,
    lane: &mut Lane,
    due: Instant,
    mut sent: impl FnMut(&str, &Outgoing),
) -> bool {
    let mut active = false;
    while let Some(frame) = machine.poll_transmit() {
        active = true;
        if lane.drop_next > 0 && matches!(frame, Outgoing::Text(_)) {
            lane.drop_next -= 1;
            sent("(dropped) ", &frame);
            continue;
        }
        sent("", &frame);
        // Latency may shrink on the way; a line never reorders.
        let due = lane.frames.back().map_or(due, |(last, _)| due.max(*last));
        lane.frames.push_back((due, Wire::Sent(frame)));
    }
    active
}

/// Returns the text for a frame to the peer.
fn show(frame: &Outgoing) -> String {
    match frame {
        Outgoing::Text(text) => text.as_str().to_owned(),
        Outgoing::Binary(bytes) => format!("(binary {} bytes)", bytes.len()),
        Outgoing::Ping(_) => "(ping)".to_owned(),
        Outgoing::Close(close) if close.reason.is_empty() => format!("(close {})", close.code),
        Outgoing::Close(close) => format!("(close {} {})", close.code, close.reason),
        Outgoing::Abort => "(abort)".to_owned(),
    }
}

/// Adds a line to a trace.
fn note(trace: &mut String, at: Duration, from: char, what: &str) {
    trace.push_str(&format!("+{}ms {from}> {what}\n", at.as_millis()));
}

#[expect(clippy::panic, reason = "an assertion of a test tool")]
fn stuck(trace: &str) -> ! {
    let tail: Vec<_> = trace.lines().rev().take(20).collect();
    panic!(
        "the machines make no progress; last frames, newest first:\n{}",
        tail.join("\n")
    );
}

crate::debug::debug_fields!([C: Machine, S: Machine] Pair<C, S>, this => {
    elapsed: this.elapsed(),
    to_client: this.to_client.frames.len(),
    to_server: this.to_server.frames.len(),
});
