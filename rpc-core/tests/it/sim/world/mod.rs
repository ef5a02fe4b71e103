//! Nodes, clients, the store and the lines between them, under one clock.

mod calls;
mod faults;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

use switchboard_testing::sim::{Outcome, Rng, Tally, ensure, tell};

use super::client::Client;
use super::node::{Answer, Call, Input, Node, Out};
use super::owner::Ask;
use super::store::{CHANNELS, SESSIONS, Store};

/// Microseconds since the beginning.
pub type Time = u64;
pub const SECOND: Time = 1_000_000;
const MILLI: Time = 1_000;

const NODES: usize = 3;
const CLIENTS: usize = 4;
/// The most records that the store returns at once.
pub const PAGE: usize = 5;
/// How long there is peace at the end of a life.
const CALM: Time = 75 * SECOND;

/// What is broken on purpose, to see that a life then fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Break {
    #[default]
    Nothing,
    /// The store does not compare sequence numbers.
    Fence,
    /// The store does not remember ids.
    Dedup,
    /// A lease ends here when it ends in the store, by a slower clock.
    Margin,
    /// What the feed has lost is not read from the store.
    Fill,
    /// No one asks whether the feed has lost its end.
    Check,
    /// Nodes work on without their lease.
    Lease,
    /// The same, and owners do not look for their successors.
    Successor,
    /// Owners do not write that they are.
    OwnerRecord,
    /// No one ends what a dead owner has begun.
    Recovery,
    /// What is stored is acknowledged before it is.
    Answer,
    /// Each attempt has an id of its own.
    Ids,
}

enum Event {
    Node {
        slot: usize,
        life: u32,
        input: Input,
    },
    Timer {
        slot: usize,
        life: u32,
    },
    Store {
        slot: usize,
        life: u32,
        call: Call,
    },
    Answer {
        client: usize,
        id: u32,
        answer: Answer,
    },
    Client(usize),
    Start(usize),
    Resume(usize),
    Interrupt(usize),
    Fault,
}

struct Entry {
    at: Reverse<(Time, u64)>,
    event: Event,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at.cmp(&other.at)
    }
}

/// A machine on which one node after another lives.
struct Slot {
    node: Option<Node>,
    life: u32,
    /// The speed of its clock in thousandths.
    rate: u64,
    paused_until: Time,
    parked: Vec<(u32, Input)>,
    cut_until: Time,
    timer_at: Time,
    subscribed: bool,
    /// The last record of each channel that was delivered here.
    upto: [u64; CHANNELS],
}

pub struct World {
    rng: Rng,
    base: Instant,
    now: Time,
    pushed: u64,
    queue: BinaryHeap<Entry>,
    store: Store,
    store_down_until: Time,
    full_until: Time,
    slow_until: Time,
    slots: [Slot; NODES],
    clients: [Client; CLIENTS],
    broken: Break,
    /// When the faults end.
    calm_at: Time,
    messages: u64,
    faults: u64,
}

/// Lives one life.
pub fn live(rng: &Rng, tally: &mut Tally, broken: Break) -> Outcome {
    let mut world = World::new(rng.clone(), broken);
    let lived = world.run();
    tally.lines += world
        .slots
        .iter()
        .map(|slot| u64::from(slot.life))
        .sum::<u64>();
    tally.frames += world.messages;
    tally.faults += world.faults;
    for (ended, answered) in world.clients.iter().map(Client::figures) {
        tally.ended += ended;
        tally.answered += answered;
    }
    lived
}

impl World {
    fn new(mut rng: Rng, broken: Break) -> Self {
        let slots = std::array::from_fn(|_| Slot {
            node: None,
            life: 0,
            rate: 950 + rng.below(101),
            paused_until: 0,
            parked: Vec::new(),
            cut_until: 0,
            timer_at: 0,
            subscribed: false,
            upto: [0; CHANNELS],
        });
        let clients = std::array::from_fn(|number| Client::new(number, &mut rng));
        let calm_at = (20 + rng.below(50)) * SECOND;
        let mut world = Self {
            rng,
            base: Instant::now(),
            now: 0,
            pushed: 0,
            queue: BinaryHeap::new(),
            store: Store::new(broken),
            store_down_until: 0,
            full_until: 0,
            slow_until: 0,
            slots,
            clients,
            broken,
            calm_at,
            messages: 0,
            faults: 0,
        };
        for slot in 0..NODES {
            world.after(SECOND, Event::Start(slot));
        }
        for client in 0..CLIENTS {
            world.wake(client);
        }
        world.after(6 * SECOND, Event::Fault);
        world
    }

    fn run(&mut self) -> Outcome {
        let mut calm = false;
        while let Some(entry) = self.queue.pop() {
            let Reverse((at, _)) = entry.at;
            if at > self.calm_at && !calm {
                calm = true;
                self.make_peace();
            }
            if at > self.calm_at + CALM {
                break;
            }
            self.now = at;
            self.store.full = self.now < self.full_until;
            self.handle(entry.event)?;
            if let Some(violation) = self.store.violation.take() {
                return Err(violation);
            }
        }
        self.judge()
    }

    fn judge(&self) -> Outcome {
        for client in &self.clients {
            client.judge(&self.store)?;
        }
        for slot in &self.slots {
            for channel in 0..CHANNELS {
                let last = self.store.last_of(channel);
                ensure(slot.node.is_some() && slot.upto[channel] == last, || {
                    format!(
                        "missed: a node has channel {channel} up to {} of {last}",
                        slot.upto[channel]
                    )
                })?;
            }
        }
        Ok(())
    }

    fn push(&mut self, at: Time, event: Event) {
        self.pushed += 1;
        let at = Reverse((at, self.pushed));
        self.queue.push(Entry { at, event });
    }

    /// Some time within this.
    fn after(&mut self, within: Time, event: Event) {
        let at = self.now + 1 + self.rng.below(within);
        self.push(at, event);
    }

    /// A clock's time.
    fn local(&self, slot: usize) -> Instant {
        self.base + Duration::from_micros(self.now * self.slots[slot].rate / 1_000)
    }

    /// When a clock shows this.
    fn at(&self, slot: usize, local: Instant) -> Time {
        let micros = local.saturating_duration_since(self.base).as_micros() as u64 + 1;
        (micros * 1_000).div_ceil(self.slots[slot].rate)
    }

    /// When a message between a node and the store arrives, if it does.
    fn line(&mut self, slot: usize) -> Option<Time> {
        self.messages += 1;
        if self.now >= self.calm_at {
            return Some(self.now + 200 + self.rng.below(3 * MILLI));
        }
        let cut = self.slots[slot].cut_until;
        if cut > self.now {
            let at = cut + self.rng.below(100 * MILLI);
            return Some(at).filter(|_| self.rng.chance(50));
        }
        let most = match self.rng.below(1_000) {
            // Somewhere between the node and the store it is held up, as if the node had paused.
            0..4 => 25 * SECOND,
            4..12 => return None,
            12..100 => 200 * MILLI,
            _ if self.now < self.slow_until => 3 * SECOND,
            _ => 5 * MILLI,
        };
        Some(self.now + 200 + self.rng.below(most))
    }

    fn handle(&mut self, event: Event) -> Outcome {
        match event {
            Event::Start(slot) => self.start(slot),
            Event::Node { slot, life, input } => self.input(slot, life, input),
            Event::Timer { slot, life } => {
                let current = self.slots[slot].timer_at == self.now;
                if current {
                    self.input(slot, life, Input::Timer)
                } else {
                    Ok(())
                }
            }
            Event::Store { slot, life, call } => {
                self.call(slot, life, call);
                Ok(())
            }
            Event::Answer { client, id, answer } => {
                self.clients[client].handle(id, answer, self.now, &mut self.rng);
                self.wake(client);
                Ok(())
            }
            Event::Client(client) => {
                self.send(client);
                Ok(())
            }
            Event::Resume(slot) => self.resume(slot),
            Event::Interrupt(slot) => {
                let life = self.slots[slot].life;
                self.input(slot, life, Input::Interrupted)
            }
            Event::Fault => {
                self.fault();
                Ok(())
            }
        }
    }

    fn start(&mut self, slot: usize) -> Outcome {
        if self.slots[slot].node.is_some() {
            return Ok(());
        }
        self.slots[slot].life += 1;
        let life = self.slots[slot].life;
        let id = format!("{slot}-{life}");
        tell(|| format!("{} node {id} starts", self.now));
        let now = self.local(slot);
        self.slots[slot].node = Some(Node::new(self.broken, now));
        self.input(slot, life, Input::Timer)
    }

    fn resume(&mut self, slot: usize) -> Outcome {
        if self.slots[slot].paused_until > self.now {
            return Ok(());
        }
        let mut parked = std::mem::take(&mut self.slots[slot].parked);
        // The timer comes before what has arrived, or after it.
        let life = self.slots[slot].life;
        let at = if self.rng.chance(50) { 0 } else { parked.len() };
        parked.insert(at, (life, Input::Timer));
        parked
            .into_iter()
            .try_for_each(|(life, input)| self.input(slot, life, input))
    }

    /// Lets a node handle what has reached it, and does what it wants.
    fn input(&mut self, slot: usize, life: u32, input: Input) -> Outcome {
        let (local, paused) = (self.local(slot), self.slots[slot].paused_until > self.now);
        let at = &mut self.slots[slot];
        let Some(node) = at.node.as_mut().filter(|_| at.life == life) else {
            return Ok(());
        };
        if paused {
            at.parked.push((life, input));
            return Ok(());
        }
        if let Input::Subscribed { last } = &input
            && node.followed(0).is_none()
        {
            at.upto = *last;
        }
        let mut out = Out::default();
        node.handle(input, local, &mut self.rng, &mut out);
        let lost = node.lost && !matches!(self.broken, Break::Lease | Break::Successor);
        let next = node.poll_timeout();
        self.outputs(slot, life, out)?;
        if lost {
            tell(|| format!("{} node {slot}-{life} has lost its lease", self.now));
            self.kill(slot, SECOND);
        } else if let Some(next) = next {
            let next = self.at(slot, next).max(self.now + 1);
            let timer_at = self.slots[slot].timer_at;
            if timer_at <= self.now || next < timer_at {
                self.slots[slot].timer_at = next;
                self.push(next, Event::Timer { slot, life });
            }
        }
        Ok(())
    }

    fn outputs(&mut self, slot: usize, life: u32, out: Out) -> Outcome {
        for (channel, sequence, id) in out.delivered {
            let upto = &mut self.slots[slot].upto[channel];
            let next = self.store.after(channel, *upto).first();
            ensure(next.is_some_and(|next| next.sequence == sequence), || {
                format!(
                    "order: a node has {id} at {sequence} of channel {channel} after {upto}, not {next:?}"
                )
            })?;
            *upto = sequence;
        }
        for (session, fence) in out.begun {
            tell(|| {
                format!(
                    "{} node {slot}-{life} owns session {session} by {fence}",
                    self.now
                )
            });
            self.store.begin(CHANNELS + session, fence);
            self.one_owner(session)?;
        }
        for call in out.calls {
            // The process stops between its last look at the lease and the write.
            let stops =
                matches!(call, Call::Write { .. }) && self.now < self.calm_at && self.rng.chance(3);
            let stopped = if stops {
                self.rng.below(25 * SECOND)
            } else {
                0
            };
            if let Some(at) = self.line(slot) {
                self.push(at + stopped, Event::Store { slot, life, call });
            }
        }
        for (node, session, ask) in out.forwards {
            let ask = Ask {
                forwarded: true,
                ..ask
            };
            let to = self
                .slots
                .iter()
                .position(|at| at.node.as_ref().is_some_and(|at| at.id == node));
            match (self.line(slot), to) {
                (Some(at), Some(to)) => {
                    let life = self.slots[to].life;
                    let input = Input::Prompt { session, ask };
                    self.push(
                        at,
                        Event::Node {
                            slot: to,
                            life,
                            input,
                        },
                    );
                }
                _ => self.answer(ask.client, ask.id, Answer::Failed),
            }
        }
        for (client, id, answer) in out.answers {
            // Lines to clients break too.
            if self.now >= self.calm_at || self.rng.chance(95) {
                self.answer(client, id, answer);
            }
        }
        Ok(())
    }

    fn answer(&mut self, client: usize, id: u32, answer: Answer) {
        self.messages += 1;
        self.after(20 * MILLI, Event::Answer { client, id, answer });
    }

    /// Two nodes never believe at once that they may write.
    fn one_owner(&self, session: usize) -> Outcome {
        let owners = (0..NODES).filter(|slot| {
            let node = self.slots[*slot].node.as_ref();
            node.is_some_and(|node| node.owns(session, self.local(*slot)))
        });
        let owners: Vec<_> = owners.collect();
        ensure(owners.len() < 2, || {
            format!("two leases: {owners:?} own session {session}")
        })
    }

    fn wake(&mut self, client: usize) {
        let late = self.now >= self.calm_at;
        if let Some(at) = self.clients[client].wakes(late) {
            self.push(at.max(self.now + 1), Event::Client(client));
        }
    }

    /// A client sends what is due to some node.
    fn send(&mut self, client: usize) {
        let late = self.now >= self.calm_at;
        let before = self.clients[client].wakes(late);
        if let Some(attempt) = self.clients[client].due(self.now, late, &mut self.rng) {
            let slot = self.rng.below(NODES as u64) as usize;
            let life = self.slots[slot].life;
            self.messages += 1;
            if self.slots[slot].node.is_none() {
                self.answer(client, attempt.id, Answer::Failed);
            } else if late || self.rng.chance(97) {
                let (id, place) = (attempt.id, attempt.place);
                let input = if self.clients[client].chats {
                    Input::Chat {
                        client,
                        id,
                        channel: place,
                    }
                } else {
                    let ask = Ask {
                        client,
                        id,
                        forwarded: false,
                    };
                    Input::Prompt {
                        session: place,
                        ask,
                    }
                };
                self.after(20 * MILLI, Event::Node { slot, life, input });
            }
            self.wake(client);
        } else if self.clients[client].wakes(late) != before {
            self.wake(client);
        }
    }
}

const _: () = assert!(SESSIONS == 2, "the store names its sessions");
