//! The toy protocol at level 3: both ends as link protocols.

use std::borrow::Cow;
use std::convert::Infallible;
use std::time::Instant;

use rpc_core::net::{Protocol, Sorted};
use rpc_core::{CallId, CloseFrame, Limits};

use super::guest::{Guest, GuestEvent};
use super::host::{Host, HostEvent};

/// The client side. Reconnects with the same name.
#[derive(Debug)]
pub struct GuestSide {
    pub name: String,
    pub limits: Limits,
}

impl GuestSide {
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), limits: Limits::default() }
    }
}

impl Protocol for GuestSide {
    type Machine = Guest;
    type Call = u64;
    type Value = ();
    type Remote = ();
    type Item = Infallible;
    type Event = GuestEvent;

    fn open(&mut self, now: Instant, _: u64) -> Guest {
        Guest::with_limits(&self.name, self.limits.clone(), now)
    }

    fn sort(&mut self, event: GuestEvent) -> Sorted<Self> {
        match event {
            GuestEvent::Ready => Sorted::Ready(None),
            GuestEvent::Closed(reason) => Sorted::Closed(reason),
            other => Sorted::Event(other),
        }
    }

    fn close(machine: &mut Guest, frame: CloseFrame, _: Instant) {
        machine.close(frame);
    }

    fn cancel(_: &mut Guest, _: u64, _: Instant) {}

    fn in_flight(machine: &Guest) -> usize {
        machine.open()
    }

    fn redact(text: &str) -> Cow<'_, str> {
        Cow::Owned(text.replace("secret", "***"))
    }
}

/// The server side of one connection.
#[derive(Debug, Default)]
pub struct HostSide {
    pub limits: Limits,
}

impl Protocol for HostSide {
    type Machine = Host;
    type Call = CallId;
    type Value = String;
    type Remote = String;
    type Item = String;
    type Event = HostEvent;

    fn open(&mut self, now: Instant, entropy: u64) -> Host {
        Host::with_limits(entropy, self.limits.clone(), now)
    }

    fn sort(&mut self, event: HostEvent) -> Sorted<Self> {
        match event {
            HostEvent::Ready(name) => Sorted::Ready(Some(HostEvent::Ready(name))),
            HostEvent::Part(id, text) => Sorted::Item(id, text),
            HostEvent::Answer(id, answer) => Sorted::Reply(id, answer),
            HostEvent::Closed(reason) => Sorted::Closed(reason),
        }
    }

    fn close(machine: &mut Host, frame: CloseFrame, _: Instant) {
        machine.close(frame);
    }

    fn cancel(machine: &mut Host, call: CallId, _: Instant) {
        machine.cancel(call);
    }

    fn in_flight(machine: &Host) -> usize {
        machine.in_flight()
    }
}
