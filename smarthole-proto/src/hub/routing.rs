//! Which client gets which message: inputs, questions to the router, and its decisions.

use std::collections::{HashMap, HashSet};
use std::time::SystemTime;

use rpc_core::timers::later;
use rpc_core::{Instant, Str};

use super::event::{HubEvent, RouteId, Unroutable};
use super::input::{HubError, Input};
use super::message::MessageState;
use super::outbound::{OutboundMessage, Writer};
use super::{ConnId, Hub, Route};
use crate::id::{self, MessageId};
use crate::router::{Choice, Rejection, RouterError};
use crate::{direct, validate};

/// Most open messages.
const MAX_OPEN: usize = 10_000;

impl Hub {
    /// Takes what a user said: sends it to the client that it names, or asks the router with
    /// [`HubEvent::Route`]. `wall` is the timestamp that every client gets with
    /// the message, however late it is routed.
    ///
    /// # Errors
    /// [`HubError::Blank`] or [`HubError::TooLarge`] if the text is: say it otherwise. [`HubError::NoClients`] or
    /// [`HubError::Busy`]: try again later. No client has got anything.
    pub fn submit(
        &mut self,
        input: Input,
        now: Instant,
        wall: SystemTime,
    ) -> Result<MessageId, HubError> {
        if validate::trim(&input.text).is_empty() {
            return Err(HubError::Blank);
        }
        if self.clients.candidates().len() == 0 {
            return Err(HubError::NoClients);
        }
        let bytes = self.open_bytes.saturating_add(input.text.len());
        let is_full = self.open_bytes > 0 && bytes > self.config.max_open_bytes;
        if is_full || self.open >= MAX_OPEN {
            return Err(HubError::Busy);
        }
        self.check_room(1)?;
        let named = direct::parse(&input.text)
            .and_then(|direct| Some((self.clients.meant_by(&direct)?, direct.text)));
        let id = id::message_id(self.random.next_bits());
        let writer = Writer::new(&id, &input, wall, self.config.limits.max_message_bytes);
        if named.is_none() || self.config.reroute_direct {
            writer.check()?;
        }
        let named = match named {
            Some((client, text)) => {
                let name = client.registration.name.clone();
                Some((client.conn, name, writer.direct(text)?))
            }
            None => None,
        };
        let message = MessageState::new(id.clone(), input, wall, named.is_some());
        self.messages.insert(id.clone(), message);
        self.open += 1;
        self.open_bytes = bytes;
        match named {
            Some((conn, client, outbound)) => self.deliver(&id, conn, client, outbound, 1, now),
            None => self.ask(&id, 1),
        }
        Ok(id)
    }

    /// Answers a question to the router: sends the message to these clients. Returns how many get
    /// it. Skips unregistered names, clients that have the message already, and repeated names. If
    /// none remains because candidates left, or got the message through another question, the
    /// router is asked again ([`HubEvent::Route`]); otherwise the message ends here
    /// ([`HubEvent::Unroutable`]).
    ///
    /// A text that is blank or too large for a frame is replaced by the user's own, and a reason
    /// that makes the frame too large is omitted.
    ///
    /// # Errors
    /// [`HubError::UnknownRoute`] if the question has been answered or was never asked,
    /// [`HubError::Busy`] if too many frames wait: the question is still open.
    pub fn decide(
        &mut self,
        route: RouteId,
        choices: Vec<Choice>,
        now: Instant,
    ) -> Result<usize, HubError> {
        let question = self.routes.get(&route).ok_or(HubError::UnknownRoute)?;
        let message = self.messages.get(&question.message);
        let message = message.ok_or(HubError::UnknownRoute)?;
        let max = self.config.limits.max_message_bytes;
        let writer = Writer::new(&message.id, &message.input, message.created, max);
        let mut outbounds = HashMap::new();
        let mut seen = HashSet::new();
        let mut recipients = Vec::new();
        let mut lost = false;
        for Choice {
            client,
            text,
            reason,
        } in choices
        {
            if !seen.insert(client.clone()) {
                continue;
            }
            let registered = self.clients.of_name(&client);
            match registered.filter(|_| !message.has_reached(&client)) {
                Some(to) => {
                    let outbound =
                        outbounds
                            .entry((text, reason))
                            .or_insert_with_key(|(text, reason)| {
                                writer.routed(text.as_ref(), reason.as_ref())
                            });
                    if let Some(outbound) = outbound {
                        recipients.push((to.conn, client, outbound.clone()));
                    }
                }
                None => lost |= question.candidates.contains(&client),
            }
        }
        self.check_room(recipients.len())?;
        let Some(Route {
            message: id,
            attempt,
            ..
        }) = self.routes.remove(&route)
        else {
            return Err(HubError::UnknownRoute);
        };
        let delivered = recipients.len();
        match (delivered, lost) {
            (0, true) => self.ask(&id, attempt.saturating_add(1)),
            (0, false) => self.give_up(&id, Unroutable::NobodyChosen),
            _ => {}
        }
        for (conn, client, outbound) in recipients {
            self.deliver(&id, conn, client, outbound, attempt, now);
        }
        self.answered(&id);
        Ok(delivered)
    }

    /// Checks that this many frames and their events fit.
    fn check_room(&self, frames: usize) -> Result<(), HubError> {
        let waiting = self.out.len().max(self.events.len());
        let timers = self.timers.capacity_limit() - self.timers.len();
        if waiting + frames > self.config.max_queued || frames > timers {
            return Err(HubError::Busy);
        }
        Ok(())
    }

    /// Sends a message to a client. There is room for it.
    fn deliver(
        &mut self,
        id: &MessageId,
        conn: ConnId,
        client: Str,
        outbound: OutboundMessage,
        attempt: u32,
        now: Instant,
    ) {
        let Some(message) = self.messages.get_mut(id) else {
            return;
        };
        let deadline = later(now, self.config.response_timeout);
        let timer = (id.clone(), message.reached());
        let Ok(timer) = self.timers.insert(timer, Some(deadline)) else {
            return;
        };
        message.deliver(client.clone(), attempt, timer);
        let OutboundMessage { message, frame } = outbound;
        self.out.push_back((conn, frame));
        self.events
            .push_back(HubEvent::Delivered { client, message });
    }

    /// Notes why a message goes no further.
    fn give_up(&mut self, id: &MessageId, why: Unroutable) {
        if let Some(message) = self.messages.get_mut(id) {
            message.why = Some(why);
        }
    }

    /// Closes a question to the router after its answer was handled.
    fn answered(&mut self, id: &MessageId) {
        if let Some(message) = self.messages.get_mut(id) {
            message.routes -= 1;
        }
        self.settle(id);
    }

    /// Answers a question to the router with a failure. No further client is asked.
    ///
    /// # Errors
    /// [`HubError::UnknownRoute`] if the question has been answered or was never asked.
    pub fn fail(&mut self, route: RouteId, error: RouterError) -> Result<(), HubError> {
        let route = self.routes.remove(&route).ok_or(HubError::UnknownRoute)?;
        self.give_up(&route.message, Unroutable::Router(error));
        self.answered(&route.message);
        Ok(())
    }

    /// Routes the copy of a client that did not accept it again, if that is allowed.
    pub(super) fn reroute(&mut self, id: &MessageId, rejection: Rejection, attempt: u32) {
        let Some(message) = self.messages.get_mut(id) else {
            return;
        };
        message.rejections.push(rejection);
        if message.direct && !self.config.reroute_direct {
            message.why = Some(Unroutable::Rejected);
        } else {
            self.ask(id, attempt.saturating_add(1));
        }
    }

    /// Asks the router for the clients of this attempt, if another attempt is allowed and there is
    /// a candidate.
    fn ask(&mut self, id: &MessageId, attempt: u32) {
        let Some(message) = self.messages.get_mut(id) else {
            return;
        };
        let request = (attempt <= self.config.routing_limit.max(1))
            .then(|| message.request(self.clients.candidates()))
            .filter(|request| !request.candidates.is_empty());
        let Some(request) = request else {
            let nobody = self.clients.candidates().len() == 0 && message.reached() == 0;
            message.why = Some(if nobody {
                Unroutable::NoClients
            } else {
                Unroutable::Exhausted
            });
            return;
        };
        message.routes += 1;
        let route = RouteId(self.next_route);
        self.next_route += 1;
        self.routes.insert(
            route,
            Route {
                message: id.clone(),
                attempt,
                candidates: (request.candidates.iter())
                    .map(|one| one.name.clone())
                    .collect(),
            },
        );
        self.events.push_back(HubEvent::Route {
            route,
            message: id.clone(),
            request,
        });
    }
}
