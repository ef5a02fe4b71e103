//! The state of a [`RouterRuntime`](super::RouterRuntime) under its lock: the hub, and where its
//! output goes.

use std::collections::{HashMap, VecDeque};
use std::time::SystemTime;

use rpc_core::Instant;
use rpc_core::net::telemetry::{CallOutcome, CallSpan, Side};
use rpc_core::net::{Connections, HubState, LinkEvent, Producer, QueueConfig, queue, time};
use tokio::sync::oneshot;

use super::Settled;
use crate::hub::{Hub, HubError, HubEvent, Input, RouteId, Unroutable};
use crate::id::MessageId;
use crate::net::SYSTEM;
use crate::router::{Candidate, Choice, RouteRequest, RouterError};
use crate::server::ServerConn;

/// A question that the router has not been asked yet.
pub(super) struct Open {
    pub(super) route: RouteId,
    pub(super) request: RouteRequest,
}

/// A caller that waits for the end of a message.
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
    pub(super) connections: Connections<ServerConn>,
    pub(super) questions: VecDeque<Open>,
    pub(super) asks: HashMap<MessageId, Ask>,
    /// The open messages, for spans and metrics.
    calls: HashMap<MessageId, CallSpan>,
    /// It has no consumer of its own, only those who subscribe.
    pub(super) events: Producer<LinkEvent<HubEvent>>,
}

impl State {
    pub(super) fn new(hub: Hub) -> Self {
        Self {
            hub,
            connections: Connections::default(),
            questions: VecDeque::new(),
            asks: HashMap::new(),
            calls: HashMap::new(),
            events: queue(QueueConfig::default()).0,
        }
    }

    pub(super) fn submit(&mut self, input: Input, now: Instant) -> Result<MessageId, HubError> {
        let message = self.hub.submit(input, now, SystemTime::now())?;
        let call = CallSpan::new(Side::Server, SYSTEM, "message");
        if call.is_watched() {
            self.calls.insert(message.clone(), call);
        }
        Ok(message)
    }

    /// Passes a decision of the router to the hub.
    pub(super) fn answer(
        &mut self,
        route: RouteId,
        decision: Result<Vec<Choice>, RouterError>,
        now: Instant,
    ) {
        let failure = match decision {
            Ok(choices) => match self.hub.decide(route, choices, now) {
                // More recipients than the hub's queue ever takes.
                Err(HubError::Busy) => RouterError::Failed("too many clients were chosen".into()),
                _ => return,
            },
            Err(error) => error,
        };
        // A question that is open no more needs no failure.
        let _ = self.hub.fail(route, failure);
    }

    fn emit(&mut self, event: HubEvent) {
        // Nobody else consumes them: there is always room.
        self.events
            .push(LinkEvent::Event(event.clone()), weight(&event));
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
                if let Some(mut call) = self.calls.remove(&message) {
                    let is_taken = outcomes.iter().any(|one| one.outcome.is_taken());
                    call.end(CallOutcome::of(is_taken));
                }
                if let Some(ask) = self.asks.remove(&message) {
                    // The caller may have gone.
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
}

impl HubState for State {
    type Now = Instant;

    fn now() -> Instant {
        time::now()
    }

    fn drain_outputs(&mut self, _: Instant) -> bool {
        let waiting = self.questions.len();
        while let Some(event) = self.hub.poll_event() {
            self.emit(event);
        }
        while let Some((conn, frame)) = self.hub.poll_transmit() {
            self.connections
                .write(conn.0, |machine| machine.send(frame));
        }
        self.questions.len() > waiting
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.hub.poll_timeout()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.hub.handle_timeout(now);
    }

    fn is_idle(&self) -> bool {
        self.hub.open_messages() == 0
    }

    fn end(&mut self) {
        self.events.end();
        self.asks = HashMap::new();
        self.calls = HashMap::new();
        self.questions = VecDeque::new();
    }
}

/// Returns about how many bytes an event holds.
fn weight(event: &HubEvent) -> usize {
    let texts = match event {
        HubEvent::Route { request, .. } => {
            request.text.len() + request.candidates.len() * size_of::<Candidate>()
        }
        HubEvent::Delivered { message, .. } => {
            let reason = message.metadata.routing_reason.as_deref();
            message.text.len() + reason.map_or(0, str::len)
        }
        HubEvent::Notification { title, body, .. } => title.len() + body.len(),
        HubEvent::Unroutable { text, .. } => text.len(),
        _ => 0,
    };
    size_of::<HubEvent>() + texts
}
