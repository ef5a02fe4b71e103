//! The rules of [`Machine`] as functions: call them from the tests of every machine.
//!
//! Each panics with the rule that was broken.

use std::fmt::Debug;
use std::hash::Hash;
use std::time::Duration;

use super::schedule::{Rng, Step, schedule};
use crate::Instant;
use crate::error::Disconnect;
use crate::machine::Machine;
use crate::message::{Incoming, Outgoing};

#[track_caller]
fn drain<M: Machine>(machine: &mut M) -> (usize, usize) {
    let mut frames = 0;
    let mut is_last = false;
    while let Some(frame) = machine.poll_transmit() {
        check(!is_last, "a Close or an Abort is the last", &frames);
        is_last = matches!(frame, Outgoing::Close(_) | Outgoing::Abort);
        frames += 1;
    }
    let events = std::iter::from_fn(|| machine.poll_event()).count();
    (frames, events)
}

#[track_caller]
fn check(holds: bool, rule: &str, detail: &dyn Debug) {
    if !holds {
        broken(rule, detail);
    }
}

#[track_caller]
#[expect(clippy::panic, reason = "an assertion of a test tool")]
fn broken(rule: &str, detail: &dyn Debug) -> ! {
    panic!("rule broken: {rule} ({detail:?})");
}

/// Rule 3: handling a deadline at its time moves the next deadline later, or ends them. Runs the
/// machine through `rounds` deadlines.
#[track_caller]
pub fn timeouts_make_progress<M: Machine>(machine: &mut M, rounds: usize) {
    for round in 0..rounds {
        drain(machine);
        let Some(at) = machine.poll_timeout() else {
            return;
        };
        machine.handle_timeout(at);
        drain(machine);
        let next = machine.poll_timeout();
        let is_later = next.is_none_or(|next| next > at);
        check(is_later, "a handled deadline moves", &(round, at, next));
    }
}

/// Rule 3: a call before the deadline changes nothing.
#[track_caller]
pub fn early_timeout_is_a_no_op<M: Machine>(machine: &mut M, now: Instant) {
    drain(machine);
    let Some(at) = machine.poll_timeout().filter(|at| *at > now) else {
        return;
    };
    machine.handle_timeout(now);
    check(drain(machine) == (0, 0), "early timeouts do nothing", &at);
    let next = machine.poll_timeout();
    check(next == Some(at), "an early timeout keeps the deadline", &at);
}

/// Checks a clock jump: a machine slept while the answer to its ping was due. It must ping once
/// more and give the peer time to answer, and close only if the peer stays silent.
#[track_caller]
pub fn a_late_deadline_gives_one_fresh_grace<M: Machine>(machine: &mut M) {
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    let mut slept = Duration::ZERO;
    let mut awake = None;
    while !machine.is_closed() {
        let Some(at) = machine.poll_timeout() else {
            broken("a silent peer is given up", &"no deadline is left");
        };
        machine.handle_timeout(at + slept);
        slept = Duration::ZERO;
        let pings = pings(machine);
        match awake {
            None if pings > 0 => {
                slept = DAY;
                awake = Some(at + DAY);
            }
            None => {}
            Some(awake) => {
                let is_first = at < awake;
                let is_over = is_first && machine.is_closed();
                check(!is_over, "a machine that slept gives time", &at);
                let pinged = !is_first || pings == 1;
                check(pinged, "a machine that slept pings again", &pings);
                check(at < awake + DAY, "there is one fresh grace", &at);
            }
        }
    }
    check(awake.is_some(), "a silent peer is pinged", &());
}

/// Takes the output and returns the number of pings.
fn pings<M: Machine>(machine: &mut M) -> usize {
    let frames = std::iter::from_fn(|| machine.poll_transmit());
    let pings = frames
        .filter(|frame| matches!(frame, Outgoing::Ping(_)))
        .count();
    while machine.poll_event().is_some() {}
    pings
}

/// Rule 5: after a disconnect and a drain, no input causes any output.
#[track_caller]
pub fn closed_is_inert<M: Machine>(machine: &mut M, texts: &[&str], now: Instant) {
    machine.handle_disconnect(Disconnect::Eof, now);
    check(machine.is_closed(), "a disconnect must close", &());
    drain(machine);
    let deadline = machine.poll_timeout();
    check(deadline.is_none(), "closed: no deadline remains", &());
    let later = now + Duration::from_secs(3600);
    for text in texts {
        machine.handle_message(Incoming::Text(text), later);
    }
    machine.handle_message(Incoming::Ping(b"x"), later);
    machine.handle_message(Incoming::Pong(b"x"), later);
    machine.handle_message(Incoming::Binary(b"x"), later);
    machine.handle_timeout(later);
    machine.handle_disconnect(Disconnect::PeerClosed(None), later);
    check(drain(machine) == (0, 0), "closed: nothing comes out", &());
    let deadline = machine.poll_timeout();
    check(deadline.is_none(), "closed: no deadline comes back", &());
    check(machine.is_closed(), "closed must stay closed", &());
}

/// Rule 4: no text panics, and the machine can be drained after every input.
#[track_caller]
pub fn any_text_is_survived<M: Machine>(machine: &mut M, texts: &[&str], now: Instant) {
    for text in texts {
        machine.handle_message(Incoming::Text(text), now);
        let (frames, events) = drain(machine);
        check(frames + events < 10_000, "one frame is no flood", text);
    }
    machine.handle_message(Incoming::Binary(b"\xff\x00"), now);
    drain(machine);
}

/// Returns texts that have broken parsers: wrong types, deep nesting, half frames, odd Unicode.
#[must_use]
pub fn nasty_texts() -> Vec<String> {
    let deep = 100_000;
    let mut texts: Vec<String> = [
        "",
        " ",
        "{",
        "}",
        "[]",
        "{}",
        "null",
        "0",
        "\"\"",
        "{\"",
        "{\"a\":}",
        "{\"a\":1,}",
        "{\"type\":null}",
        "{\"id\":null,\"event\":null,\"callId\":null,\"method\":null}",
        "{\"id\":1e999}",
        "{\"id\":{},\"event\":[],\"callId\":[[]],\"method\":{}}",
        "{\"event\":\"\\ud800\"}",
        "{\"event\":\"\\u0000\"}",
        "{\"\\u0065vent\":\"x\"}",
        "\u{feff}{}",
        "{} {}",
        "{\"event\":\"a\",\"event\":\"b\"}",
    ]
    .map(str::to_owned)
    .into();
    texts.push("[".repeat(deep));
    texts.push("{\"data\":".repeat(deep));
    let [open, close] = ["[", "]"].map(|it| it.repeat(deep));
    texts.push(format!("{{\"data\":{open}{close}}}"));
    texts.push(format!("{{\"event\":\"{}\"}}", "x".repeat(1 << 20)));
    texts
}

/// The operations of a protocol for [`every_call_ends_once`].
pub trait Calls {
    /// The machine that calls.
    type Client: Machine;
    /// The machine that is called.
    type Server: Machine;
    /// The id of a call.
    type Id: Copy + Eq + Hash + Debug;

    /// Returns a connected pair whose handshake has finished.
    fn connect(&mut self, now: Instant, entropy: u64) -> super::Pair<Self::Client, Self::Server>;
    /// Starts a call; `None` if it is refused at once.
    fn call(&mut self, client: &mut Self::Client, now: Instant) -> Option<Self::Id>;
    /// Answers the open request with this index (modulo their number), if there is one.
    fn answer(&mut self, server: &mut Self::Server, index: u64, now: Instant);
    /// Cancels the call on the caller's side. It counts as ended.
    fn cancel(&mut self, client: &mut Self::Client, id: Self::Id, now: Instant);
    /// Passes on the server's events, for [`answer`](Self::answer).
    fn server_event(&mut self, event: <Self::Server as Machine>::Event);
    /// Returns the call that this event ends, if any.
    fn ended(&mut self, event: &<Self::Client as Machine>::Event) -> Option<Self::Id>;
}

/// Rule 5: over a random schedule of calls, answers, late answers, timeouts and cuts, every call
/// ends exactly once. At the end the connection is cut and everything must have ended.
///
/// # Errors
/// What went wrong. Report it together with the seed, which repeats it.
pub fn every_call_ends_once<P: Calls>(
    calls: &mut P,
    rng: &mut Rng,
    steps: usize,
    now: Instant,
) -> Result<(), String> {
    // In an order that the seed alone decides.
    let mut open = Vec::new();
    let mut pair = calls.connect(now, rng.next_u64());
    collect(&mut open, calls, &mut pair)?;
    for step in schedule(rng, steps) {
        let now = pair.now();
        match step {
            Step::Call => {
                if let Some(id) = calls.call(&mut pair.client, now) {
                    if open.contains(&id) {
                        return Err(format!("call id {id:?} was given twice"));
                    }
                    open.push(id);
                }
            }
            Step::Answer => calls.answer(&mut pair.server, rng.next_u64(), now),
            Step::Cancel => {
                if let Some(id) = rng.pick(&open).copied() {
                    calls.cancel(&mut pair.client, id, now);
                    remove(&mut open, id);
                }
            }
            Step::LoseAnswer => pair.drop_next(super::Side::Server, 1),
            Step::Wait(time) => pair.advance(time),
            Step::Latency(time) => pair.set_latency(time),
            Step::Cut => {
                pair.cut();
                collect(&mut open, calls, &mut pair)?;
                all_ended(&open)?;
                pair = calls.connect(now, rng.next_u64());
            }
        }
        pair.settle();
        collect(&mut open, calls, &mut pair)?;
    }
    pair.cut();
    collect(&mut open, calls, &mut pair)?;
    all_ended(&open)
}

/// Takes the calls that have ended from those in flight.
fn collect<P: Calls>(
    open: &mut Vec<P::Id>,
    calls: &mut P,
    pair: &mut super::Pair<P::Client, P::Server>,
) -> Result<(), String> {
    for event in pair.take_server_events() {
        calls.server_event(event);
    }
    for event in pair.take_client_events() {
        if let Some(id) = calls.ended(&event)
            && !remove(open, id)
        {
            return Err(format!("call {id:?} ended twice, or was never made"));
        }
    }
    Ok(())
}

fn remove<I: Copy + PartialEq>(open: &mut Vec<I>, id: I) -> bool {
    let place = open.iter().position(|open| *open == id);
    place.map(|place| open.remove(place)).is_some()
}

fn all_ended(open: &[impl Debug]) -> Result<(), String> {
    if open.is_empty() {
        return Ok(());
    }
    Err(format!("calls that never ended: {open:?}"))
}
