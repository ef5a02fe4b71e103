//! [`Hub`]: the messages, subscriptions and questions of one process.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use super::Link;
use crate::Str;
use crate::store::subject::overlap;
use crate::store::{LogConfig, Message};

/// What is before the number of a question in the name of the place for its answer.
const ANSWER: &str = "_answer.";

#[derive(Debug, Default)]
pub(super) struct Hub {
    /// Told when the logs change.
    pub(super) changed: watch::Sender<()>,
    pub(super) subscribers: Vec<Subscriber>,
    pub(super) links: Vec<Weak<Link>>,
    questions: BTreeMap<u64, oneshot::Sender<Bytes>>,
    asked: u64,
}

#[derive(Debug)]
pub(super) struct Subscriber {
    pub(super) pattern: String,
    /// The messages, and when they may be delivered.
    pub(super) queue: mpsc::Sender<(Instant, Message)>,
    pub(super) link: Arc<Link>,
}

impl Hub {
    pub(super) fn publish(&mut self, subject: Str, payload: Bytes) {
        self.deliver(&message(subject, payload));
    }

    /// Puts a message into the queues of those who hear it. Returns whether there are any.
    pub(super) fn deliver(&mut self, message: &Message) -> bool {
        let mut is_delivered = false;
        self.subscribers.retain(|it| !it.queue.is_closed());
        for it in &self.subscribers {
            let faults = it.link.faults();
            if !faults.is_cut && overlap(&it.pattern, &message.subject) {
                is_delivered = true;
                let at = Instant::now() + faults.delay;
                if it.queue.try_send((at, message.clone())).is_err() {
                    it.link.gap();
                }
            }
        }
        is_delivered
    }

    /// Asks those who listen. Returns whether there are any.
    pub(super) fn ask(
        &mut self,
        subject: Str,
        payload: Bytes,
        answer: oneshot::Sender<Bytes>,
    ) -> bool {
        self.questions.retain(|_, answer| !answer.is_closed());
        if answer.is_closed() {
            return false;
        }
        self.asked += 1;
        self.questions.insert(self.asked, answer);
        self.deliver(&Message {
            reply_to: Some(format!("{ANSWER}{}", self.asked).into()),
            ..message(subject, payload)
        })
    }

    pub(super) fn answer(&mut self, reply_to: &str, payload: Bytes) {
        let number = reply_to.strip_prefix(ANSWER).and_then(|it| it.parse().ok());
        if let Some(answer) = number.and_then(|number| self.questions.remove(&number)) {
            let _ = answer.send(payload);
        }
    }

    /// All connections are new.
    pub(super) fn restart(&mut self) {
        self.links.retain(|link| link.strong_count() > 0);
        let links = self.links.iter().filter_map(Weak::upgrade);
        links.for_each(|link| link.gap());
        self.changed.send_replace(());
    }
}

pub(super) fn message(subject: Str, payload: Bytes) -> Message {
    Message {
        subject,
        payload,
        id: Str::EMPTY,
        position: None,
        reply_to: None,
    }
}

/// The subject on which a record of this subject is published.
pub(super) fn feed(config: &LogConfig, subject: &str) -> Option<Str> {
    let (feed, parts) = (config.feed.as_deref()?, config.subjects.split('.'));
    // What is left is for a last `>`.
    let tokens = subject.splitn(parts.clone().count(), '.');
    let mut wild = parts
        .zip(tokens)
        .filter(|(part, _)| matches!(*part, "*" | ">"))
        .map(|(_, token)| token);
    let tokens = feed.split('.').map(|part| match part {
        "*" | ">" => wild.next().unwrap_or(part),
        part => part,
    });
    Some(tokens.collect::<Vec<_>>().join(".").into())
}
