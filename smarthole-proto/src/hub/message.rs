//! [`MessageState`]: everything about one input, and [`Delivery`]: its state at one client.

use std::collections::HashMap;
use std::time::SystemTime;

use rpc_core::CallId;
use rpc_core::Str;
use rpc_core::text::beginning;

use super::event::{Ignored, Outcome, Settlement, Unroutable};
use super::input::Input;
use crate::frame::Answer;
use crate::id::MessageId;
use crate::limits::{MAX_REASON, NO_REASON, RESPONSE_TIMEOUT_REASON};
use crate::router::{Candidate, Rejection, RouteRequest};
use crate::validate::trim;

/// Everything about one input: who got it, who rejected it, what is open.
pub(super) struct MessageState {
    pub(super) id: MessageId,
    pub(super) input: Input,
    /// The time for people at which the user said it.
    pub(super) created: SystemTime,
    pub(super) direct: bool,
    /// In the order of delivery, at most one for each name.
    deliveries: Vec<Delivery>,
    by_client: HashMap<Str, usize>,
    pub(super) rejections: Vec<Rejection>,
    /// Questions to the router that are open.
    pub(super) routes: usize,
    /// Deliveries whose clients have time left.
    pub(super) open: usize,
    /// Deliveries that the history remembers.
    pub(super) remembered: usize,
    /// Why the last copy that ended untaken went no further.
    pub(super) why: Option<Unroutable>,
    /// Whether the hub counts it as open.
    pub(super) counted: bool,
    /// Whether [`HubEvent::Settled`](super::HubEvent::Settled) has been told.
    pub(super) settled: bool,
}

/// A message at one client.
pub(super) struct Delivery {
    pub(super) client: Str,
    /// Which attempt of its chain this is: 1 for the first client, 2 for the one after its rejection.
    pub(super) attempt: u32,
    pub(super) state: State,
    /// Whether the client let its time pass. Whatever it says then moves nothing any more.
    pub(super) late: bool,
}

pub(super) enum State {
    /// The client has time left.
    Open { timer: CallId },
    /// The client has responded, or let its time pass.
    Ended { outcome: Outcome },
    /// As `Ended`, and the history has forgotten it: further responses are not understood.
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

    /// Whether nothing is open about it.
    pub(super) const fn is_idle(&self) -> bool {
        self.routes == 0 && self.open == 0
    }

    /// Whether somebody took it.
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

    /// Whether a client of this name got the message.
    pub(super) fn has_reached(&self, client: &str) -> bool {
        self.by_client.contains_key(client)
    }

    /// How many clients got the message.
    pub(super) const fn reached(&self) -> usize {
        self.deliveries.len()
    }

    /// The place of a client's delivery.
    pub(super) fn place(&self, client: &str) -> Option<usize> {
        self.by_client.get(client).copied()
    }

    pub(super) fn delivery(&self, place: usize) -> Option<&Delivery> {
        self.deliveries.get(place)
    }

    pub(super) fn delivery_mut(&mut self, place: usize) -> Option<&mut Delivery> {
        self.deliveries.get_mut(place)
    }

    /// Forgets a delivery that ended, but for its outcome.
    pub(super) fn forget(&mut self, place: usize) {
        self.remembered -= 1;
        if let Some(delivery) = self.deliveries.get_mut(place)
            && let State::Ended { outcome } = &delivery.state
        {
            let outcome = outcome.clone();
            delivery.state = State::Forgotten { outcome };
        }
    }

    /// Whether a name was one of the candidates of a question that was asked when so many clients
    /// had got the message.
    pub(super) fn was_candidate(&self, name: &str, asked: &[Candidate], reached: usize) -> bool {
        self.place(name).is_none_or(|place| place >= reached)
            && asked.iter().any(|candidate| candidate.name == name)
    }

    /// The question to the router.
    pub(super) fn request(&self, clients: &[Candidate]) -> RouteRequest {
        let candidates = clients.iter().filter(|one| !self.has_reached(&one.name));
        RouteRequest {
            text: self.input.text.clone(),
            input_method: self.input.method.clone(),
            confidence: self.input.shown_confidence(),
            candidates: candidates.cloned().collect(),
            excluded: self.deliveries.iter().map(|d| d.client.clone()).collect(),
            rejections: self.rejections.clone(),
        }
    }

    /// How it ended at every client. What is open is left out.
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

    /// What the outcome is after this answer.
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

/// The reason that stands for silence.
pub(super) const fn timeout_reason() -> Str {
    Str::from_static(RESPONSE_TIMEOUT_REASON)
}

/// A client's reason, or what stands for none.
fn kept_reason(reason: Option<&Str>) -> Str {
    match reason {
        Some(reason) if !trim(reason).is_empty() => cut(reason),
        _ => Str::from_static(NO_REASON),
    }
}

/// A text that is short enough to be kept.
pub(super) fn cut(text: &str) -> Str {
    beginning(text, MAX_REASON).into()
}
