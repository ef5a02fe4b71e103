//! [`Engine`]: what the connections of a [`MemoryStore`](super::MemoryStore) have in common.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use super::Link;
use super::data::{Data, feed, full, overlap};
use crate::Str;
use crate::store::{LogConfig, Message, Position, Record, StoreError, Stored};

/// What the engine's clock says at the start, since 1970: the same in each run.
const START: Duration = Duration::from_secs(1_800_000_000);
/// What is before the number of a question in the name of the place for its answer.
const ANSWER: &str = "_answer.";

pub(super) struct Engine {
    start: Instant,
    pub(super) is_full: bool,
    pub(super) logs: BTreeMap<String, Data>,
    /// When the last log was made.
    made: u128,
    /// Told when the logs change.
    pub(super) changed: watch::Sender<()>,
    pub(super) subscribers: Vec<Subscriber>,
    pub(super) links: Vec<Weak<Link>>,
    questions: BTreeMap<u64, oneshot::Sender<Bytes>>,
    asked: u64,
}

pub(super) struct Subscriber {
    pub(super) pattern: String,
    /// The messages, and when they may be delivered.
    pub(super) queue: mpsc::Sender<(Instant, Message)>,
    pub(super) link: Arc<Link>,
}

impl Engine {
    pub(super) fn new() -> Self {
        Self {
            start: Instant::now(),
            is_full: false,
            logs: BTreeMap::new(),
            made: 0,
            changed: watch::Sender::new(()),
            subscribers: Vec::new(),
            links: Vec::new(),
            questions: BTreeMap::new(),
            asked: 0,
        }
    }

    /// The time since 1970.
    fn time(&self) -> Duration {
        START + self.start.elapsed()
    }

    /// Makes a log if it does not exist.
    pub(super) fn open(&mut self, name: &str, config: &LogConfig) -> Result<(), StoreError> {
        let (age, subjects) = (config.max_age, &config.subjects);
        let wrong = |message| Err(StoreError::Config { message });
        if let Some(kept) = self.logs.get(name).map(|data| data.config.max_age) {
            let is_shorter = kept.is_some_and(|kept| age.is_none_or(|age| kept < age));
            return if is_shorter {
                wrong(format!("the log {name} keeps records for {kept:?} only"))
            } else {
                Ok(())
            };
        }
        let others = self.logs.iter();
        let mut taken = others.filter(|(_, data)| overlap(&data.config.subjects, subjects));
        if let Some((other, _)) = taken.next() {
            return wrong(format!("{subjects} is in the log {other}"));
        }
        // Another log has another time.
        self.made = self.time().as_nanos().max(self.made + 1);
        let data = Data::new(config.clone(), self.made);
        self.logs.insert(name.to_owned(), data);
        Ok(())
    }

    /// The log with this name. One that is lost is made again, for the next request.
    pub(super) fn data(&mut self, name: &str, config: &LogConfig) -> Result<&mut Data, StoreError> {
        if !self.logs.contains_key(name) {
            self.open(name, config)?;
            let message = format!("the log {name} is lost");
            return Err(StoreError::Failed { message });
        }
        let message = format!("there is no log {name}");
        let data = self.logs.get_mut(name);
        let data = data.ok_or(StoreError::Failed { message })?;
        data.expire(Instant::now());
        Ok(data)
    }

    pub(super) fn append(
        &mut self,
        (name, config): (&str, &LogConfig),
        record: Record,
        expected: Option<u64>,
    ) -> Result<Stored, StoreError> {
        let (is_full, time) = (self.is_full, self.time().as_secs());
        let data = self.data(name, config)?;
        if !overlap(&data.config.subjects, &record.subject) {
            let message = format!("{} is not in the log {name}", record.subject);
            return Err(StoreError::Config { message });
        }
        if is_full {
            return Err(full("all of it is taken"));
        }
        let subject = feed(&data.config, &record.subject);
        let record = Record { time, ..record };
        let (payload, id) = (record.payload.clone(), record.id.clone());
        let (stored, previous) = data.append(Instant::now(), record, expected)?;
        let position = Position {
            sequence: stored.sequence,
            previous,
        };
        if !stored.is_duplicate {
            self.changed.send_replace(());
            if let Some(subject) = subject {
                self.deliver(&Message {
                    id,
                    position: Some(position),
                    ..message(subject, payload)
                });
            }
        }
        Ok(stored)
    }

    pub(super) fn publish(&mut self, subject: Str, payload: Bytes) {
        self.deliver(&message(subject, payload));
    }

    /// Puts a message into the queues of those who hear it. Returns whether there are any.
    fn deliver(&mut self, message: &Message) -> bool {
        let mut is_heard = false;
        self.subscribers.retain(|it| !it.queue.is_closed());
        for it in &self.subscribers {
            let faults = it.link.faults();
            if !faults.is_cut && overlap(&it.pattern, &message.subject) {
                is_heard = true;
                let at = Instant::now() + faults.delay;
                if it.queue.try_send((at, message.clone())).is_err() {
                    it.link.gap();
                }
            }
        }
        is_heard
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

fn message(subject: Str, payload: Bytes) -> Message {
    Message {
        subject,
        payload,
        id: Str::EMPTY,
        position: None,
        reply_to: None,
    }
}
