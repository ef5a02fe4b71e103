//! What a [`Switch`](super::Switch) keeps under its lock: the hub, and where its output goes.

use std::collections::{HashMap, VecDeque};
use std::time::{Instant, SystemTime};

use rpc_core::net::{Handle, Producer, Push};
use rpc_core::{CloseFrame, Refused};
use tokio::sync::oneshot;

use super::Settled;
use crate::hub::{ConnId, Hub, HubError, HubEvent, Input, RouteId, Unroutable};
use crate::id::MessageId;
use crate::router::{Candidate, Choice, RouteRequest, RouterError};
use crate::server::ServerConn;

/// A question that the router has not been asked yet.
pub(super) struct Open {
    pub(super) route: RouteId,
    pub(super) request: RouteRequest,
}

/// Somebody who waits for the end of a message.
pub(super) struct Ask {
    sender: oneshot::Sender<Settled>,
    unroutable: Option<Unroutable>,
}

impl Ask {
    pub(super) const fn new(sender: oneshot::Sender<Settled>) -> Self {
        Self {
            sender,
            unroutable: None,
        }
    }
}

pub(super) struct State {
    pub(super) hub: Hub,
    pub(super) connections: HashMap<ConnId, Handle<ServerConn>>,
    pub(super) questions: VecDeque<Open>,
    pub(super) asks: HashMap<MessageId, Ask>,
    /// The deadline that the running task sleeps until.
    pub(super) armed: Option<Instant>,
    /// No new texts are taken.
    pub(super) is_closing: bool,
    has_ended: bool,
    listeners: Vec<Producer<HubEvent>>,
    last_conn: u64,
}

/// What follows from what the hub had to say.
pub(super) struct Followed {
    /// The running task has something to do.
    pub(super) wakes: bool,
    /// Nothing is open, and somebody may wait for that.
    pub(super) is_idle: bool,
}

impl State {
    pub(super) fn new(hub: Hub) -> Self {
        Self {
            hub,
            connections: HashMap::new(),
            questions: VecDeque::new(),
            asks: HashMap::new(),
            armed: None,
            is_closing: false,
            has_ended: false,
            listeners: Vec::new(),
            last_conn: 0,
        }
    }

    pub(super) fn next_conn(&mut self) -> ConnId {
        self.last_conn += 1;
        ConnId(self.last_conn)
    }

    pub(super) fn submit(&mut self, input: Input, now: Instant) -> Result<MessageId, HubError> {
        if self.is_closing {
            return Err(HubError::Closed);
        }
        self.hub.submit(input, now, SystemTime::now())
    }

    /// Passes a decision of the router on.
    pub(super) fn answer(
        &mut self,
        route: RouteId,
        decision: Result<Vec<Choice>, RouterError>,
        now: Instant,
    ) {
        let failure = match decision {
            Ok(choices) => match self.hub.decide(route, choices, now, SystemTime::now()) {
                // More recipients than the hub's queue ever takes.
                Err(HubError::Busy) => RouterError::failed("too many clients were chosen"),
                _ => return,
            },
            Err(error) => error,
        };
        // A question that is open no more needs no failure.
        let _ = self.hub.fail(route, failure);
    }

    pub(super) fn listen(&mut self, listener: Producer<HubEvent>) {
        if !self.has_ended {
            self.listeners.retain(|listener| !listener.is_abandoned());
            self.listeners.push(listener);
        }
    }

    /// Writes to a connection, if it is still there. A client that reads too slowly is disconnected.
    pub(super) fn write(
        &self,
        conn: ConnId,
        write: impl FnOnce(&mut ServerConn) -> Result<(), Refused>,
    ) {
        let Some(handle) = self.connections.get(&conn) else {
            return;
        };
        match handle.with(write) {
            Ok(()) => {}
            Err(Refused::QueueFull) => {
                handle.close_with(CloseFrame::new(CloseFrame::TRY_AGAIN, "slow reader"));
            }
            // Nobody responds to a message that was not sent, so its time will pass.
            Err(why) => tracing::debug!(%why, conn = conn.0, "a frame was not sent"),
        }
    }

    /// Takes everything out of the hub and gives it to whom it concerns.
    pub(super) fn pass_on(&mut self) -> Followed {
        let waiting = self.questions.len();
        while let Some(event) = self.hub.poll_event() {
            self.tell(event);
        }
        while let Some((conn, frame)) = self.hub.poll_transmit() {
            self.write(conn, |machine| machine.send(frame));
        }
        let next = self.hub.poll_timeout();
        let is_sooner = next.is_some_and(|next| self.armed.is_none_or(|armed| next < armed));
        Followed {
            wakes: is_sooner || self.questions.len() > waiting,
            is_idle: self.is_closing && self.hub.open_messages() == 0,
        }
    }

    fn tell(&mut self, event: HubEvent) {
        let weight = weight(&event);
        self.listeners.retain(|listener| {
            !listener.is_abandoned() && listener.push(event.clone(), weight) == Push::Done
        });
        match event {
            HubEvent::Route { route, request, .. } => {
                self.questions.push_back(Open { route, request });
            }
            HubEvent::Unroutable { message, why, .. } => {
                if let Some(ask) = self.asks.get_mut(&message) {
                    ask.unroutable = Some(why);
                }
            }
            HubEvent::Settled { message, outcomes } => {
                if let Some(ask) = self.asks.remove(&message) {
                    // Whoever asked may have gone.
                    let _ = ask.sender.send(Settled {
                        message,
                        outcomes,
                        unroutable: ask.unroutable,
                    });
                }
            }
            _ => {}
        }
    }

    /// Nobody runs the switch any more: whoever waits for something waits in vain.
    pub(super) fn end(&mut self) {
        self.is_closing = true;
        self.has_ended = true;
        self.asks = HashMap::new();
        self.listeners = Vec::new();
        self.questions = VecDeque::new();
    }
}

/// About how many bytes an event holds.
fn weight(event: &HubEvent) -> usize {
    let texts = match event {
        HubEvent::Route { request, .. } => {
            request.text.len() + request.candidates.len() * size_of::<Candidate>()
        }
        HubEvent::Delivered { message, .. } => {
            let reason = message.metadata.routing_reason.as_ref();
            message.text.len() + reason.map_or(0, |reason| reason.len())
        }
        HubEvent::Notification { title, body, .. } => title.len() + body.len(),
        HubEvent::Unroutable { text, .. } => text.len(),
        _ => 0,
    };
    size_of::<HubEvent>() + texts
}
