//! What makes streams again that the server has lost.

use std::sync::atomic::Ordering;
use std::time::Duration;

use async_nats::header::{HeaderMap, NATS_MESSAGE_ID};
use async_nats::jetstream::publish::PublishAck;
use async_nats::jetstream::stream::{Config, DeleteStatus};
use async_nats::{Request, Subscriber};
use futures_util::StreamExt;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::error::of_answer;
use super::{Answer, Nats, answer_in, feed_of, header};
use crate::net::entropy;
use crate::store::{Store, StoreError};

/// How long to wait at least before a stream is made again: the server may still be deleting it, and what
/// it makes meanwhile is broken.
const LEAST_WAIT: Duration = Duration::from_millis(250);
/// How much longer at most, in milliseconds, so that one node of several is the first.
const SPREAD: u64 = 1_000;
/// The place of the record that proves a stream: [`token`](crate::store::token) makes no such token.
const PROOF: &str = "=proof";

impl Nats {
    /// Makes the streams again that are lost. One search at a time: who has waited for another finds them made.
    pub(super) async fn remake(&self) -> Result<(), StoreError> {
        let searches = self.shared.searches.load(Ordering::Relaxed);
        let mut opened = self.shared.opened.lock().await;
        // The one that ran at the call may have looked before the loss.
        if opened.is_complete && self.shared.searches.load(Ordering::Relaxed) > searches + 1 {
            return Ok(());
        }
        self.shared.searches.fetch_add(1, Ordering::Relaxed);
        opened.is_complete = false;
        let mut lost = Vec::new();
        for stream in &opened.streams {
            if self.find(&stream.name).await?.is_none() {
                lost.push(stream);
            }
        }
        if !lost.is_empty() {
            sleep(LEAST_WAIT + Duration::from_millis(entropy() % SPREAD)).await;
        }
        for stream in lost {
            if self.find(&stream.name).await?.is_none() {
                self.create(stream).await?;
                tracing::error!(name = stream.name, "a stream was lost and is made again");
                self.prove(stream).await?;
            }
        }
        opened.is_complete = true;
        Ok(())
    }

    /// Proves that a stream takes a record, has it, and publishes it in its feed. Removes one that does not.
    async fn prove(&self, stream: &Config) -> Result<(), StoreError> {
        let name = &stream.name;
        let feed = stream.republish.as_ref();
        let feed = feed.map(|feed| place(&feed_of(&feed.destination)));
        let mut messages = None;
        if let Some(feed) = feed {
            messages = Some(self.listen(feed).await?);
            self.round_trip().await?;
        }
        let mut gaps = self.shared.gap_count.clone();
        gaps.mark_unchanged();
        let id = format!("{:016x}", entropy());
        let mut headers = HeaderMap::new();
        headers.insert(NATS_MESSAGE_ID, id.as_str());
        let subject = place(stream.subjects.first().map_or("", String::as_str));
        let request = Request::new().headers(headers).payload("".into());
        let answer = self.request(&subject, request, self.shared.timeout).await?;
        let answer = answer
            .ok_or_else(|| StoreError::unavailable("no JetStream stream stores this subject"))?;
        let stored: PublishAck = answer_in(&answer)?.map_err(|error| of_answer(&error))?;
        let is_brought = match messages {
            Some(messages) => self.brings(messages, &id).await,
            None => true,
        };
        let number = json!({ "seq": stored.sequence });
        let found: Answer<Value> = self.ask_jetstream("STREAM.MSG.GET", name, &number).await?;
        if is_brought && found.is_ok() {
            let number = json!({ "seq": stored.sequence, "no_erase": true });
            let removed = self.ask_jetstream("STREAM.MSG.DELETE", name, &number);
            let _: Answer<DeleteStatus> = removed.await?;
            return Ok(());
        }
        // Without a connection it may have brought it.
        if !gaps.has_changed().unwrap_or(true) && self.is_connected() {
            tracing::error!(name, "the server has made a broken stream: it is removed");
            let removed = self.ask_jetstream("STREAM.DELETE", name, &());
            let _: Answer<DeleteStatus> = removed.await?;
        }
        Err(StoreError::unavailable(
            "a stream that was made again is broken",
        ))
    }

    /// Whether a feed brings the record with this id in time.
    async fn brings(&self, messages: Subscriber, id: &str) -> bool {
        let is_it = |message| async move { header(&message, NATS_MESSAGE_ID) == Some(id) };
        let brought = timeout(self.shared.timeout, messages.any(is_it)).await;
        brought.unwrap_or(false)
    }
}

/// The place of the proof among these subjects.
fn place(subjects: &str) -> String {
    subjects.replace(['*', '>'], PROOF)
}
