//! The toy machines under virtual time: rules, timeouts, late answers, random schedules.

use std::time::Instant;

use rpc_core::testing::conformance::{self, Calls};
use rpc_core::testing::{Pair, Side};
use rpc_core::{CallError, CallId, CloseReason, Delivery, Machine};
use switchboard_testing::sim;

use crate::toy::guest::{Guest, GuestEvent};
use crate::toy::host::{Host, HostEvent};
use crate::toy::pair;

#[test]
fn the_trace_marks_a_frame_that_is_lost() {
    let mut pair = pair(Instant::now(), 7);
    pair.take_client_events();
    pair.drop_next(Side::Server, 1);
    pair.server.ask("lost", pair.now()).unwrap();
    pair.settle();
    assert_eq!(pair.take_client_events(), []);
    let last = pair.trace().lines().last().unwrap();
    assert!(last.starts_with("+0ms S> (dropped) {"), "{last}");
}

#[test]
fn a_cut_ends_every_call_with_its_delivery() {
    let mut pair = pair(Instant::now(), 7);
    let sent = pair.server.ask("sent", pair.now()).unwrap();
    pair.settle();
    pair.take_server_events();
    let unsent = pair.server.ask("unsent", pair.now()).unwrap();
    pair.server
        .handle_disconnect(rpc_core::Disconnect::Eof, pair.now());
    let mut events: Vec<_> = std::iter::from_fn(|| pair.server.poll_event()).collect();
    assert_eq!(events.pop(), Some(HostEvent::Closed(CloseReason::Lost)));
    for (call, delivery) in [(sent, Delivery::Unknown), (unsent, Delivery::NotSent)] {
        let error = CallError::Closed {
            reason: CloseReason::Lost,
            delivery,
        };
        assert!(
            events.contains(&HostEvent::Answer(call, Err(error))),
            "{delivery:?}"
        );
    }
}

#[test]
fn both_machines_conform() {
    let nasty = conformance::nasty_texts();
    let texts: Vec<&str> = nasty.iter().map(String::as_str).collect();
    let now = Instant::now();
    let mut ready = pair(now, 7);
    ready.server.ask("?", now).unwrap();
    conformance::early_timeout_is_a_no_op(&mut ready.server, now);
    conformance::timeouts_make_progress(&mut ready.server, 10);
    conformance::any_text_is_survived(&mut ready.server, &texts, now);
    conformance::any_text_is_survived(&mut ready.client, &texts, now);
    conformance::closed_is_inert(&mut ready.server, &texts, now);
    conformance::closed_is_inert(&mut ready.client, &texts, now);
    let mut fresh = Guest::new("ann", now);
    conformance::early_timeout_is_a_no_op(&mut fresh, now);
    conformance::timeouts_make_progress(&mut fresh, 10);
}

/// The host calls, so it plays the client's part of the schedule; the pair is wired with the host
/// as the "client" side for that.
#[derive(Default)]
struct HostCalls {
    open: Vec<String>,
    cancelled: Vec<CallId>,
}

impl Calls for HostCalls {
    type Client = Host;
    type Server = Guest;
    type Id = CallId;

    fn connect(&mut self, now: Instant, entropy: u64) -> Pair<Host, Guest> {
        self.open.clear();
        let mut pair = Pair::new(Host::new(entropy, now), Guest::new("ann", now), now);
        pair.settle();
        pair
    }

    fn call(&mut self, host: &mut Host, now: Instant) -> Option<CallId> {
        host.ask("?", now).ok()
    }

    fn answer(&mut self, guest: &mut Guest, index: u64, _: Instant) {
        if self.open.is_empty() {
            return;
        }
        let index = usize::try_from(index).unwrap_or(0) % self.open.len();
        let id = self.open.swap_remove(index);
        let _ = guest.answer(&id, Ok("!"));
    }

    fn cancel(&mut self, host: &mut Host, id: CallId, _: Instant) {
        host.cancel(id);
        self.cancelled.push(id);
    }

    fn server_event(&mut self, event: GuestEvent) {
        if let GuestEvent::Asked { id, .. } = event {
            self.open.push(id);
        }
    }

    fn ended(&mut self, event: &HostEvent) -> Option<CallId> {
        match event {
            HostEvent::Answer(id, _) => Some(*id),
            _ => None,
        }
    }
}

#[test]
fn every_call_ends_exactly_once_under_random_faults() {
    sim::run(300, |rng| {
        conformance::every_call_ends_once(&mut HostCalls::default(), rng, 200, Instant::now())
    });
}

#[test]
fn a_random_schedule_is_reproducible_from_its_seed() {
    let run = || {
        let mut calls = HostCalls::default();
        let mut rng = sim::Rng::new(3);
        conformance::every_call_ends_once(&mut calls, &mut rng, 200, Instant::now()).unwrap();
        calls.cancelled
    };
    let first = run();
    assert!(!first.is_empty());
    assert_eq!(run(), first);
}
