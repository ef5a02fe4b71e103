//! [`StreamLog`]: a log as a stream of JetStream.

use std::fmt;
use std::time::Duration;

use async_nats::header::{HeaderMap, NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, NATS_MESSAGE_ID};
use async_nats::jetstream::consumer::{self, AckPolicy, DeliverPolicy};
use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::publish::PublishAck;
use async_nats::jetstream::stream::{Info, PurgeResponse, RawMessage};
use async_nats::jetstream::{self, ErrorCode};
use async_nats::{Message, Request, StatusCode, Subscriber};
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::watch;
use tokio::time::timeout;

use super::error::of_answer;
use super::{Answer, Nats, answer_in, header};
use crate::Str;
use crate::cluster::{Expect, Log, LogState, Record, StoreError, Stored, Watched};

/// How many records are asked for at a time: fewer bytes than a server keeps for a slow reader.
const BATCH: usize = 500;
/// How often the server tells a watch that it is still there.
const HEARTBEAT: Duration = Duration::from_secs(5);

pub(super) struct StreamLog {
    pub(super) nats: Nats,
    /// The stream's.
    pub(super) name: String,
}

#[derive(Deserialize)]
struct Found {
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
        let subject = self.nats.subject(subject);
        let mut headers = HeaderMap::new();
        if let Some(id) = expect.id {
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
            // Nobody has it: it is not stored.
            self.nats.make_all().await?;
            answer = send().await?;
        }
        let answer = answer.ok_or_else(|| StoreError::unavailable("no stream takes the record"))?;
        let stored: PublishAck = answer_in(&answer)?.map_err(|error| of_answer(&error))?;
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
        let subject = self.nats.subject(subject);
        self.find(&json!({ "last_by_subj": subject })).await
    }

    async fn read(&self, pattern: &str, after: u64, max: usize) -> Result<Vec<Record>, StoreError> {
        let start_sequence = after.saturating_add(1);
        let from = DeliverPolicy::ByStartSequence { start_sequence };
        self.fetch(self.consumer(pattern, from), max).await
    }

    async fn heads(&self, pattern: &str) -> Result<Vec<Record>, StoreError> {
        let consumer = consumer::Config {
            headers_only: true,
            ..self.consumer(pattern, DeliverPolicy::LastPerSubject)
        };
        self.fetch(consumer, usize::MAX).await
    }

    async fn watch(&self, pattern: &str) -> Result<Watched, StoreError> {
        let gaps = self.nats.gap_count();
        let inbox = self.nats.shared.client.new_inbox();
        let messages = self.nats.listen(inbox.clone()).await?;
        let consumer = consumer::Config {
            deliver_subject: Some(inbox),
            flow_control: true,
            idle_heartbeat: HEARTBEAT,
            ..self.consumer(pattern, DeliverPolicy::LastPerSubject)
        };
        let watching = Watching {
            left: Some(self.create(consumer).await?.num_pending),
            nats: self.nats.clone(),
            messages,
            gaps,
            last: 0,
        };
        let watched = stream::try_unfold(watching, async |mut watching| {
            let next = watching.next().await?;
            Ok(Some((next, watching)))
        });
        Ok(watched.boxed())
    }

    async fn purge(&self, pattern: &str, before: u64) -> Result<u64, StoreError> {
        // JetStream takes 1 for no bound.
        if before <= 1 {
            return Ok(0);
        }
        let body = json!({ "filter": self.nats.subject(pattern), "seq": before });
        let purged: PurgeResponse = self.api("STREAM.PURGE", &body).await?;
        Ok(purged.purged)
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
            tracing::warn!(name = self.name, "a stream is gone and is made again");
            self.nats.make_all().await?;
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
        let found: Found = match self.ask("STREAM.MSG.GET", body).await? {
            Err(error) if error.error_code() == ErrorCode::NO_MESSAGE_FOUND => return Ok(None),
            found => found.map_err(|error| of_answer(&error))?,
        };
        let found = StreamMessage::try_from(found.message);
        let found = found.map_err(|error| StoreError::Failed {
            message: error.to_string(),
        })?;
        let id = found.headers.get(NATS_MESSAGE_ID);
        Ok(Some(Record {
            subject: self.nats.relative(&found.subject),
            sequence: found.sequence,
            id: id.map_or(Str::EMPTY, |id| id.as_str().into()),
            payload: found.payload,
            time: u64::try_from(found.time.unix_timestamp()).unwrap_or_default(),
        }))
    }

    /// A consumer that nobody acknowledges, and that ends by itself.
    fn consumer(&self, pattern: &str, from: DeliverPolicy) -> consumer::Config {
        consumer::Config {
            deliver_policy: from,
            filter_subject: self.nats.subject(pattern),
            ack_policy: AckPolicy::None,
            max_deliver: 1,
            inactive_threshold: HEARTBEAT * 2,
            num_replicas: 1,
            memory_storage: true,
            ..consumer::Config::default()
        }
    }

    async fn create(&self, config: consumer::Config) -> Result<consumer::Info, StoreError> {
        let body = json!({ "stream_name": self.name, "config": config });
        self.api("CONSUMER.CREATE", &body).await
    }

    /// Reads what a consumer brings now, at most `max` records.
    async fn fetch(&self, config: consumer::Config, max: usize) -> Result<Vec<Record>, StoreError> {
        let consumer = self.create(config).await?;
        let client = &self.nats.shared.client;
        let place = format!("{}.{}", self.name, consumer.name);
        let inbox = client.new_inbox();
        let mut messages = self.nats.listen(inbox.clone()).await?;
        let wanted = usize::try_from(consumer.num_pending)
            .unwrap_or(usize::MAX)
            .min(max);
        let mut records = Vec::new();
        while records.len() < wanted {
            let batch = BATCH.min(wanted - records.len());
            let next = json!({ "batch": batch, "no_wait": true }).to_string();
            let subject = format!("$JS.API.CONSUMER.MSG.NEXT.{place}");
            let asking = client.publish_with_reply(subject, inbox.clone(), next.into());
            asking.await.map_err(StoreError::unavailable)?;
            let before = records.len();
            while records.len() < before + batch {
                let message = timeout(self.nats.shared.timeout, messages.next()).await;
                let message = message.map_err(StoreError::unavailable)?;
                let message = message.ok_or_else(|| StoreError::unavailable("it is closed"))?;
                match message.status {
                    None => {}
                    // Some were removed meanwhile.
                    Some(StatusCode::NOT_FOUND | StatusCode::TIMEOUT) => return Ok(records),
                    Some(status) => return Err(StoreError::unavailable(status)),
                }
                let delivered = self.nats.delivered(message)?;
                records.push(delivered.record);
                if delivered.number != records.len() as u64 {
                    return Err(StoreError::unavailable("a record is missed"));
                }
            }
        }
        // It would end by itself, later.
        let delete = format!("$JS.API.CONSUMER.DELETE.{place}");
        let _ = client.publish(delete, Bytes::new()).await;
        Ok(records)
    }
}

impl fmt::Debug for StreamLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StreamLog").field(&self.name).finish()
    }
}

/// A watch on a push consumer.
struct Watching {
    nats: Nats,
    messages: Subscriber,
    gaps: watch::Receiver<u64>,
    /// The number of the last record that the consumer has brought.
    last: u64,
    /// How many records are to come before `None`; nothing when that was told.
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
                next = timeout(HEARTBEAT * 2, self.messages.next()) => next.ok().flatten(),
                _ = self.gaps.changed() => None,
            };
            let message = next.ok_or_else(|| StoreError::unavailable("a watch is interrupted"))?;
            if message.status.is_none() {
                let delivered = self.nats.delivered(message)?;
                self.last += 1;
                if delivered.number != self.last {
                    return Err(StoreError::unavailable("a record is missed"));
                }
                let left = self.left.map(|left| left.saturating_sub(1));
                self.left = left.map(|left| left.min(delivered.pending));
                return Ok(Some(delivered.record));
            }
            let stalled = header(&message, "Nats-Consumer-Stalled");
            match message.reply.as_deref().or(stalled) {
                // The server asks whether messages are read.
                Some(reply) => {
                    let client = &self.nats.shared.client;
                    let _ = client.publish(reply.to_owned(), Bytes::new()).await;
                }
                None => self.left = self.left.map(|_| 0),
            }
        }
    }
}

/// A record that a consumer brings.
struct Delivered {
    record: Record,
    /// Its number among those that the consumer has brought.
    number: u64,
    /// How many are still to come.
    pending: u64,
}

impl Nats {
    fn delivered(&self, message: Message) -> Result<Delivered, StoreError> {
        let message = jetstream::Message {
            message,
            context: self.shared.jetstream.clone(),
        };
        let info = message.info().map_err(|error| StoreError::Failed {
            message: error.to_string(),
        })?;
        let (number, pending) = (info.consumer_sequence, info.pending);
        let (sequence, time) = (info.stream_sequence, info.published.unix_timestamp());
        let record = Record {
            subject: self.relative(&message.subject),
            sequence,
            id: header(&message, NATS_MESSAGE_ID).map_or(Str::EMPTY, Str::from),
            payload: message.message.payload,
            time: u64::try_from(time).unwrap_or_default(),
        };
        Ok(Delivered {
            record,
            number,
            pending,
        })
    }
}
