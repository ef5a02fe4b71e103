//! What becomes of every message at every client, by what the hub tells; and whether it may be true.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use smarthole_proto::hub::{HubEvent, Outcome as Fate};
use smarthole_proto::id::MessageId;
use switchboard_testing::sim::{Outcome, ensure};

const PATIENCE: Duration = Duration::from_secs(30);

/// What a client says to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Word {
    Ack,
    Reject,
    Notify,
}

#[derive(Debug)]
struct Delivery {
    at: Instant,
    /// The client has said something, or its time is over.
    is_ended: bool,
    /// It has arrived, whatever connection it took.
    is_received: bool,
}

/// A message that was submitted.
#[derive(Debug, Default)]
struct Life {
    deliveries: HashMap<String, Delivery>,
    is_settled: bool,
}

/// All messages, and what clients have said to them.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    lives: HashMap<MessageId, Life>,
    said: HashSet<(MessageId, String, Word)>,
    pub(crate) settled: u64,
    /// Messages that someone took.
    pub(crate) taken: u64,
}

impl Ledger {
    pub(crate) fn submitted(&mut self, id: &MessageId) -> Outcome {
        let is_new = self.lives.insert(id.clone(), Life::default()).is_none();
        ensure(is_new, || format!("{id} was given twice"))
    }

    /// A client hears a message. No one hears one twice, or one that was not sent to it.
    pub(crate) fn received(&mut self, id: &MessageId, client: &str) -> Outcome {
        let life = self.lives.get_mut(id);
        let delivery = life.and_then(|life| life.deliveries.get_mut(client));
        let delivery = delivery.ok_or_else(|| format!("{id} was not for {client}"))?;
        let again = std::mem::replace(&mut delivery.is_received, true);
        ensure(!again, || format!("{client} got {id} twice"))
    }

    /// A client has something to say to a message.
    pub(crate) fn sends(&mut self, id: &MessageId, client: &str, word: Word) {
        self.said.insert((id.clone(), client.to_owned(), word));
    }

    /// What the hub tells has to fit what it told before, and what clients have said.
    pub(crate) fn on_event(&mut self, event: &HubEvent, now: Instant) -> Outcome {
        match event {
            HubEvent::Route {
                message, request, ..
            } => {
                let life = self.life(message)?;
                let mut candidates = request.candidates.iter();
                let twice = candidates.find(|one| life.deliveries.contains_key(&*one.name));
                ensure(twice.is_none(), || {
                    format!("{twice:?} has {message} already")
                })
            }
            HubEvent::Delivered { client, message } => {
                let message = &message.id;
                let delivery = Delivery {
                    at: now,
                    is_ended: false,
                    is_received: false,
                };
                let life = self.life(message)?;
                let before = life.deliveries.insert(client.to_string(), delivery);
                ensure(before.is_none(), || {
                    format!("{message} goes to {client} again")
                })
            }
            HubEvent::Acked {
                message, client, ..
            } => self.answered(message, client, Word::Ack),
            HubEvent::Notification {
                message, client, ..
            } => self.answered(message, client, Word::Notify),
            HubEvent::Rejected {
                message,
                client,
                timed_out: false,
                ..
            } => self.answered(message, client, Word::Reject),
            HubEvent::Rejected {
                message, client, ..
            } => {
                let delivery = self.life(message)?.deliveries.get_mut(&**client);
                let delivery = delivery.ok_or("a timeout of what was not sent")?;
                let again = std::mem::replace(&mut delivery.is_ended, true);
                let late = now >= delivery.at + PATIENCE;
                ensure(late && !again, || {
                    format!("{client} is timed out: {delivery:?}")
                })
            }
            HubEvent::Settled { message, outcomes } => {
                let life = self.life(message)?;
                let again = std::mem::replace(&mut life.is_settled, true);
                ensure(!again, || format!("{message} is settled twice"))?;
                let open = life.deliveries.values().find(|it| !it.is_ended);
                ensure(open.is_none(), || format!("settled, and open: {open:?}"))?;
                let all = outcomes.len() == life.deliveries.len();
                ensure(all, || format!("not everybody: {outcomes:?}"))?;
                for one in outcomes {
                    self.check_fate(message, &one.client, &one.outcome)?;
                }
                self.settled += 1;
                let taken = outcomes.iter().any(|one| one.outcome.is_taken());
                self.taken += u64::from(taken);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Every message that was submitted has been settled.
    pub(crate) fn check_all_settled(&self) -> Outcome {
        let open = self.lives.iter().find(|(_, life)| !life.is_settled);
        ensure(open.is_none(), || format!("never settled: {open:?}"))
    }

    fn life(&mut self, message: &MessageId) -> Outcome<&mut Life> {
        let life = self.lives.get_mut(message);
        life.ok_or_else(|| format!("nobody submitted {message}"))
    }

    /// A client is told to have said something: it has, and it had got the message.
    fn answered(&mut self, message: &MessageId, client: &str, word: Word) -> Outcome {
        let delivery = self.life(message)?.deliveries.get_mut(client);
        let delivery = delivery.ok_or_else(|| format!("{client} answers {message}"))?;
        delivery.is_ended = true;
        ensure(delivery.is_received, || {
            "answered before it came".to_owned()
        })?;
        self.check_sent(message, client, word)
    }

    fn check_fate(&self, message: &MessageId, client: &str, fate: &Fate) -> Outcome {
        match fate {
            Fate::Acked => self.check_sent(message, client, Word::Ack),
            Fate::Notified => self.check_sent(message, client, Word::Notify),
            Fate::Rejected { .. } => self.check_sent(message, client, Word::Reject),
            _ => Ok(()),
        }
    }

    fn check_sent(&self, message: &MessageId, client: &str, word: Word) -> Outcome {
        let said = (self.said).contains(&(message.clone(), client.to_owned(), word));
        ensure(said, || {
            format!("{client} never said {word:?} to {message}")
        })
    }
}
