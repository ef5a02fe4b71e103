//! [`MessageState`]: everything about one input, and [`Delivery`]: its state at one client.

use std::collections::HashMap;
use std::time::SystemTime;

use rpc_core::text::beginning;
use rpc_core::{CallId, Str};

use super::event::{Ignored, Outcome, Settlement, Unroutable};
use super::input::Input;
use crate::frame::Answer;
use crate::id::MessageId;
use crate::limits::{MAX_REASON, NO_REASON, RESPONSE_TIMEOUT_REASON};
use crate::router::{Candidate, Rejection, RouteRequest};
use crate::validate::trim;

/// Everything about one input: who got it, who rejected it, and what is open.
pub(super) struct MessageState {
    pub(super) id: MessageId,
    pub(super) input: Input,
    /// The time for people at which the user said it.
    pub(super) created: SystemTime,
    pub(super) direct: bool,
    /// In the order of delivery, at most one per name.
    deliveries: Vec<Delivery>,
    by_client: HashMap<Str, usize>,
    pub(super) rejections: Vec<Rejection>,
    /// How many questions to the router are open.
    pub(super) routes: usize,
    /// How many deliveries have time left.
    pub(super) open: usize,
    /// How many deliveries the history remembers.
    pub(super) remembered: usize,
    /// Why the last copy that no client accepted went no further.
    pub(super) why: Option<Unroutable>,
    /// Whether the hub counts it as open.
    pub(super) counted: bool,
    /// Whether [`HubEvent::Settled`](super::HubEvent::Settled) has been reported.
    pub(super) settled: bool,
}

/// A message at one client.
pub(super) struct Delivery {
    pub(super) client: Str,
    /// The number of the attempt in its chain: 1 for the first client, 2 for the one after its
    /// rejection.
    pub(super) attempt: u32,
    pub(super) state: State,
    /// Whether the client's time is over. A later answer does not route the message again.
    pub(super) late: bool,
}

pub(super) enum State {
    /// The client has time left.
    Open { timer: CallId },
    /// The client has responded, or its time is over.
    Ended { outcome: Outcome },
    /// Like `Ended`, but the history has forgotten it: further responses are ignored.
    Forgotten { outcome: Outcome },
}

impl MessageState {
    pub(super) fn new(id: MessageId, input: Input, created: SystemTime, direct: bool) -> Self {
        Self {
            id,
            input,
            created,
            direct,
            deliveries: Vec::new(),
            by_client: HashMap::new(),
            rejections: Vec::new(),
            routes: 0,
            open: 0,
            remembered: 0,
            why: None,
            counted: true,
            settled: false,
        }
    }

    /// Returns whether nothing about the message is open.
    pub(super) const fn is_idle(&self) -> bool {
        self.routes == 0 && self.open == 0
    }

    /// Returns whether a client accepted it.
    pub(super) fn is_taken(&self) -> bool {
        let mut outcomes = self.deliveries.iter().filter_map(Delivery::outcome);
        outcomes.any(Outcome::is_taken)
    }

    /// Adds a client that gets the message.
    pub(super) fn deliver(&mut self, client: Str, attempt: u32, timer: CallId) {
        self.by_client.insert(client.clone(), self.deliveries.len());
        self.deliveries.push(Delivery {
            client,
            attempt,
            state: State::Open { timer },
            late: false,
        });
        self.open += 1;
    }

    /// Returns whether a client with this name got the message.
    pub(super) fn has_reached(&self, client: &str) -> bool {
        self.by_client.contains_key(client)
    }

    /// Returns how many clients got the message.
    pub(super) const fn reached(&self) -> usize {
        self.deliveries.len()
    }

    /// Returns the index of a client's delivery.
    pub(super) fn place(&self, client: &str) -> Option<usize> {
        self.by_client.get(client).copied()
    }

    pub(super) fn delivery(&self, place: usize) -> Option<&Delivery> {
        self.deliveries.get(place)
    }

    pub(super) fn delivery_mut(&mut self, place: usize) -> Option<&mut Delivery> {
        self.deliveries.get_mut(place)
    }

    /// Forgets an ended delivery except for its outcome.
    pub(super) fn forget(&mut self, place: usize) {
        self.remembered -= 1;
        if let Some(delivery) = self.deliveries.get_mut(place)
            && let State::Ended { outcome } = &delivery.state
        {
            let outcome = outcome.clone();
            delivery.state = State::Forgotten { outcome };
        }
    }

    /// Returns the question to the router.
    pub(super) fn request<'c>(&self, clients: impl Iterator<Item = &'c Candidate>) -> RouteRequest {
        let candidates = clients.filter(|one| !self.has_reached(&one.name));
        RouteRequest {
            text: self.input.text.clone(),
            input_method: self.input.method.clone(),
            confidence: self.input.shown_confidence(),
            candidates: candidates.cloned().collect(),
            excluded: self.deliveries.iter().map(|d| d.client.clone()).collect(),
            rejections: self.rejections.clone(),
        }
    }

    /// Returns the outcome at every client, without open deliveries.
    pub(super) fn outcomes(&self) -> Vec<Settlement> {
        let deliveries = self.deliveries.iter();
        let settlement = |delivery: &Delivery| {
            Some(Settlement {
                client: delivery.client.clone(),
                outcome: delivery.outcome()?.clone(),
            })
        };
        deliveries.filter_map(settlement).collect()
    }
}

impl Delivery {
    pub(super) const fn outcome(&self) -> Option<&Outcome> {
        match &self.state {
            State::Open { .. } => None,
            State::Ended { outcome } | State::Forgotten { outcome } => Some(outcome),
        }
    }

    pub(super) fn after(&self, answer: &Answer) -> Result<Outcome, Ignored> {
        let before = match &self.state {
            State::Open { .. } => None,
            State::Ended { outcome } => Some(outcome),
            State::Forgotten { .. } => return Err(Ignored::UnknownMessage),
        };
        match (answer, before) {
            (Answer::Unknown { tag, .. }, _) => Err(Ignored::UnknownAnswer(cut(tag))),
            (Answer::Ack, Some(Outcome::Acked)) => Err(Ignored::AlreadyAcked),
            (Answer::Ack | Answer::Reject(_), Some(Outcome::Rejected { .. })) => {
                Err(Ignored::AlreadyRejected)
            }
            (Answer::Ack, _) => Ok(Outcome::Acked),
            (Answer::Reject(reject), _) => Ok(Outcome::Rejected {
                reason: kept_reason(reject.reason.as_ref()),
            }),
            (Answer::Notification(_), None | Some(Outcome::TimedOut)) => Ok(Outcome::Notified),
            (Answer::Notification(_), Some(outcome)) => Ok(outcome.clone()),
        }
    }
}

/// Returns the reason that is recorded for a timeout.
pub(super) const fn timeout_reason() -> Str {
    Str::from_static(RESPONSE_TIMEOUT_REASON)
}

/// Returns a client's reason, or the one recorded if there is none.
fn kept_reason(reason: Option<&Str>) -> Str {
    match reason {
        Some(reason) if !trim(reason).is_empty() => cut(reason),
        _ => Str::from_static(NO_REASON),
    }
}

/// Cuts a text to the length that is kept.
pub(super) fn cut(text: &str) -> Str {
    beginning(text, MAX_REASON).into()
}
