//! The state of a router: [`Hub`]. It knows the connected clients, which message went to which
//! client, and its outcome.
//!
//! A hub does no IO and reads no clock. It serves many connections, so it is not a
//! [`Machine`](rpc_core::Machine), but it has the same methods: after each input take
//! [`poll_transmit`](Hub::poll_transmit) and [`poll_event`](Hub::poll_event) until both return
//! `None`, then look at [`poll_timeout`](Hub::poll_timeout).
//!
//! ```
//! use std::time::{Duration, Instant, SystemTime};
//! use smarthole_proto::hub::{ConnId, Hub, HubConfig, HubEvent, Input};
//! use smarthole_proto::router::Choice;
//! use smarthole_proto::frame::{Answer, Registration, Response};
//!
//! let (now, wall) = (Instant::now(), SystemTime::now());
//! let mut hub = Hub::new(HubConfig::default(), 0x5eed, now);
//! hub.register(ConnId(1), &Registration::new("notes", "Keeps notes."))?;
//! hub.register(ConnId(2), &Registration::new("lights", "Switches lamps."))?;
//! let message = hub.submit(Input::text("buy milk"), now, wall)?;
//! let mut answer = None;
//! while let Some(event) = hub.poll_event() {
//!     if let HubEvent::Route { route, request, .. } = event {
//!         assert_eq!(request.candidates.len(), 2);
//!         answer = Some(route); // ask a model, a rule, a person
//!     }
//! }
//! hub.decide(answer.unwrap(), vec![Choice::new("notes")], now)?;
//! let (to, frame) = hub.poll_transmit().unwrap();
//! assert_eq!(to, ConnId(1));
//! assert!(frame.as_str().starts_with(r#"{"type":"message","payload":{"id":"msg-"#));
//! hub.respond(ConnId(1), Response::new(message.as_str(), Answer::Ack));
//! assert_eq!(hub.poll_timeout(), None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Routing
//!
//! - A text that begins with a client's name and `:` or `,` goes to that client, without the prefix:
//!   [`direct`](crate::direct). Everything else is a question to the router.
//! - A message has one id, for every client that gets it and every time it is routed again. Its
//!   state is kept per (id, name of the client). No client gets it twice.
//! - A client's first valid response ends its delivery; silence for
//!   [`response_timeout`](HubConfig::response_timeout) ends it as a rejection with the reason
//!   "Response timeout". A notification counts as a response, even one without anything to show.
//! - Each rejection routes that client's copy again, with all reasons so far, to a client that has
//!   not got the message, until [`routing_limit`](HubConfig::routing_limit) clients in a row
//!   have rejected it or none is left. Messages to a client that the user named are not routed
//!   again unless [`reroute_direct`](HubConfig::reroute_direct).
//! - A message that one client accepted stays accepted, whatever others answer. If a client rejects
//!   a message that it had acknowledged itself, its copy is routed again.
//!
//! # When clients come and go
//!
//! - A client that leaves frees its name at once. Its open deliveries keep their time: it may
//!   reconnect under its name, on any connection, and answer. It does not get the message again. If
//!   it stays away, the timeout routes the message again, so nothing is lost.
//! - The name is the identity: any client registered under it may answer for it.
//! - Choices of clients that left while the router decided are skipped. If none is left, the router
//!   is asked again, which counts as an attempt. Frames for a closed connection are still returned;
//!   the caller drops them, and the timeout handles the rest.
//! - A late answer of the router is valid: the hub waits without a deadline. The caller that runs
//!   the router has one, and [fails](Hub::fail) the question then. A second answer returns
//!   [`HubError::UnknownRoute`].
//!
//! # Limits
//!
//! Limited are open messages and their texts, waiting frames and events, and the history: the last
//! 100 ended deliveries. Open deliveries are never forgotten. A response to a forgotten one is
//! ignored.

mod answers;
mod clients;
mod config;
mod event;
mod input;
mod message;
mod outbound;
mod routing;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};

use rpc_core::{Instant, PendingCalls, Str, Text, UniqueBits};

pub use clients::RegisteredClient;
pub use config::HubConfig;
pub use event::{HubEvent, Ignored, Outcome, RouteId, Settlement, Unroutable};
pub use input::{HubError, Input};

use crate::error::RegistrationError;
use crate::frame::{Registration, Response};
use crate::id::{self, ClientId, MessageId};
use clients::Clients;
use message::MessageState;

/// A connection, numbered by the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnId(pub u64);

/// An ended delivery in the history.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HistoryEntry {
    /// The message.
    pub message: MessageId,
    /// The user's whole text.
    pub text: Str,
    /// The client that got it.
    pub client: Str,
    /// The outcome, including later answers of the client.
    pub outcome: Outcome,
    /// Whether the client's first answer came after the timeout, or not at all.
    pub late: bool,
}

/// An open question to the router.
struct Route {
    message: MessageId,
    /// The number of the attempt in its chain for the clients that it chooses.
    attempt: u32,
    /// The names of its candidates.
    candidates: Vec<Str>,
}

/// The clients, the messages, and everything open about them.
pub struct Hub {
    config: HubConfig,
    /// Ids need not be secret, since a client can answer only for itself.
    random: UniqueBits,
    clients: Clients,
    /// Messages that are open, or that have a delivery in the history.
    messages: HashMap<MessageId, MessageState>,
    /// The number of open messages, and the bytes of their texts.
    open: usize,
    open_bytes: usize,
    /// The timer of each open delivery: its message, and its index there.
    timers: PendingCalls<(MessageId, usize)>,
    routes: HashMap<RouteId, Route>,
    next_route: u64,
    /// Oldest first.
    history: VecDeque<(MessageId, usize)>,
    out: VecDeque<(ConnId, Text)>,
    events: VecDeque<HubEvent>,
}

impl Hub {
    /// Creates a hub without clients. `seed` should be random: ids are made from it. Deadlines are
    /// counted in whole milliseconds after `now`, rounded up.
    #[must_use]
    pub fn new(config: HubConfig, seed: u128, now: Instant) -> Self {
        let mut random = UniqueBits::new(seed);
        #[expect(clippy::cast_possible_truncation, reason = "half of it is enough")]
        let timers = PendingCalls::new(random.next_bits() as u64, usize::MAX, now);
        Self {
            config,
            random,
            clients: Clients::default(),
            messages: HashMap::new(),
            open: 0,
            open_bytes: 0,
            timers,
            routes: HashMap::new(),
            next_route: 0,
            history: VecDeque::new(),
            out: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    /// Registers the client of a connection. Confirm it with
    /// [`ServerConn::accept`](crate::server::ServerConn::accept).
    ///
    /// # Errors
    /// [`ErrorCode::AlreadyRegistered`](crate::error::ErrorCode::AlreadyRegistered), the error of
    /// [`validate::registration`](crate::validate::registration),
    /// [`ErrorCode::DuplicateName`](crate::error::ErrorCode::DuplicateName): names are compared
    /// exactly, including the case of letters. The connection may try again.
    pub fn register(
        &mut self,
        conn: ConnId,
        registration: &Registration,
    ) -> Result<ClientId, RegistrationError> {
        let random = &mut self.random;
        let id = || id::client_id(random.next_bits());
        let (client_id, name) = self.clients.register(conn, registration, id)?;
        self.events.push_back(HubEvent::Registered {
            conn,
            client_id: client_id.clone(),
            name,
        });
        Ok(client_id)
    }

    /// Removes a connection; returns `false` if it had registered no client. Its name is free at
    /// once; its deliveries stay open until their timeout.
    pub fn disconnect(&mut self, conn: ConnId) -> bool {
        let Some(client) = self.clients.remove(conn) else {
            return false;
        };
        self.events.push_back(HubEvent::Left {
            conn,
            name: client.registration.name,
        });
        true
    }

    /// Handles a client's response to a message. Reports an invalid one with [`HubEvent::Ignored`].
    pub fn respond(&mut self, conn: ConnId, response: Response) {
        let Response { message_id, answer } = response;
        if let Err(why) = self.take_response(conn, message_id.as_str(), answer) {
            self.notify_in_room(HubEvent::Ignored {
                conn,
                message_id: message::cut(message_id.as_str()).into(),
                why,
            });
        }
    }

    /// Ends the deliveries whose time is over. A call before [`poll_timeout`](Self::poll_timeout)
    /// does nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some((_, (id, place))) = self.timers.pop_expired(now) {
            self.time_out(&id, place);
            self.trim_history();
        }
    }

    /// Returns the next frame and its connection. Frames of one connection come in order.
    #[must_use]
    pub fn poll_transmit(&mut self) -> Option<(ConnId, Text)> {
        self.out.pop_front()
    }

    /// Returns the next event.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<HubEvent> {
        self.events.pop_front()
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) has to be called next; perhaps a
    /// little early, never late. `None` if no delivery is open.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.poll_timeout()
    }

    /// Returns the registered clients in the order of registration.
    pub fn clients(&self) -> impl ExactSizeIterator<Item = &RegisteredClient> {
        self.clients.iter()
    }

    /// Returns the client with exactly this name.
    #[must_use]
    pub fn client(&self, name: &str) -> Option<&RegisteredClient> {
        self.clients.of_name(name)
    }

    /// Returns the last ended deliveries in the order in which they ended, newest last.
    pub fn history(&self) -> impl Iterator<Item = HistoryEntry> {
        self.history.iter().filter_map(|(id, place)| {
            let message = self.messages.get(id)?;
            let delivery = message.delivery(*place)?;
            Some(HistoryEntry {
                message: message.id.clone(),
                text: message.input.text.clone(),
                client: delivery.client.clone(),
                outcome: delivery.outcome()?.clone(),
                late: delivery.late,
            })
        })
    }

    /// Returns how many deliveries are open: sent, not answered, and still in time.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.timers.len()
    }

    /// Returns how many messages are open: a delivery is open, or the router is asked.
    #[must_use]
    pub const fn open_messages(&self) -> usize {
        self.open
    }
}

rpc_core::debug_fields!([] Hub, this => {
    clients: this.clients.iter().len(),
    open: this.open,
    in_flight: this.timers.len(),
    history: this.history.len(),
});
