//! [`Tickets`]: connections that another server has accepted and passes on to this one.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use http::request::Parts;

use crate::net::{entropy, time};
use crate::sync::Mutex;
use crate::{Instant, Secret, constant_time_eq};

/// How long a ticket counts.
const LIFETIME: Duration = Duration::from_secs(5);
/// How many tickets count at once.
const MAX_OPEN: usize = 4_096;

/// The tickets with which other servers pass connections on to a server. Each counts for one connection
/// within five seconds.
///
/// A server that accepts a client for another one sends that one the client's address and request, in a
/// way that no stranger has, such as a [store](crate::store). The other one [issues](Self::issue) a ticket,
/// with which the first one opens a WebSocket: at an upgrade path, followed by a slash and the ticket. That
/// WebSocket is the client's in all that is counted there: connections and bytes of an address, wrong secrets.
/// Its [`Accepted`](super::Accepted) has the client's address and the head of the client's request. `Host`,
/// `Origin` and peer were checked by the first server.
///
/// Any other ticket is answered as an unknown path is, and slowed down by the [brake](super::Brake).
#[derive(Debug, Default)]
pub struct Tickets {
    /// In order of their ends.
    open: Mutex<VecDeque<Ticket>>,
}

#[derive(Debug)]
struct Ticket {
    secret: Secret,
    until: Instant,
    peer: SocketAddr,
    head: Box<Parts>,
}

impl Tickets {
    /// Issues a ticket for a client with this address, `0.0.0.0:0` if it is not known, and the head of its
    /// request, with whatever extensions the handler needs. `None` if too many are open: try again in a second.
    #[must_use]
    pub fn issue(&self, peer: SocketAddr, head: Parts) -> Option<Secret> {
        let now = time::now();
        let mut open = self.open.lock();
        while open.front().is_some_and(|ticket| ticket.until <= now) {
            open.pop_front();
        }
        if open.len() >= MAX_OPEN {
            return None;
        }
        let secret = Secret::from(format!("{:016x}{:016x}", entropy(), entropy()));
        open.push_back(Ticket {
            secret: secret.clone(),
            until: now + LIFETIME,
            peer,
            head: Box::new(head),
        });
        Some(secret)
    }

    /// Ends all tickets that are open.
    pub fn clear(&self) {
        self.open.lock().clear();
    }

    /// Takes what a ticket stands for. Compares all of them, so that the time says nothing about any.
    pub(super) fn redeem(&self, offered: &str) -> Option<(SocketAddr, Parts)> {
        let now = time::now();
        let mut open = self.open.lock();
        let is_it = |ticket: &Ticket| {
            constant_time_eq(ticket.secret.expose().as_bytes(), offered.as_bytes())
        };
        let all = open.iter().enumerate();
        let at = all.fold(None, |found, (at, ticket)| {
            is_it(ticket).then_some(at).or(found)
        })?;
        let ticket = open.remove(at).filter(|ticket| ticket.until > now)?;
        Some((ticket.peer, *ticket.head))
    }
}
