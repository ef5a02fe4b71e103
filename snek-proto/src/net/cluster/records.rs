//! [`Records`]: what a cluster keeps in its store: users, channels and messages.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rpc_core::net::time::{self, sleep, timeout};
use rpc_core::store::{
    Bucket, BucketConfig, Entry, Fill, Log, LogConfig, Message, NameTooLong, Record as LogRecord,
    Store, StoreError, name_of, token, try_token,
};
use rpc_core::sync::Mutex;
use rpc_core::{Secret, Str, Text};
use serde::{Deserialize, Serialize};

use super::ClusterOptions;
use super::password::{Checked, Passwords, Verified};
use crate::cluster::{Heads, History, Live, Membership, Publish, Seen, SendError, Stored};
use crate::error::RpcError;
use crate::frame::{Channel, User};
use crate::hub::{NO_SUCH_USER, exists};
use crate::id::ChannelUid;

/// Why a cluster's records cannot be read or changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// The change is not possible. Retrying fails again.
    #[error(transparent)]
    Hub(#[from] RpcError),
    /// The store does not do it, or has something there that this crate did not write. See there whether
    /// retrying may help.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The name is too long for a key. Retrying fails again.
    #[error(transparent)]
    Name(#[from] NameTooLong),
}

/// How many messages one page of a fill has.
const PAGE: usize = 64;
/// How long to wait before it is looked again whether there is a connection.
const AGAIN: Duration = Duration::from_millis(100);
/// How often a record is tried to be changed while others change it.
const ATTEMPTS: usize = 10;
/// The subject of what concerns any user.
pub(super) const USERS: &str = "snek.u.*";
/// The subject of the proofs that users have logged in.
pub(super) const PROOFS: &str = "snek.v.*";
/// The subjects of all messages.
const MESSAGES: &str = "snek.m.*";

/// The record of a user.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) nick: Str,
    pub(super) password: String,
    pub(super) channels: Vec<Channel>,
}

/// A user's record and its revision.
#[derive(Clone)]
pub(super) struct Saved {
    username: Str,
    pub(super) record: Record,
    revision: u64,
}

impl Saved {
    pub(super) fn read(username: &str, entry: &Entry) -> Result<Self, StoreError> {
        let record = serde_json::from_slice(&entry.value);
        let record = record.map_err(|_| failed(format!("the record of {username}: not JSON")))?;
        Ok(Self {
            username: username.into(),
            record,
            revision: entry.revision,
        })
    }

    pub(super) fn user(&self) -> User {
        User::new(self.username.clone(), self.record.nick.clone())
    }

    /// Returns whether this is the password. A weak hash of it is replaced by a strong one, and the
    /// other nodes learn that it was right.
    pub(super) async fn fits(&self, records: &Arc<Records>, password: &Secret<Str>) -> bool {
        let hashed = &self.record.password;
        match (records.passwords.check(&self.username, hashed, password)).await {
            Checked::Wrong => return false,
            Checked::Known => {}
            Checked::Right { verified, is_weak } => {
                records.vouch(&self.username, verified);
                if is_weak {
                    let (records, known) = (Arc::clone(records), self.clone());
                    let password = password.clone();
                    tokio::spawn(async move { records.strengthen(&known, &password).await });
                }
            }
        }
        true
    }

    pub(super) fn membership(self) -> Membership {
        Membership {
            user: self.user(),
            channels: self.record.channels,
            revision: self.revision,
        }
    }
}

/// A public channel as it is stored under its uid.
#[derive(Serialize, Deserialize)]
pub(super) struct Public {
    pub(super) name: Str,
    pub(super) tag: Option<Str>,
}

/// The records and messages of a cluster.
pub(super) struct Records {
    pub(super) store: Arc<dyn Store>,
    pub(super) bucket: Bucket,
    messages: Arc<dyn Log>,
    pub(super) passwords: Passwords,
    /// The records that this node has put there, to put them there again.
    pub(super) put: Mutex<BTreeMap<String, Bytes>>,
}

/// The answer to a fill.
pub(super) enum Page {
    /// Messages, and up to where they go.
    Messages(Vec<(u64, Stored)>, u64),
    /// Another log has taken the place of the first one: what follows this message is new.
    Replaced { after: Option<Seen> },
}

impl Records {
    pub(super) async fn open(
        store: Arc<dyn Store>,
        options: &ClusterOptions,
    ) -> Result<Self, StoreError> {
        let messages = LogConfig {
            feed: Some("snek.d.*".to_owned()),
            max_age: Some(options.max_age),
            max_bytes: options.max_bytes,
            ..LogConfig::new(MESSAGES)
        };
        Ok(Self {
            bucket: Bucket::open(&store, "snek", BucketConfig::default()).await?,
            messages: store.log("snek", messages).await?,
            store,
            passwords: Passwords::new(options.password_rounds),
            put: Mutex::default(),
        })
    }

    /// Returns when the log of messages was made, in nanoseconds since 1970.
    pub(super) async fn created(&self) -> Result<u128, StoreError> {
        Ok(self.messages.state().await?.created)
    }

    /// Makes what the store has lost, and puts there again what this node has put there.
    pub(super) async fn ensure(&self) -> Result<(), StoreError> {
        self.store.ensure().await?;
        let all = self.put.lock().clone();
        for (key, record) in all {
            // One that was removed is not missing.
            match self.bucket.update(&key, record, 0).await {
                Err(StoreError::Conflict) => {}
                added => drop(added?),
            }
        }
        Ok(())
    }

    /// Returns the last message of a channel, which may have none, and when it was stored.
    pub(super) async fn last_of(
        &self,
        channel: &ChannelUid,
    ) -> Result<Option<(Seen, u64)>, StoreError> {
        let last = self.messages.last(&stored(channel)).await?;
        Ok(last.map(|last| (seen(&last), last.time)))
    }

    /// Returns the last message of each channel. Unless something was stored since the log was `compared`, it
    /// does not read them.
    pub(super) async fn heads(&self, compared: Option<(u128, u64)>) -> Result<Heads, StoreError> {
        let state = self.messages.state().await?;
        let mut heads = Heads {
            created: state.created,
            first: state.first,
            last: state.last,
            newest: seconds(state.created),
            channels: None,
        };
        if compared != Some((state.created, state.last)) {
            let mut channels = HashMap::new();
            for head in self.messages.heads(MESSAGES).await? {
                heads.newest = heads.newest.max(head.time);
                if let Some(channel) = name_in(&head.subject) {
                    channels.insert(ChannelUid::from(channel), seen(&head));
                }
            }
            heads.channels = Some(channels);
        }
        Ok(heads)
    }

    /// Reads a page of a channel's messages, if the log is that of its `history`.
    pub(super) async fn fill(
        &self,
        channel: &ChannelUid,
        fill: Fill,
        history: Option<History>,
    ) -> Result<Page, StoreError> {
        let subject = stored(channel);
        if let Some(history) = history
            && let Some(replaced) = self.replaced(&subject, &history).await?
        {
            return Ok(replaced);
        }
        let until = fill.until.unwrap_or(u64::MAX);
        let mut found = self.messages.read(&subject, fill.after, PAGE).await?;
        let is_all = found.len() < PAGE || found.last().is_some_and(|it| it.sequence > until);
        found.retain(|record| record.sequence <= until);
        let last = found.last().map_or(fill.after, |record| record.sequence);
        let through = fill.until.filter(|_| is_all).unwrap_or(last);
        let messages = found.into_iter().filter_map(|record| {
            // What is not text was not written by this crate.
            let event = Text::new(record.payload).ok()?;
            let key = record.id;
            Some((record.sequence, Stored { key, event }))
        });
        Ok(Page::Messages(messages.collect(), through))
    }

    /// Returns where to go on if another log has taken the place of the one that is history.
    ///
    /// What was stored later than all that is known is new. So if that follows the last message that both
    /// logs have, it is next. Anything else there is from before, as in a copy that is older than
    /// all that was seen: then the end of it is where to go on.
    async fn replaced(&self, subject: &str, history: &History) -> Result<Option<Page>, StoreError> {
        if let Some(last) = history.seen.back()
            && self.has(subject, last).await?
        {
            return Ok(None);
        }
        // What both have comes first, as in an older copy.
        let (mut low, mut high) = (0, history.seen.len().saturating_sub(1));
        while low < high {
            let middle = usize::midpoint(low, high);
            match history.seen.get(middle) {
                Some(seen) if self.has(subject, seen).await? => low = middle + 1,
                _ => high = middle,
            }
        }
        let mut after = low
            .checked_sub(1)
            .and_then(|at| history.seen.get(at))
            .cloned();
        let from = after.as_ref().map_or(0, |(sequence, _)| *sequence);
        let next = self.messages.read(subject, from, 1).await?;
        if next.first().is_some_and(|next| next.time < history.newest) {
            after = self.messages.last(subject).await?.as_ref().map(seen);
        } else if history.seen.is_empty() {
            return Ok(None);
        }
        Ok(Some(Page::Replaced { after }))
    }

    /// Whether this message is in the log, or was and is too old to be kept.
    async fn has(&self, subject: &str, (sequence, key): &Seen) -> Result<bool, StoreError> {
        if let Some(found) = self.messages.get(*sequence).await? {
            return Ok(found.id == *key && *found.subject == *subject);
        }
        let state = self.messages.state().await?;
        Ok(*sequence < state.first && *sequence <= state.last)
    }

    /// Stores a message once, in time.
    pub(super) async fn publish(&self, it: &Publish) -> Result<(), SendError> {
        let (subject, event) = (stored(&it.channel), it.event.clone().into_bytes());
        let storing = async {
            let mut is_unknown = false;
            loop {
                // What waits for a connection could still be sent when no caller expects it.
                let is_alive = || self.store.is_connected();
                let event = event.clone();
                let appending = self
                    .messages
                    .append_once(&subject, event, None, &it.key, is_alive);
                match appending.await {
                    Err(StoreError::Conflict) => {
                        is_unknown = true;
                        sleep(AGAIN).await;
                    }
                    stored => return (stored, is_unknown),
                }
            }
        };
        let left = it.until.saturating_duration_since(time::now());
        match timeout(left, storing).await {
            Ok((Ok(_), _)) => Ok(()),
            // What refuses it now may be another log than the one that has stored it.
            Err(_) | Ok((Err(_), true)) => Err(SendError::Unknown),
            Ok((Err(StoreError::Full { .. }), _)) => Err(SendError::Full),
            Ok((Err(StoreError::TooLarge), _)) => Err(SendError::TooLarge),
            Ok((Err(_), _)) => Err(SendError::Refused),
        }
    }

    /// Returns a user's record.
    pub(super) async fn user(&self, username: &str) -> Result<Option<Saved>, ClusterError> {
        let entry = self.bucket.get(&user_key(username)?).await?;
        let known = entry.map(|entry| Saved::read(username, &entry));
        Ok(known.transpose()?)
    }

    /// Returns whether a user was removed; not if the store has lost the record.
    pub(super) async fn is_removed(&self, username: &str) -> Result<bool, ClusterError> {
        // A key that was deleted is one still.
        Ok(!self.bucket.keys(&user_key(username)?).await?.is_empty())
    }

    pub(super) async fn hash(
        &self,
        username: &Str,
        password: &Secret<Str>,
    ) -> Result<Verified, StoreError> {
        let hashed = self.passwords.hash(username, password).await;
        hashed.ok_or_else(|| failed("the system has no randomness".to_owned()))
    }

    /// Remembers that a user's password was right, and informs the other nodes.
    pub(super) fn vouch(&self, username: &Str, verified: Verified) {
        let subject = format!("snek.v.{}", token(username));
        // A node without this message checks for itself.
        self.store.try_publish(&subject, verified.encode().into());
        self.passwords.remember(username.clone(), verified);
    }

    /// Stores the password of a record with a strong hash, unless the record has another one by now.
    async fn strengthen(&self, known: &Saved, password: &Secret<Str>) {
        let changed = async {
            let verified = self.hash(&known.username, password).await?;
            let change = |record: &mut Record| {
                let is_same = record.password == known.record.password;
                if is_same {
                    record.password.clone_from(&verified.hashed);
                }
                is_same
            };
            self.change(&known.username, change).await?;
            self.vouch(&known.username, verified);
            Ok::<_, ClusterError>(())
        };
        if let Err(error) = changed.await {
            tracing::debug!(%error, "a password keeps its weak hash");
        }
    }

    pub(super) async fn add_user(
        &self,
        user: &User,
        password: &Secret<Str>,
    ) -> Result<Saved, ClusterError> {
        let key = user_key(&user.username)?;
        let verified = self.hash(&user.username, password).await?;
        let record = Record {
            nick: user.nick.clone(),
            password: verified.hashed.clone(),
            channels: Vec::new(),
        };
        match self.bucket.create(&key, json(&record)).await {
            Ok(revision) => {
                self.vouch(&user.username, verified);
                Ok(Saved {
                    username: user.username.clone(),
                    record,
                    revision,
                })
            }
            Err(StoreError::Conflict) => Err(exists("user").into()),
            Err(error) => Err(error.into()),
        }
    }

    /// Changes a user's record, unless `change` returns `false`, and informs the nodes.
    pub(super) async fn change(
        &self,
        username: &str,
        change: impl Fn(&mut Record) -> bool,
    ) -> Result<bool, ClusterError> {
        self.write(username, |record| change(record).then(|| json(record)))
            .await?
            .ok_or_else(|| NO_SUCH_USER.into())
    }

    /// Writes what `change` makes of a user's record, which it leaves as it is with `None`, and tells the
    /// nodes. Returns whether it is written; `None` if there is no such user.
    pub(super) async fn write(
        &self,
        username: &str,
        change: impl Fn(&mut Record) -> Option<Bytes>,
    ) -> Result<Option<bool>, ClusterError> {
        let key = user_key(username)?;
        for _ in 0..ATTEMPTS {
            let Some(mut known) = self.user(username).await? else {
                return Ok(None);
            };
            let Some(value) = change(&mut known.record) else {
                return Ok(Some(false));
            };
            match self.bucket.update(&key, value, known.revision).await {
                Err(StoreError::Conflict) => {}
                Err(error) => return Err(error.into()),
                Ok(_) => {
                    // A node that misses it reads the record at the next login or gap.
                    let _ = self.store.publish(&of_user(username), Bytes::new()).await;
                    return Ok(Some(true));
                }
            }
        }
        Err(StoreError::Conflict.into())
    }
}

fn failed(message: String) -> StoreError {
    StoreError::Failed { message }
}

fn seen(record: &LogRecord) -> Seen {
    (record.sequence, record.id.clone())
}

/// The whole seconds of a time in nanoseconds.
fn seconds(nanos: u128) -> u64 {
    u64::try_from(nanos / 1_000_000_000).unwrap_or(u64::MAX)
}

/// The subject of a channel's messages.
fn stored(channel: &ChannelUid) -> String {
    format!("snek.m.{}", token(channel.as_str()))
}

/// The subject of a channel's feed.
pub(super) fn live(channel: &ChannelUid) -> String {
    format!("snek.d.{}", token(channel.as_str()))
}

/// The subject of what concerns one user.
pub(super) fn of_user(username: &str) -> String {
    format!("snek.u.{}", token(username))
}

pub(super) fn user_key(username: &str) -> Result<String, NameTooLong> {
    Ok(format!("u.{}", try_token(username)?))
}

pub(super) fn public_key(uid: &str) -> Result<String, NameTooLong> {
    Ok(format!("p.{}", try_token(uid)?))
}

/// Reads a public channel's record.
pub(super) fn public(entry: &Entry) -> Option<Channel> {
    let Public { name, tag } = serde_json::from_slice(&entry.value).ok()?;
    Some(Channel::new(uid_of(&entry.key)?, name, tag.as_deref()))
}

/// Reads the key of a public channel's record.
pub(super) fn uid_of(key: &str) -> Option<ChannelUid> {
    name_of(key.strip_prefix("p.")?).map(ChannelUid::from)
}

/// Reads what a subject of [`USERS`], [`PROOFS`] or [`MESSAGES`] ends with: the name of a user or channel.
pub(super) fn name_in(subject: &str) -> Option<Str> {
    let (_, token) = subject.rsplit_once('.')?;
    name_of(token).map(Str::from)
}

/// Reads what a channel's feed brings.
pub(super) fn read_live(message: Message) -> Option<Live> {
    let (key, event) = (message.id, Text::new(message.payload).ok()?);
    Some(match message.position {
        Some(position) => Live::Stored {
            sequence: position.sequence,
            previous: position.previous,
            message: Stored { key, event },
        },
        None => Live::Fleeting { event },
    })
}

/// Our own records are always JSON, so the fallback is never taken.
pub(super) fn json(record: &impl Serialize) -> Bytes {
    serde_json::to_vec(record).unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use rpc_core::store::MemoryStore;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_full_page_of_a_gap_ends_at_its_last_message() {
        let store = Arc::new(MemoryStore::new());
        let records = Records::open(store, &ClusterOptions::default()).await;
        let (records, channel) = (records.unwrap(), ChannelUid::from("general"));
        // The fourth is one of another channel, and so are the last two.
        let (last, other) = (PAGE as u64 + 3, ChannelUid::from("other"));
        for number in 1..=last + 2 {
            let text = format!("\"{number}\"");
            let expect = rpc_core::store::Expect::default();
            let is_other = number == 4 || number > last;
            let (log, subject) = (
                &records.messages,
                stored(if is_other { &other } else { &channel }),
            );
            let stored = log.append(&subject, text.into(), expect).await;
            assert_eq!(stored.unwrap().sequence, number);
        }
        for (after, until, count, through) in [
            (0, last - 1, PAGE, PAGE as u64 + 1),
            (0, 3, 3, 3),
            (0, 4, 3, 4),
            (last - 3, last - 1, 2, last - 1),
            (last - 3, last + 1, 3, last + 1),
        ] {
            let fill = Fill {
                after,
                until: Some(until),
            };
            let page = records.fill(&channel, fill, None).await.unwrap();
            let Page::Messages(messages, found) = page else {
                panic!("replaced")
            };
            assert_eq!((messages.len(), found), (count, through));
        }
    }
}
