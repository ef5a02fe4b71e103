//! The toy protocol at level 3: both ends as link protocols.

use std::borrow::Cow;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rpc_core::net::{CallStream, LinkAction, Protocol};
use rpc_core::{CallError, CallId, Limits, Refused};
use tokio::task::JoinHandle;

use super::HANDSHAKE;
use super::guest::{Guest, GuestEvent};
use super::host::{Host, HostEvent};

/// The client side. Reconnects with the same name.
#[derive(Debug)]
pub struct GuestSide {
    pub name: String,
    pub limits: Limits,
    pub handshake: Duration,
}

impl GuestSide {
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            limits: Limits::default(),
            handshake: HANDSHAKE,
        }
    }
}

impl Protocol for GuestSide {
    type Machine = Guest;
    type Call = u64;
    type Value = ();
    type Remote = ();
    type Item = Infallible;
    type Event = GuestEvent;
    const SYSTEM: &'static str = "toy";

    fn open(&mut self, now: Instant, _: u64) -> Guest {
        Guest::with_limits(&self.name, &self.limits, now).with_handshake(self.handshake, now)
    }

    fn classify(&mut self, event: GuestEvent) -> LinkAction<Self> {
        match event {
            GuestEvent::Ready => LinkAction::Ready(None),
            GuestEvent::Closed(reason) => LinkAction::Closed(reason),
            other => LinkAction::Event(other),
        }
    }

    fn cancel(_: &mut Guest, _: u64, _: Instant) {}

    fn redact(text: &str) -> Cow<'_, str> {
        Cow::Owned(text.replace("secret", "***"))
    }
}

/// The server side of one connection.
#[derive(Debug)]
pub struct HostSide {
    pub limits: Limits,
    pub handshake: Duration,
    /// What is to be told, left here by whoever likes.
    pub mail: Arc<Mutex<Vec<String>>>,
}

impl Default for HostSide {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            handshake: HANDSHAKE,
            mail: Arc::default(),
        }
    }
}

impl Protocol for HostSide {
    type Machine = Host;
    type Call = CallId;
    type Value = String;
    type Remote = String;
    type Item = String;
    type Event = HostEvent;
    const SYSTEM: &'static str = "toy";

    fn open(&mut self, now: Instant, entropy: u64) -> Host {
        Host::with_limits(entropy, self.limits.clone(), now).with_handshake(self.handshake, now)
    }

    fn classify(&mut self, event: HostEvent) -> LinkAction<Self> {
        match event {
            HostEvent::Ready(name) => LinkAction::Ready(Some(HostEvent::Ready(name))),
            HostEvent::Part(id, text) => LinkAction::Item(id, text),
            HostEvent::Answer(id, answer) => LinkAction::Reply(id, answer),
            HostEvent::Closed(reason) => LinkAction::Closed(reason),
        }
    }

    fn cancel(machine: &mut Host, call: CallId, _: Instant) {
        machine.cancel(call);
    }

    fn before_write(&mut self, machine: &mut Host, _: Instant) {
        for text in self.mail.lock().unwrap().drain(..) {
            machine.tell(&text).unwrap();
        }
    }
}

pub type HostLink = rpc_core::net::Link<HostSide>;

/// What an application holds of one end.
pub struct End<P: Protocol> {
    pub link: rpc_core::net::Link<P>,
    pub events: rpc_core::net::Events<P::Event>,
    pub task: JoinHandle<rpc_core::CloseReason>,
}

impl<P: Protocol> End<P>
where
    P::Machine: Send,
{
    pub fn spawn((link, events, connection): rpc_core::net::Parts<P>) -> Self {
        Self {
            link,
            events,
            task: tokio::spawn(connection.run()),
        }
    }

    /// The next event of the protocol; state changes are skipped.
    pub async fn event(&mut self) -> Option<P::Event> {
        self.events.next().await
    }
}

impl<P: Protocol> End<P> {
    /// Lets the machine do something that it does not refuse.
    pub async fn does(
        &self,
        what: impl FnOnce(&mut P::Machine) -> Result<(), Refused> + Send + 'static,
    ) {
        let done = self.link.command(move |m, _| what(m)).await;
        done.unwrap().unwrap();
    }
}

impl End<HostSide> {
    pub async fn ask(&self, text: &'static str) -> Result<String, CallError<String>> {
        let ask = move |m: &mut Host, now| m.ask(text, now);
        self.link.call_with("ask", ask).await
    }

    /// A question that waits so long for its answer, in a task of its own.
    pub fn asking(&self, within: Duration) -> JoinHandle<Result<String, CallError<String>>> {
        let link = self.link.clone();
        let ask = move |m: &mut Host, now| m.ask_within("?", within, now);
        tokio::spawn(async move { link.call_with("ask", ask).await })
    }

    /// A question whose answer comes in parts.
    pub async fn stream(&self, within: Duration) -> CallStream<HostSide> {
        let ask = move |m: &mut Host, now| m.ask_within("?", within, now);
        self.link.stream("ask", ask).await
    }
}

impl End<GuestSide> {
    /// The id of the next question.
    pub async fn asked(&mut self) -> String {
        match self.event().await {
            Some(GuestEvent::Asked { id, .. }) => id,
            other => panic!("not asked: {other:?}"),
        }
    }

    /// Answers the next question in fifty numbered parts.
    pub async fn answer_in_parts(&mut self) {
        let id = self.asked().await;
        self.does(move |m| {
            (0..50).try_for_each(|n| m.part(&id, &n.to_string()))?;
            m.answer(&id, Ok("end"))
        })
        .await;
    }
}

/// A guest and a host over an in-memory line, both ready, and the cutter of that line.
pub async fn connected(
    guest: rpc_core::net::LinkConfig,
    host: rpc_core::net::LinkConfig,
) -> (End<GuestSide>, End<HostSide>, rpc_core::net::mem::Cutter) {
    let (left, right) = rpc_core::net::mem::duplex(16);
    let cutter = left.cutter();
    let guest = End::spawn(rpc_core::net::over(GuestSide::new("ann"), left, guest));
    let host = End::spawn(rpc_core::net::over(HostSide::default(), right, host));
    guest.link.ready().await.unwrap();
    host.link.ready().await.unwrap();
    (guest, host, cutter)
}

/// Answers everything with `echo`, until the link ends.
pub async fn echo(mut guest: End<GuestSide>) {
    while let Some(event) = guest.event().await {
        if let GuestEvent::Asked { id, text } = event {
            let _ = guest
                .link
                .command(move |m, _| m.answer(&id, Ok(&text)))
                .await;
        }
    }
}
