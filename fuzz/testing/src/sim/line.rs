//! [`Line`]: two machines and a faulty line between them, watched for the rules of [`Machine`].

use std::collections::VecDeque;
use std::fmt;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::{Outcome, Rng, ensure, trace};
use rpc_core::Disconnect;
use rpc_core::Machine;
use rpc_core::testing::Side;
use rpc_core::{CloseFrame, Incoming, Outgoing, Text};

/// What a machine that has ended is given, to see that nothing comes out of it any more.
const LAST_WORDS: &str = "{\"type\":\"ping\",\"event\":\"x\",\"method\":\"ping\",\"id\":\"1\"}";
/// Pongs that wait at most in a jammed socket.
const MOST_PONGS: usize = 32;
/// A cut is noticed within this time, if at all.
const NOTICED_WITHIN: Duration = Duration::from_secs(60);
/// Frames take less than this.
const SLOWEST: Duration = Duration::from_secs(2);

#[derive(Clone)]
enum Wire {
    Text(Text),
    Binary(Bytes),
    Ping(Bytes),
    Pong(Bytes),
    Close(CloseFrame),
    End,
}

/// How many frames and events a machine may give out at once: what it holds when nothing is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bounds {
    /// Most frames.
    pub frames: usize,
    /// Most events.
    pub events: usize,
}

impl Bounds {
    /// These many.
    #[must_use]
    pub const fn new(frames: usize, events: usize) -> Self {
        Self { frames, events }
    }
}

/// One end of a [`Line`].
pub struct End<M: Machine> {
    /// The machine, for commands.
    pub machine: M,
    /// The application hangs: it takes no events.
    pub hangs: bool,
    /// The socket is jammed: it takes no frames.
    pub jammed: bool,
    name: char,
    inbox: VecDeque<(Instant, Wire)>,
    events: VecDeque<M::Event>,
    bounds: Bounds,
    /// Pongs that a jammed socket has not taken.
    owed: VecDeque<Wire>,
    /// What it sends arrives nowhere.
    is_cut: bool,
    /// It has sent a Close or an Abort.
    has_ended: bool,
    /// It is closed and drained, and has been seen to be inert.
    is_inert: bool,
}

impl<M: Machine> End<M> {
    fn new(machine: M, name: char) -> Self {
        Self {
            machine,
            hangs: false,
            jammed: false,
            name,
            inbox: VecDeque::new(),
            owed: VecDeque::new(),
            events: VecDeque::new(),
            bounds: Bounds::new(usize::MAX, usize::MAX),
            is_cut: false,
            has_ended: false,
            is_inert: false,
        }
    }

    /// The next event that the application has taken.
    pub fn next_event(&mut self) -> Option<M::Event> {
        self.events.pop_front()
    }

    /// Whether the machine has ended and everything has been taken from it.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.is_inert
    }

    fn reads(&self) -> bool {
        self.machine.is_closed() || self.machine.wants_input()
    }

    fn next_instant(&self) -> Option<Instant> {
        let arrival = self.inbox.front().map(|(due, _)| *due);
        let arrival = arrival.filter(|_| self.reads());
        arrival.into_iter().chain(self.machine.poll_timeout()).min()
    }

    fn lose(&mut self, learns_at: Option<Instant>) {
        self.is_cut = true;
        self.owed.clear();
        self.inbox.clear();
        self.inbox.extend(learns_at.map(|at| (at, Wire::End)));
    }

    /// Takes the next frame that has arrived.
    fn next_arrival(&mut self, now: Instant) -> Option<Wire> {
        let due = self.inbox.front().is_some_and(|(due, _)| *due <= now);
        if !due || !self.reads() {
            return None;
        }
        self.inbox.pop_front().map(|(_, wire)| wire)
    }

    /// A transport answers pings by itself.
    fn answer_ping(&mut self, wire: &Wire) {
        if let Wire::Ping(payload) = wire
            && !self.is_cut
            && !self.machine.is_closed()
            && self.owed.len() < MOST_PONGS
        {
            self.owed.push_back(Wire::Pong(payload.clone()));
        }
    }

    fn handle(&mut self, wire: &Wire, now: Instant) {
        let message = match wire {
            Wire::Text(text) => Incoming::Text(text.as_str()),
            Wire::Binary(bytes) => Incoming::Binary(bytes),
            Wire::Ping(payload) => Incoming::Ping(payload),
            Wire::Pong(payload) => Incoming::Pong(payload),
            Wire::Close(frame) => {
                let why = Disconnect::PeerClosed(Some(frame.clone()));
                return self.machine.handle_disconnect(why, now);
            }
            Wire::End => return self.machine.handle_disconnect(Disconnect::Eof, now),
        };
        if !self.machine.is_closed() {
            self.machine.handle_message(message, now);
        }
    }

    /// A deadline that is due is handled, and the next one is later: nothing spins.
    fn fire(&mut self, now: Instant) -> Outcome<bool> {
        if self.machine.poll_timeout().is_none_or(|at| at > now) {
            return Ok(false);
        }
        self.machine.handle_timeout(now);
        let moved = self.machine.poll_timeout().is_none_or(|at| at > now);
        ensure(moved, || {
            format!("{}: a handled deadline is still due", self.name)
        })?;
        Ok(true)
    }

    fn take_frames(&mut self) -> Outcome<Vec<Outgoing>> {
        let mut frames = Vec::new();
        while let Some(frame) = self.machine.poll_transmit() {
            ensure(!self.has_ended, || {
                format!("{}: a frame after the last", self.name)
            })?;
            self.has_ended = matches!(frame, Outgoing::Close(_) | Outgoing::Abort);
            frames.push(frame);
        }
        ensure(frames.len() <= self.bounds.frames, || {
            format!("{}: {} frames were waiting", self.name, frames.len())
        })?;
        Ok(frames)
    }

    fn take_events(&mut self) -> Outcome<bool> {
        let before = self.events.len();
        while let Some(event) = self.machine.poll_event() {
            self.events.push_back(event);
        }
        let taken = self.events.len() - before;
        ensure(taken <= self.bounds.events, || {
            format!("{}: {taken} events were waiting", self.name)
        })?;
        Ok(taken > 0)
    }

    /// Closed and drained: no deadline remains, and nothing comes out whatever goes in.
    fn check_inert(&mut self, now: Instant) -> Outcome {
        let name = self.name;
        if self.is_inert || !self.machine.is_closed() || self.hangs || self.jammed {
            return Ok(());
        }
        let machine = &mut self.machine;
        ensure(machine.poll_timeout().is_none(), || {
            format!("{name}: closed, and a deadline remains")
        })?;
        machine.handle_message(Incoming::Text(LAST_WORDS), now);
        machine.handle_message(Incoming::Pong(b""), now);
        machine.handle_timeout(now);
        machine.handle_disconnect(Disconnect::Eof, now);
        let quiet = machine.poll_transmit().is_none() && machine.poll_event().is_none();
        ensure(quiet && machine.poll_timeout().is_none(), || {
            format!("{name}: closed, and not inert")
        })?;
        self.is_inert = true;
        Ok(())
    }
}

/// A client and a server machine with a line between them that may be slow, jammed, cut, or open at
/// one end only.
///
/// Unlike a [`Pair`](rpc_core::testing::Pair) it has no clock, so that several lines share one: the
/// world they are part of tells the time. Whatever the machines do is checked against the rules of
/// [`Machine`] that can be seen from outside.
pub struct Line<C: Machine, S: Machine> {
    /// The client's end.
    pub client: End<C>,
    /// The server's end.
    pub server: End<S>,
    /// How long frames take from now on. They never overtake each other.
    pub latency: Duration,
    id: u64,
    frames: u64,
}

impl<C: Machine, S: Machine> Line<C, S> {
    /// An open line between two fresh machines. The id is for the narration only.
    pub fn new(id: u64, client: C, server: S) -> Self {
        Self {
            client: End::new(client, 'C'),
            server: End::new(server, 'S'),
            latency: Duration::ZERO,
            id,
            frames: 0,
        }
    }

    /// Sets what the machines may hold at most.
    #[must_use]
    pub const fn with_bounds(mut self, client: Bounds, server: Bounds) -> Self {
        self.client.bounds = client;
        self.server.bounds = server;
        self
    }

    /// How many frames have left the machines.
    #[must_use]
    pub const fn frames(&self) -> u64 {
        self.frames
    }

    /// Whether both machines have ended and are drained.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.client.is_over() && self.server.is_over()
    }

    /// When something happens next by itself.
    #[must_use]
    pub fn next_instant(&self) -> Option<Instant> {
        let ends = [self.client.next_instant(), self.server.next_instant()];
        ends.into_iter().flatten().min()
    }

    /// The line breaks: what is under way is lost, and what is sent from now on too. Each end learns
    /// of it at its time, or never.
    pub fn cut(&mut self, client_learns: Option<Instant>, server_learns: Option<Instant>) {
        trace(|| format!("[{}] the line is cut", self.id));
        self.client.lose(client_learns);
        self.server.lose(server_learns);
    }

    /// Whether the line was not cut and neither machine has ended.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        !self.client.is_cut && !self.client.machine.is_closed() && !self.server.machine.is_closed()
    }

    /// Nothing hangs or is jammed any more, and ends that would never have learned of a cut learn of
    /// it by themselves if they can.
    pub const fn heal(&mut self) {
        self.latency = Duration::ZERO;
        self.client.hangs = false;
        self.client.jammed = false;
        self.server.hangs = false;
        self.server.jammed = false;
    }

    /// One of the faults that lines have: a cut that both ends notice, or late, or never; delays;
    /// an application that hangs, a socket that is jammed, or the end of that; one of these texts
    /// to either end. Returns whether it was a text.
    pub fn suffer(&mut self, garbage: &[&str], now: Instant, rng: &mut Rng) -> bool {
        match rng.below(10) {
            0 | 1 => self.cut(Some(now), Some(now)),
            2 => {
                let mut learns = || rng.chance(70).then(|| now + rng.duration(NOTICED_WITHIN));
                let (client, server) = (learns(), learns());
                self.cut(client, server);
            }
            3 => self.latency = rng.duration(SLOWEST),
            4 => self.client.hangs = !self.client.hangs,
            5 => self.client.jammed = !self.client.jammed,
            6 => self.server.jammed = !self.server.jammed,
            7 => self.server.hangs = !self.server.hangs,
            _ => {
                let side = if rng.chance(50) {
                    Side::Client
                } else {
                    Side::Server
                };
                if let Some(text) = rng.pick(garbage) {
                    self.inject(side, text, now);
                }
                return true;
            }
        }
        false
    }

    /// Gives an end a text as if the peer had sent it.
    pub fn inject(&mut self, side: Side, text: &str, now: Instant) {
        trace(|| format!("[{}] to the {side:?}: {text}", self.id));
        let wire = Wire::Text(Text::from(text));
        match side {
            Side::Client if !self.client.is_cut => arrive(&mut self.client.inbox, now, wire),
            Side::Server if !self.server.is_cut => arrive(&mut self.server.inbox, now, wire),
            _ => {}
        }
    }

    /// Lets happen what is due now. Returns whether something happened; then there may be more.
    ///
    /// # Errors
    /// The rule that a machine has broken.
    pub fn settle(&mut self, now: Instant) -> Outcome<bool> {
        let mut active = false;
        let due = now + self.latency;
        while let Some(wire) = self.client.next_arrival(now) {
            active = true;
            self.client.answer_ping(&wire);
            self.client.handle(&wire, now);
        }
        while let Some(wire) = self.server.next_arrival(now) {
            active = true;
            self.server.answer_ping(&wire);
            self.server.handle(&wire, now);
        }
        active |= self.client.fire(now)? | self.server.fire(now)?;
        let sent = send(self.id, &mut self.client, &mut self.server, due)?;
        let sent = sent + send(self.id, &mut self.server, &mut self.client, due)?;
        self.frames += sent;
        active |= sent > 0;
        if !self.client.hangs {
            active |= self.client.take_events()?;
        }
        if !self.server.hangs {
            active |= self.server.take_events()?;
        }
        self.client.check_inert(now)?;
        self.server.check_inert(now)?;
        Ok(active)
    }
}

/// A line may become faster on the way; it never reorders.
fn arrive(inbox: &mut VecDeque<(Instant, Wire)>, due: Instant, wire: Wire) {
    let due = inbox.back().map_or(due, |(last, _)| due.max(*last));
    inbox.push_back((due, wire));
}

fn send<M: Machine, P: Machine>(
    id: u64,
    from: &mut End<M>,
    to: &mut End<P>,
    due: Instant,
) -> Outcome<u64> {
    if from.jammed {
        return Ok(0);
    }
    for pong in from.owed.drain(..) {
        arrive(&mut to.inbox, due, pong);
    }
    let frames = from.take_frames()?;
    let sent = frames.len() as u64;
    for frame in frames {
        trace(|| {
            let shown = show(&frame);
            format!("[{id}] {}> {shown}", from.name)
        });
        if from.is_cut {
            continue;
        }
        let wire = match frame {
            Outgoing::Text(text) => Wire::Text(text),
            Outgoing::Binary(bytes) => Wire::Binary(bytes),
            Outgoing::Ping(payload) => Wire::Ping(payload),
            Outgoing::Close(frame) => Wire::Close(frame),
            Outgoing::Abort => Wire::End,
            other => return Err(format!("{}: the line has no {other:?}", from.name)),
        };
        arrive(&mut to.inbox, due, wire);
    }
    Ok(sent)
}

/// How a frame looks in the narration.
fn show(frame: &Outgoing) -> String {
    match frame {
        Outgoing::Text(text) => text.as_str().to_owned(),
        Outgoing::Binary(bytes) => format!("(binary {} bytes)", bytes.len()),
        Outgoing::Ping(_) => "(ping)".to_owned(),
        Outgoing::Close(close) if close.reason.is_empty() => format!("(close {})", close.code),
        Outgoing::Close(close) => format!("(close {} {})", close.code, close.reason),
        Outgoing::Abort => "(abort)".to_owned(),
        other => format!("{other:?}"),
    }
}

impl<M: Machine> fmt::Debug for End<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("End")
            .field("arriving", &self.inbox.len())
            .field("events", &self.events.len())
            .field("hangs", &self.hangs)
            .field("jammed", &self.jammed)
            .field("is_cut", &self.is_cut)
            .finish_non_exhaustive()
    }
}

impl<C: Machine, S: Machine> fmt::Debug for Line<C, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line")
            .field("client", &self.client)
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}
