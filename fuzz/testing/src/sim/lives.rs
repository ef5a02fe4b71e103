//! [`Lives`]: clients that come and go on faulty lines to one server, as each protocol has them.
#![allow(
    clippy::cast_possible_truncation,
    reason = "small numbers of a schedule"
)]

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::{Duration, Instant};

use rpc_core::reconnect::ReconnectPolicy;
use rpc_core::{CloseFrame, CloseReason, Machine};

use super::dialling::Dialling;
use super::{Bounds, Line, Outcome, Rng, Tally, ensure, lifecycles};

const MINUTE: Duration = Duration::from_secs(60);
/// More rounds than this at one instant mean that something spins.
const STUCK: usize = 10_000;

/// One connection, from the first frame to the last.
#[derive(Debug)]
pub struct Connection<C: Machine, S: Machine, T> {
    /// Both machines.
    pub line: Line<C, S>,
    /// Whose connection it is.
    pub client: usize,
    /// Why everything ended that ended with the connection.
    pub ended_by: Option<CloseReason>,
    /// Whether someone has sent what neither end has.
    pub is_disturbed: bool,
    is_closed: bool,
    /// What a test knows of it.
    pub own: T,
}

impl<C: Machine, S: Machine, T> Connection<C, S, T> {
    /// Everything that ends with the connection has the same reason.
    pub fn closes_with(&mut self, reason: &CloseReason) -> bool {
        self.ended_by.get_or_insert_with(|| reason.clone()) == reason
    }
}

/// The connections of a [`Lives`], and its clock.
#[derive(Debug)]
pub struct Connections<C: Machine, S: Machine, T> {
    /// What decides everything.
    pub rng: Rng,
    /// The time.
    pub now: Instant,
    /// All that are not over at both ends, by number.
    pub all: BTreeMap<u64, Connection<C, S, T>>,
    current: Vec<Option<u64>>,
    dialling: Vec<Dialling>,
    /// Whether everything works.
    pub calm: bool,
    /// What happened.
    pub tally: Tally,
}

impl<C: Machine, S: Machine, T> Connections<C, S, T> {
    /// None yet: so many clients dial at once, and again as this policy says.
    #[must_use]
    pub fn new(rng: Rng, clients: usize, policy: ReconnectPolicy) -> Self {
        let now = Instant::now();
        Self {
            rng,
            now,
            all: BTreeMap::new(),
            current: vec![None; clients],
            dialling: (0..clients).map(|_| Dialling::new(policy, now)).collect(),
            calm: false,
            tally: Tally::default(),
        }
    }

    /// The connection of a client.
    pub fn of(&mut self, client: usize) -> Option<&mut Connection<C, S, T>> {
        self.all.get_mut(&self.current[client]?)
    }

    /// The connection of a client whose application does something.
    pub fn acting(&mut self, client: usize) -> Option<&mut Connection<C, S, T>> {
        self.of(client).filter(|it| !it.line.client.hangs)
    }

    /// The connection of a client, and its number.
    #[must_use]
    pub fn current(&self, client: usize) -> Option<(u64, &Connection<C, S, T>)> {
        let conn = self.current[client]?;
        Some((conn, self.all.get(&conn)?))
    }

    /// Any connection.
    pub fn any(&mut self) -> Option<&mut Connection<C, S, T>> {
        let conns: Vec<u64> = self.all.keys().copied().collect();
        self.rng
            .pick(&conns)
            .and_then(|conn| self.all.get_mut(conn))
    }

    /// The computer sleeps: deadlines are handled late.
    fn sleep(&mut self, most: Duration) {
        self.tally.faults += 1;
        self.now += self.rng.duration(most);
    }

    fn fault(&mut self, client: usize, garbage: &[&str]) {
        let conn = self.current[client].and_then(|conn| self.all.get_mut(&conn));
        if let Some(conn) = conn {
            self.tally.faults += 1;
            conn.is_disturbed |= conn.line.suffer(garbage, self.now, &mut self.rng);
        }
    }

    fn close(&mut self, client: usize) {
        let (now, by_client) = (self.now, self.rng.chance(50));
        if let Some(conn) = self.of(client) {
            if by_client {
                conn.line.client.machine.close(now);
            } else {
                let frame = CloseFrame::new(CloseFrame::GOING_AWAY, "restart");
                conn.line.server.machine.close_with(frame, now);
            }
        }
    }
}

/// What a client's event means for its connection.
#[derive(Debug)]
pub enum Effect {
    /// Nothing.
    Nothing,
    /// The handshake has finished.
    Ready,
    /// The connection is over.
    Closed(CloseReason),
}

/// A machine for each end of a new line, what each may hold at most, and what a test knows of the connection.
pub type Opened<L> = (
    (<L as Lives>::Client, Bounds),
    (<L as Lives>::Server, Bounds),
    <L as Lives>::Own,
);

/// The connections of a [`Lives`].
pub type ConnectionsOf<L> =
    Connections<<L as Lives>::Client, <L as Lives>::Server, <L as Lives>::Own>;

/// Clients of a server, and what is behind them: what a protocol gives for [`random_lives`].
pub trait Lives: Sized {
    /// The client's machine.
    type Client: Machine<Event: Debug>;
    /// The server's machine.
    type Server: Machine;
    /// What the test knows of a connection.
    type Own;
    /// What neither end would send.
    const GARBAGE: &'static [&'static str];
    /// How long the computer sleeps at most.
    const SLEEP: Duration = Duration::from_secs(20 * 60);

    /// Begins.
    fn new(rng: Rng) -> Self;

    /// The connections.
    fn conns(&mut self) -> &mut ConnectionsOf<Self>;

    /// The same, to look at.
    fn see(&self) -> &ConnectionsOf<Self>;

    /// A client's line is open.
    fn open(&mut self, client: usize) -> Opened<Self>;

    /// Lets a client or the server do something.
    ///
    /// # Errors
    /// The invariant that is broken.
    fn act(&mut self, client: usize) -> Outcome;

    /// Something goes wrong which only this protocol has.
    fn own_fault(&mut self) {}

    /// The server's machine has an event.
    ///
    /// # Errors
    /// The invariant that is broken.
    fn on_server_event(&mut self, conn: u64, event: <Self::Server as Machine>::Event) -> Outcome;

    /// The client's machine has an event.
    ///
    /// # Errors
    /// The invariant that is broken.
    fn on_client_event(
        &mut self,
        conn: u64,
        event: <Self::Client as Machine>::Event,
    ) -> Outcome<Effect>;

    /// When what is behind the connections acts next by itself.
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    /// Lets it act.
    fn handle_timeout(&mut self) {}

    /// Brings the machines what there is for them. Returns whether there was something.
    ///
    /// # Errors
    /// The invariant that is broken.
    fn pass_on(&mut self) -> Outcome<bool> {
        Ok(false)
    }

    /// A connection is over at both ends.
    ///
    /// # Errors
    /// The invariant that is broken.
    fn check_ended(&self, _conn: &Connection<Self::Client, Self::Server, Self::Own>) -> Outcome {
        Ok(())
    }

    /// Whether a client whose line is whole waits for nothing.
    fn is_idle(&self, conn: u64) -> bool;

    /// Does what there is to do, and returns whether nothing is left.
    ///
    /// # Errors
    /// The invariant that is broken.
    fn serve(&mut self) -> Outcome<bool>;

    /// Checks that all works again, with clients that are back.
    ///
    /// # Errors
    /// The invariant that is broken.
    fn check_works(&mut self) -> Outcome;

    /// Checks that nothing is left, once no connection is.
    ///
    /// # Errors
    /// The invariant that is broken.
    fn check_empty(&mut self) -> Outcome {
        Ok(())
    }

    /// Lets time pass.
    ///
    /// # Errors
    /// The invariant that is broken.
    fn wait(&mut self, time: Duration) -> Outcome {
        let until = self.see().now + time;
        self.settle()?;
        while let Some(next) = next_instant(self).filter(|next| *next <= until) {
            let conns = self.conns();
            conns.now = conns.now.max(next);
            self.settle()?;
        }
        self.conns().now = until;
        self.settle()
    }

    /// Lets happen everything that happens now.
    ///
    /// # Errors
    /// The invariant that is broken.
    fn settle(&mut self) -> Outcome {
        for _ in 0..STUCK {
            if !turn(self)? {
                return Ok(());
            }
        }
        Err("nothing makes progress: something spins".to_owned())
    }

    /// Whether a client is back, on a line that is whole, and waits for nothing.
    fn is_well(&self, client: usize) -> bool {
        let conn = self.see().current(client);
        conn.is_some_and(|(number, conn)| conn.line.is_whole() && self.is_idle(number))
    }

    /// Serves everyone until all are well.
    ///
    /// # Errors
    /// The invariant that is broken.
    fn serve_all(&mut self) -> Outcome {
        for _ in 0..600 {
            self.wait(Duration::from_secs(1))?;
            let clients = self.see().current.len();
            if self.serve()? && (0..clients).all(|client| self.is_well(client)) {
                break;
            }
        }
        Ok(())
    }
}

/// One thing happens, if by chance a fault.
fn step<L: Lives>(lives: &mut L) -> Outcome {
    let clients = lives.see().current.len() as u64;
    let rng = &mut lives.conns().rng;
    let (client, kind) = (rng.below(clients) as usize, rng.below(100));
    match kind {
        0..65 => lives.act(client)?,
        65..78 => {
            let time = lives.conns().rng.duration(Duration::from_millis(400));
            lives.wait(time)?;
        }
        78..83 => {
            let time = lives.conns().rng.duration(MINUTE);
            lives.wait(time)?;
        }
        83..85 => lives.conns().sleep(L::SLEEP),
        85..97 => lives.conns().fault(client, L::GARBAGE),
        97 => lives.own_fault(),
        _ => lives.conns().close(client),
    }
    lives.settle()
}

/// Everything works again, everyone comes back, and leaves; nothing is left.
fn recover<L: Lives>(lives: &mut L) -> Outcome {
    let conns = lives.conns();
    conns.calm = true;
    for conn in conns.all.values_mut() {
        conn.line.heal();
    }
    // What is under way arrives, and so do the answers to what someone has thrown in.
    lives.wait(Duration::from_secs(5))?;
    lives.serve_all()?;
    for client in 0..lives.see().current.len() {
        ensure(lives.is_well(client), || format!("{client} is not back"))?;
    }
    lives.check_works()?;
    let conns = lives.conns();
    for conn in conns.all.values_mut() {
        conn.line.server.machine.close(conns.now);
    }
    lives.settle()?;
    ensure(lives.see().all.is_empty(), || {
        "connections are left".to_owned()
    })?;
    lives.check_empty()
}

/// Runs many random lives of the clients of a protocol, whose lines are slow, jammed, cut and half open.
///
/// # Panics
/// As [`lifecycles`].
pub fn random_lives<L: Lives>(name: &str, few: u64) {
    lifecycles(name, few, |rng, tally| {
        let mut lives = L::new(rng.clone());
        let steps = 20 + lives.conns().rng.below(120);
        for _ in 0..steps {
            step(&mut lives)?;
        }
        recover(&mut lives)?;
        *tally += lives.see().tally;
        Ok(())
    });
}

fn dial<L: Lives>(lives: &mut L, client: usize) -> bool {
    let conns = lives.conns();
    let failing = if conns.calm { 0 } else { 20 };
    if !conns.dialling[client].dials(failing, conns.now, &mut conns.rng) {
        return false;
    }
    conns.tally.lines += 1;
    let ((machine, bounds), server, own) = lives.open(client);
    let conns = lives.conns();
    let number = conns.tally.lines;
    let conn = Connection {
        line: Line::new(number, machine, server.0).with_bounds(bounds, server.1),
        client,
        ended_by: None,
        is_disturbed: false,
        is_closed: false,
        own,
    };
    conns.all.insert(number, conn);
    conns.current[client] = Some(number);
    true
}

fn client_event<L: Lives>(
    lives: &mut L,
    number: u64,
    event: <L::Client as Machine>::Event,
) -> Outcome {
    let is_closed = lives.see().all[&number].is_closed;
    ensure(!is_closed, || format!("{event:?} after the end"))?;
    let effect = lives.on_client_event(number, event)?;
    let conns = lives.conns();
    let Some(conn) = conns.all.get_mut(&number) else {
        return Ok(());
    };
    match effect {
        Effect::Nothing => {}
        Effect::Ready => conns.dialling[conn.client].ready(),
        Effect::Closed(reason) => {
            conn.is_closed = true;
            ensure(conn.closes_with(&reason), || {
                format!("{reason:?} after {:?}", conn.ended_by)
            })?;
            conns.current[conn.client] = None;
            conns.dialling[conn.client].lost(reason.retry(), conns.now, &mut conns.rng);
        }
    }
    Ok(())
}

/// When something happens next by itself.
fn next_instant<L: Lives>(lives: &L) -> Option<Instant> {
    let conns = lives.see();
    let lines = conns.all.values().filter_map(|it| it.line.next_instant());
    let dials = conns.dialling.iter().filter_map(Dialling::next_instant);
    lines.chain(dials).chain(lives.poll_timeout()).min()
}

#[expect(clippy::unwrap_used, reason = "only a turn removes a connection")]
fn line<L: Lives>(lives: &mut L, number: u64) -> &mut Line<L::Client, L::Server> {
    &mut lives.conns().all.get_mut(&number).unwrap().line
}

/// Lets happen what is due now, perhaps not all of it. Returns whether something happened.
fn turn<L: Lives>(lives: &mut L) -> Outcome<bool> {
    let now = lives.see().now;
    let mut active = false;
    for client in 0..lives.see().current.len() {
        active |= dial(lives, client);
    }
    if lives.poll_timeout().is_some_and(|at| at <= now) {
        lives.handle_timeout();
        let moved = lives.poll_timeout().is_none_or(|at| at > now);
        ensure(moved, || "a handled deadline is still due".to_owned())?;
        active = true;
    }
    let numbers: Vec<u64> = lives.see().all.keys().copied().collect();
    for number in numbers {
        active |= line(lives, number).settle(now)?;
        while let Some(event) = line(lives, number).server.next_event() {
            lives.on_server_event(number, event)?;
            active = true;
        }
        active |= lives.pass_on()?;
        while let Some(event) = line(lives, number).client.next_event() {
            client_event(lives, number, event)?;
            active = true;
        }
        let conn = &lives.see().all[&number];
        if conn.line.is_over() {
            ensure(conn.is_closed, || "closed, and nobody knows".to_owned())?;
            lives.check_ended(conn)?;
            let frames = conn.line.frames();
            lives.conns().tally.frames += frames;
            lives.conns().all.remove(&number);
        }
    }
    active |= lives.pass_on()?;
    Ok(active)
}
