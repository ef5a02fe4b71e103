//! [`StreamLog`]: a log as a stream of JetStream.

use std::time::Duration;

use async_nats::header::{HeaderMap, NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, NATS_MESSAGE_ID};
use async_nats::jetstream::consumer::{self, AckPolicy, DeliverPolicy};
use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::publish::PublishAck;
use async_nats::jetstream::stream::{DeleteStatus, Info, RawMessage};
use async_nats::jetstream::{self, ErrorCode};
use async_nats::{Message, Request, StatusCode, Subscriber};
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::watch;
use tokio::time::timeout;

use super::error::of_answer;
use super::{Answer, Nats, answer_in, header};
use crate::Str;
use crate::store::subject::{
    check_in, check_len, check_pattern, check_subject, intersection, is_exact,
};
use crate::store::{Expect, Log, LogState, Record, Store, StoreError, Stored, Watched};

/// How many records are asked for at a time: fewer bytes than a server keeps for a slow reader.
const BATCH: u64 = 500;
/// How many records are deleted at a time.
const DELETES: usize = 64;
/// How often heads are listed until none of them changes meanwhile.
const MAX_LISTINGS: u32 = 8;
/// How often the server confirms an idle watch.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// How long a watch waits for that.
const SILENCE: Duration = Duration::from_secs(5);

pub(super) struct StreamLog {
    pub(super) nats: Nats,
    /// The stream's.
    pub(super) name: String,
    pub(super) subjects: String,
    /// Whether there is one record of each subject at most.
    pub(super) keeps_last: bool,
}

#[derive(Deserialize)]
struct MessageReply {
    message: RawMessage,
}

#[async_trait]
impl Log for StreamLog {
    async fn append(
        &self,
        subject: &str,
        payload: Bytes,
        expect: Expect<'_>,
    ) -> Result<Stored, StoreError> {
        check_len(&payload, self.nats.max_payload())?;
        check_in(&self.subjects, subject)?;
        let subject = self.nats.subject(subject);
        let mut headers = HeaderMap::new();
        if let Some(id) = expect.id {
            if id.contains(char::is_control) {
                return Err(StoreError::config("an id has no control characters"));
            }
            headers.insert(NATS_MESSAGE_ID, id);
        }
        if let Some(last) = expect.last {
            headers.insert(NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, last.to_string());
        }
        let send = async || {
            let request = Request {
                payload: Some(payload.clone()),
                headers: Some(headers.clone()).filter(|it| !it.is_empty()),
                ..Request::new()
            };
            let within = self.nats.shared.timeout;
            self.nats.request(&subject, request, within).await
        };
        let mut answer = send().await?;
        if answer.is_none() {
            // No one has it: it is not stored.
            self.nats.ensure().await?;
            answer = send().await?;
        }
        let answer = answer
            .ok_or_else(|| StoreError::unavailable("no JetStream stream stores this subject"))?;
        let stored: Answer<PublishAck> = answer_in(&answer)?;
        let stored = stored.map_err(|error| match of_answer(&error) {
            StoreError::Full { message } => StoreError::Full {
                message: format!("{message}, of the stream {}", self.name),
            },
            error => error,
        })?;
        Ok(Stored {
            sequence: stored.sequence,
            is_duplicate: stored.duplicate,
        })
    }

    async fn get(&self, sequence: u64) -> Result<Option<Record>, StoreError> {
        match sequence {
            0 => Ok(None),
            _ => self.find(&json!({ "seq": sequence })).await,
        }
    }

    async fn last(&self, subject: &str) -> Result<Option<Record>, StoreError> {
        check_subject(subject)?;
        let subject = self.nats.subject(subject);
        self.find(&json!({ "last_by_subj": subject })).await
    }

    async fn read(&self, pattern: &str, after: u64, max: usize) -> Result<Vec<Record>, StoreError> {
        let mut records: Vec<Record> = Vec::new();
        let Some(pattern) = self.within(pattern)? else {
            return Ok(records);
        };
        let subject = self.nats.subject(&pattern);
        while records.len() < max {
            let last = records.last().map_or(after, |record| record.sequence);
            // The leader knows whether there are more; a consumer may be at a replica that is behind.
            let next = json!({ "seq": last.saturating_add(1), "next_by_subj": subject });
            let Some(next) = self.find(&next).await? else {
                break;
            };
            let start_sequence = next.sequence.saturating_add(1);
            records.push(next);
            if records.len() < max {
                let from = DeliverPolicy::ByStartSequence { start_sequence };
                let more = self.fetch(self.consumer(&pattern, from), max - records.len());
                records.extend(more.await?.0);
            }
        }
        Ok(records)
    }

    async fn heads(&self, pattern: &str) -> Result<Vec<Record>, StoreError> {
        let Some(pattern) = self.within(pattern)? else {
            return Ok(Vec::new());
        };
        let consumer = consumer::Config {
            headers_only: true,
            ..self.consumer(&pattern, DeliverPolicy::LastPerSubject)
        };
        let mut attempts = 0;
        loop {
            let (heads, is_whole) = self.fetch(consumer.clone(), usize::MAX).await?;
            attempts += 1;
            // A key that is written anew meanwhile is not where the consumer looks for it.
            if is_whole || attempts == MAX_LISTINGS {
                return Ok(heads);
            }
        }
    }

    async fn watch(&self, pattern: &str) -> Result<Watched, StoreError> {
        let Some(pattern) = self.within(pattern)? else {
            let mark = stream::once(async { Ok(None) });
            return Ok(mark.chain(stream::pending()).boxed());
        };
        let gaps = self.nats.gaps();
        let inbox = self.nats.shared.client.new_inbox();
        let messages = self.nats.listen(inbox.clone()).await?;
        let consumer = consumer::Config {
            deliver_subject: Some(inbox),
            flow_control: true,
            idle_heartbeat: HEARTBEAT,
            ..self.consumer(&pattern, DeliverPolicy::LastPerSubject)
        };
        let watching = Watching {
            left: Some(self.create(consumer).await?.num_pending),
            nats: self.nats.clone(),
            messages,
            gaps,
            last: Last::default(),
        };
        let watched = stream::try_unfold(watching, async |mut watching| {
            let next = watching.next().await?;
            Ok(Some((next, watching)))
        });
        Ok(watched.boxed())
    }

    /// Each record is deleted by its number: before NATS 2.10.11, a purge by subject makes consumers skip
    /// records of other subjects.
    async fn purge(&self, pattern: &str, before: u64) -> Result<u64, StoreError> {
        let Some(pattern) = self.within(pattern)? else {
            return Ok(0);
        };
        let found = if self.keeps_last && is_exact(&pattern) {
            Vec::from_iter(self.last(&pattern).await?)
        } else {
            let consumer = consumer::Config {
                headers_only: true,
                ..self.consumer(&pattern, DeliverPolicy::All)
            };
            self.fetch(consumer, usize::MAX).await?.0
        };
        let below = found.into_iter().filter(|it| it.sequence < before);
        let deleting: Vec<_> = below.map(|it| self.delete(it.sequence)).collect();
        let deleted = stream::iter(deleting).buffer_unordered(DELETES);
        let count = deleted.try_fold(0, async |sum, it| Ok(sum + u64::from(it)));
        count.await
    }

    async fn state(&self) -> Result<LogState, StoreError> {
        let info: Info = self.api("STREAM.INFO", &()).await?;
        let state = info.state;
        Ok(LogState {
            created: u128::try_from(info.created.unix_timestamp_nanos()).unwrap_or_default(),
            first: match state.messages {
                0 => state.last_sequence + 1,
                _ => state.first_sequence,
            },
            last: state.last_sequence,
            records: state.messages,
            bytes: state.bytes,
            subjects: state.subjects_count,
        })
    }
}

impl StreamLog {
    /// The pattern of those subjects of the log that match a pattern: a consumer takes no others.
    fn within(&self, pattern: &str) -> Result<Option<String>, StoreError> {
        check_pattern(pattern)?;
        Ok(intersection(&self.subjects, pattern))
    }

    /// Asks JetStream about the stream. If that is gone it is made again, for the next request.
    async fn ask<T: DeserializeOwned>(
        &self,
        verb: &str,
        body: &impl Serialize,
    ) -> Result<Answer<T>, StoreError> {
        let answer = self.nats.ask_jetstream(verb, &self.name, body).await?;
        if let Err(error) = &answer
            && error.error_code() == ErrorCode::STREAM_NOT_FOUND
        {
            self.nats.ensure().await?;
        }
        Ok(answer)
    }

    async fn api<T: DeserializeOwned>(
        &self,
        verb: &str,
        body: &impl Serialize,
    ) -> Result<T, StoreError> {
        let answer = self.ask(verb, body).await?;
        answer.map_err(|error| of_answer(&error))
    }

    async fn find(&self, body: &serde_json::Value) -> Result<Option<Record>, StoreError> {
        let found: MessageReply = match self.ask("STREAM.MSG.GET", body).await? {
            Err(error) if error.error_code() == ErrorCode::NO_MESSAGE_FOUND => return Ok(None),
            found => found.map_err(|error| of_answer(&error))?,
        };
        let found = StreamMessage::try_from(found.message);
        let found = found.map_err(StoreError::failed)?;
        let id = found.headers.get(NATS_MESSAGE_ID);
        Ok(Some(Record {
            subject: self.nats.relative(&found.subject),
            sequence: found.sequence,
            id: id.map_or(Str::EMPTY, |id| id.as_str().into()),
            payload: found.payload,
            time: u64::try_from(found.time.unix_timestamp()).unwrap_or_default(),
        }))
    }

    /// Deletes a record. Returns whether it was there.
    async fn delete(&self, sequence: u64) -> Result<bool, StoreError> {
        let body = json!({ "seq": sequence, "no_erase": true });
        let answer: Answer<DeleteStatus> = self.ask("STREAM.MSG.DELETE", &body).await?;
        match answer {
            Ok(_) => Ok(true),
            // It says so in several ways.
            Err(error) => match self.get(sequence).await? {
                None => Ok(false),
                Some(_) => Err(of_answer(&error)),
            },
        }
    }

    /// A consumer without acknowledgements, which ends by itself.
    fn consumer(&self, pattern: &str, from: DeliverPolicy) -> consumer::Config {
        consumer::Config {
            deliver_policy: from,
            filter_subject: self.nats.subject(pattern),
            ack_policy: AckPolicy::None,
            max_deliver: 1,
            inactive_threshold: SILENCE,
            num_replicas: 1,
            memory_storage: true,
            ..consumer::Config::default()
        }
    }

    async fn create(&self, config: consumer::Config) -> Result<consumer::Info, StoreError> {
        let body = json!({ "stream_name": self.name, "config": config });
        self.api("CONSUMER.CREATE", &body).await
    }

    /// Reads what a consumer brings now, at most `max` records. Returns whether none of them was removed
    /// meanwhile, too.
    async fn fetch(
        &self,
        config: consumer::Config,
        max: usize,
    ) -> Result<(Vec<Record>, bool), StoreError> {
        let consumer = self.create(config).await?;
        let (client, within) = (&self.nats.shared.client, self.nats.shared.timeout);
        let place = format!("{}.{}", self.name, consumer.name);
        let next = format!("$JS.API.CONSUMER.MSG.NEXT.{place}");
        let inbox = client.new_inbox();
        let mut messages = self.nats.listen(inbox.clone()).await?;
        let pending = usize::try_from(consumer.num_pending).unwrap_or(usize::MAX);
        let max = pending.min(max);
        let (mut records, mut last) = (Vec::new(), Last::default());
        let mut asked = 0;
        while last.number < max as u64 {
            if last.number == asked {
                let batch = BATCH.min(max as u64 - asked);
                let body = json!({ "batch": batch, "no_wait": true }).to_string();
                let asking = client.publish_with_reply(next.clone(), inbox.clone(), body.into());
                asking.await.map_err(StoreError::unavailable)?;
                asked += batch;
            }
            let message = timeout(within, messages.next()).await;
            let message = message.map_err(StoreError::unavailable)?;
            let message = message.ok_or_else(|| StoreError::unavailable("it is closed"))?;
            match message.status {
                None => records.extend(last.next(&self.nats, message)?),
                // Some have been removed meanwhile.
                Some(StatusCode::NOT_FOUND | StatusCode::TIMEOUT) => break,
                Some(status) => return Err(StoreError::unavailable(status)),
            }
        }
        // It would end by itself, later.
        let delete = format!("$JS.API.CONSUMER.DELETE.{place}");
        let _ = client.publish(delete, Bytes::new()).await;
        let is_whole = records.len() == max;
        Ok((records, is_whole))
    }
}

crate::debug::debug_fields!([] StreamLog, this => { name: this.name });

/// A watch on a push consumer.
struct Watching {
    nats: Nats,
    messages: Subscriber,
    gaps: watch::Receiver<u64>,
    last: Last,
    /// How many records the consumer brings before `None`; nothing once that was delivered.
    left: Option<u64>,
}

impl Watching {
    async fn next(&mut self) -> Result<Option<Record>, StoreError> {
        loop {
            if self.left == Some(0) {
                self.left = None;
                return Ok(None);
            }
            let next = tokio::select! {
                next = timeout(SILENCE, self.messages.next()) => next.ok().flatten(),
                _ = self.gaps.changed() => None,
            };
            let message = next.ok_or_else(|| StoreError::unavailable("a watch is interrupted"))?;
            if message.status.is_none() {
                self.left = self.left.map(|left| left.saturating_sub(1));
                if let Some(record) = self.last.next(&self.nats, message)? {
                    return Ok(Some(record));
                }
                continue;
            }
            let stalled = header(&message, "Nats-Consumer-Stalled");
            match message.reply.as_deref().or(stalled) {
                // The server asks whether messages are read.
                Some(reply) => {
                    let client = &self.nats.shared.client;
                    let _ = client.publish(reply.to_owned(), Bytes::new()).await;
                }
                // There is nothing more: some have been removed meanwhile.
                None => self.left = self.left.map(|_| 0),
            }
        }
    }
}

/// What a consumer has brought last.
#[derive(Default)]
struct Last {
    /// Its number among all that the consumer has brought.
    number: u64,
    sequence: u64,
}

impl Last {
    /// The next record; `None` if it was there already: before NATS 2.10, instead of one that was removed.
    fn next(&mut self, nats: &Nats, message: Message) -> Result<Option<Record>, StoreError> {
        let message = jetstream::Message {
            message,
            context: nats.shared.jetstream.clone(),
        };
        let info = message.info().map_err(StoreError::failed)?;
        self.number += 1;
        if info.consumer_sequence != self.number {
            return Err(StoreError::unavailable("a record is missed"));
        }
        if info.stream_sequence <= self.sequence {
            return Ok(None);
        }
        self.sequence = info.stream_sequence;
        Ok(Some(Record {
            subject: nats.relative(&message.subject),
            sequence: self.sequence,
            id: header(&message, NATS_MESSAGE_ID).map_or(Str::EMPTY, Str::from),
            time: u64::try_from(info.published.unix_timestamp()).unwrap_or_default(),
            payload: message.message.payload,
        }))
    }
}
