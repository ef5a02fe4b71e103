//! [`Store`]: the records and messages of a cluster on NATS.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_nats::jetstream::stream::{self, Republish, StorageType};
use async_nats::{HeaderMap, Message, Subscriber};
use bytes::Bytes;
use futures_util::FutureExt as _;
use ring::digest::{SHA256, digest};
use rpc_core::cluster::{Fill, NameTooLong, token, try_token};
use rpc_core::net::nats::{Bucket, BucketConfig, Expect, Nats, NatsError};
use rpc_core::{Secret, Str, Text};
use serde::{Deserialize, Serialize};

use super::password::{Checked, Passwords, Proof};
use crate::cluster::{Live, Membership, Seen, SendReply, Stored};
use crate::error::RpcError;
use crate::frame::{Channel, User};
use crate::hub::{INVALID_UID, NO_SUCH_USER, exists};
use crate::id::{ChannelUid, is_channel_uid};
use crate::limits::DM_TAG;

/// Why a cluster's records cannot be read or changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// The change is not possible. Retrying fails again.
    #[error(transparent)]
    Hub(#[from] RpcError),
    /// NATS. See there whether retrying may help.
    #[error(transparent)]
    Nats(#[from] NatsError),
    /// The name is too long for a key. Retrying fails again.
    #[error(transparent)]
    Name(#[from] NameTooLong),
    /// What is stored there was not written by this crate.
    #[error("the record of {name} cannot be read")]
    Record {
        /// Whose record it is.
        name: String,
    },
    /// The system has no randomness.
    #[error("the system has no randomness")]
    Entropy,
}

/// How many messages one page of a fill has.
const PAGE: usize = 64;
/// How often a record is tried to be changed while others change it.
const ATTEMPTS: usize = 10;

/// The record of a user.
#[derive(Clone, Serialize, Deserialize)]
struct Record {
    nick: Str,
    password: String,
    channels: Vec<Channel>,
}

/// A user's record and its revision.
#[derive(Clone)]
pub(super) struct Known {
    username: Str,
    record: Record,
    revision: u64,
}

impl Known {
    pub(super) fn user(&self) -> User {
        User::new(self.username.clone(), self.record.nick.clone())
    }

    /// Returns whether this is the password. A weak hash of it is replaced by a strong one, and the
    /// other nodes are told that it was right.
    pub(super) async fn fits(&self, store: &Store, password: &Secret<Str>) -> bool {
        let hashed = &self.record.password;
        match (store.passwords.check(&self.username, hashed, password)).await {
            Checked::Wrong => return false,
            Checked::Known => {}
            Checked::Right { proof, is_weak } => {
                store.vouch(&self.username, proof);
                if is_weak {
                    let (store, known) = (store.clone(), self.clone());
                    let password = password.clone();
                    tokio::spawn(async move { store.strengthen(&known, &password).await });
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
struct Public {
    name: Str,
    tag: Option<Str>,
}

/// The records and messages of a cluster. Cheap to clone.
#[derive(Clone)]
pub(super) struct Store {
    pub(super) nats: Nats,
    records: Bucket,
    messages: stream::Stream,
    pub(super) passwords: Arc<Passwords>,
    /// The records that this node has put there, to put them there again.
    put: Arc<Mutex<BTreeMap<String, Bytes>>>,
}

/// The answer to a fill.
pub(super) enum Page {
    /// Messages, and up to where they go.
    Messages(Vec<(u64, Stored)>, u64),
    /// Another stream has taken the place of the first one: both have the messages up to this one.
    Replaced { after: u64 },
}

impl Store {
    pub(super) async fn open(
        nats: Nats,
        max_age: Duration,
        passwords: Passwords,
    ) -> Result<Self, NatsError> {
        let records = nats.bucket("snek", BucketConfig::default()).await?;
        let config = stream::Config {
            subjects: vec![nats.subject(&["snek", "m", "*"])],
            republish: Some(Republish {
                source: nats.subject(&["snek", "m", "*"]),
                destination: nats.subject(&["snek", "d", "{{wildcard(1)}}"]),
                headers_only: false,
            }),
            max_age,
            storage: StorageType::File,
            ..stream::Config::default()
        };
        let messages = nats.stream("snek", config).await?;
        Ok(Self {
            nats,
            records,
            messages,
            passwords: Arc::new(passwords),
            put: Arc::default(),
        })
    }

    async fn info(&self) -> Result<stream::Info, NatsError> {
        let name = &self.messages.cached_info().config.name;
        self.nats.asked(name, self.messages.get_info()).await
    }

    /// Returns when the stream was created, in nanoseconds since 1970. If it is gone it is made again, for
    /// the next time.
    pub(super) async fn created(&self) -> Option<u128> {
        let info = self.info().await.ok()?;
        info.created.unix_timestamp_nanos().try_into().ok()
    }

    /// Returns the last message of a channel, which may have none.
    pub(super) async fn last_of(&self, channel: &ChannelUid) -> Option<Option<Seen>> {
        let subject = self.stored(channel);
        let last = self.messages.get_last_raw_message_by_subject(&subject);
        let last = self.nats.message(&self.messages, last).await.ok()?;
        Some(last.map(|last| (last.sequence, key_of(Some(&last.headers)))))
    }

    /// Reads a page of a channel's messages, if what was seen is there.
    pub(super) async fn fill(
        &self,
        channel: &ChannelUid,
        fill: Fill,
        seen: &[Seen],
    ) -> Option<Page> {
        let subject = self.stored(channel);
        if let Some(after) = self.replaced(&subject, seen).await.ok()? {
            return Some(Page::Replaced { after });
        }
        let (mut found, mut through) = (Vec::new(), fill.after);
        let until = fill.until.unwrap_or(u64::MAX);
        while found.len() < PAGE && through < until {
            let next = self.messages.raw_message_builder().sequence(through + 1);
            let next = next.next_by_subject(subject.clone()).send();
            let next = self.nats.message(&self.messages, next);
            let Some(message) = next.await.ok()?.filter(|it| it.sequence <= until) else {
                through = fill.until.unwrap_or(through);
                break;
            };
            through = message.sequence;
            let key = key_of(Some(&message.headers));
            // What is no text was not written by this crate.
            let event = Text::new(message.payload).ok();
            found.extend(event.map(|event| (through, Stored { key, event })));
        }
        Some(Page::Messages(found, through))
    }

    /// Returns whether another stream has taken the place of the one in which these messages were: the
    /// last of them that both have; 0 if there is none.
    async fn replaced(&self, subject: &str, seen: &[Seen]) -> Result<Option<u64>, NatsError> {
        let Some((last, before)) = seen.split_last() else {
            return Ok(None);
        };
        if self.has(subject, last).await? {
            return Ok(None);
        }
        // What both have comes first, as in an older copy.
        let (mut low, mut high) = (0, before.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            match before.get(middle) {
                Some(seen) if self.has(subject, seen).await? => low = middle + 1,
                _ => high = middle,
            }
        }
        let common = low.checked_sub(1).and_then(|at| before.get(at));
        Ok(Some(common.map_or(0, |(sequence, _)| *sequence)))
    }

    /// Whether this message is in the stream, or was and is too old to be kept.
    async fn has(&self, subject: &str, (sequence, key): &Seen) -> Result<bool, NatsError> {
        let found = self.messages.get_raw_message(*sequence);
        if let Some(found) = self.nats.message(&self.messages, found).await? {
            let is_same = key_of(Some(&found.headers)) == *key;
            return Ok(is_same && found.subject.as_str() == subject);
        }
        let state = self.info().await?.state;
        Ok(*sequence < state.first_sequence && *sequence <= state.last_sequence)
    }

    /// Puts there again what this node has put there, if it is gone.
    pub(super) async fn put_again(&self) -> Result<(), NatsError> {
        let all = self.put().clone();
        for (key, record) in all {
            self.add(&key, record).await?;
        }
        Ok(())
    }

    /// Adds a record, unless it is there.
    async fn add(&self, key: &str, record: Bytes) -> Result<(), NatsError> {
        match self.records.create(key, record).await {
            Err(NatsError::Conflict) => Ok(()),
            added => added.map(drop),
        }
    }

    fn put(&self) -> MutexGuard<'_, BTreeMap<String, Bytes>> {
        self.put.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) async fn publish(&self, channel: &ChannelUid, key: &str, event: Bytes) -> SendReply {
        let expect = Expect {
            id: Some(key),
            last_subject_sequence: None,
        };
        match self.nats.publish(self.stored(channel), event, expect).await {
            Ok(stored) => SendReply::Stored {
                sequence: stored.sequence,
            },
            Err(NatsError::Full { .. }) => SendReply::Full,
            Err(NatsError::TooLarge) => SendReply::TooLarge,
            Err(error) if error.is_retryable() => SendReply::Unknown,
            Err(_) => SendReply::Refused,
        }
    }

    /// The subject of what is stored.
    fn stored(&self, channel: &ChannelUid) -> String {
        self.nats.subject(&["snek", "m", &token(channel.as_str())])
    }

    /// The subject of what is live.
    pub(super) fn live(&self, channel: &ChannelUid) -> String {
        self.nats.subject(&["snek", "d", &token(channel.as_str())])
    }

    /// The subject of what concerns one user.
    pub(super) fn of_user(&self, username: &str) -> String {
        self.nats.subject(&["snek", "u", &token(username)])
    }

    /// The subject of what concerns any user.
    pub(super) fn of_users(&self) -> String {
        self.nats.subject(&["snek", "u", "*"])
    }

    /// The subject of the proof that a user of this token was let in; `*` for all.
    pub(super) fn of_proofs(&self, token: &str) -> String {
        self.nats.subject(&["snek", "v", token])
    }

    pub(super) async fn subscribe(&self, subject: String) -> Option<Subscriber> {
        self.nats.client().subscribe(subject).await.ok()
    }

    pub(super) async fn watch_public(&self) -> Result<rpc_core::net::nats::Watch, NatsError> {
        self.records.watch("p.*").await
    }

    /// Returns a user's record.
    pub(super) async fn user(&self, username: &str) -> Result<Option<Known>, ClusterError> {
        let key = format!("u.{}", try_token(username)?);
        let Some(entry) = self.records.get(&key).await? else {
            return Ok(None);
        };
        let record = serde_json::from_slice(&entry.value).map_err(|_| ClusterError::Record {
            name: username.to_owned(),
        })?;
        Ok(Some(Known {
            username: username.into(),
            record,
            revision: entry.revision,
        }))
    }

    async fn hash(&self, password: &Secret<Str>) -> Result<(String, Proof), ClusterError> {
        let hashed = self.passwords.hash(password).await;
        hashed.ok_or(ClusterError::Entropy)
    }

    /// Remembers that a user's password was right, and tells the other nodes.
    fn vouch(&self, username: &Str, proof: Proof) {
        self.passwords.remember(username.clone(), proof);
        let subject = self.of_proofs(&token(username));
        let told = self.nats.client().publish(subject, proof.to_vec().into());
        // A node that is not told checks for itself.
        let _ = told.now_or_never();
    }

    /// Stores the password of a record with a strong hash, unless the record has another one by now.
    async fn strengthen(&self, known: &Known, password: &Secret<Str>) {
        let changed = async {
            let (hashed, proof) = self.hash(password).await?;
            let change = |record: &mut Record| {
                let is_same = record.password == known.record.password;
                if is_same {
                    record.password.clone_from(&hashed);
                }
                is_same
            };
            self.change(&known.username, change).await?;
            self.vouch(&known.username, proof);
            Ok::<_, ClusterError>(())
        };
        if let Err(error) = changed.await {
            tracing::debug!(%error, "a password keeps its weak hash");
        }
    }

    /// Adds a user.
    pub(super) async fn add_user(
        &self,
        user: &User,
        password: &Secret<Str>,
    ) -> Result<Known, ClusterError> {
        let key = format!("u.{}", try_token(&user.username)?);
        let (hashed, proof) = self.hash(password).await?;
        let record = Record {
            nick: user.nick.clone(),
            password: hashed,
            channels: Vec::new(),
        };
        match self.records.create(&key, json(&record)).await {
            Ok(revision) => {
                self.vouch(&user.username, proof);
                Ok(Known {
                    username: user.username.clone(),
                    record,
                    revision,
                })
            }
            Err(NatsError::Conflict) => Err(exists("user").into()),
            Err(error) => Err(error.into()),
        }
    }

    /// Changes a user's record, unless `change` returns `false`, and tells the nodes.
    async fn change(
        &self,
        username: &str,
        change: impl Fn(&mut Record) -> bool,
    ) -> Result<bool, ClusterError> {
        for _ in 0..ATTEMPTS {
            let known = self.user(username).await?.ok_or(NO_SUCH_USER)?;
            let (mut record, revision) = (known.record, known.revision);
            if !change(&mut record) {
                return Ok(false);
            }
            let key = format!("u.{}", token(username));
            match self.records.update(&key, json(&record), revision).await {
                Err(NatsError::Conflict) => {}
                Err(error) => return Err(error.into()),
                Ok(_) => {
                    let subject = self.of_user(username);
                    // A node that misses it reads the record at the next login or loss of the line.
                    let _ = self.nats.client().publish(subject, Bytes::new()).await;
                    return Ok(true);
                }
            }
        }
        Err(NatsError::Conflict.into())
    }

    /// Adds a user, or gives one that exists this nick and password.
    pub(super) async fn put_user(
        &self,
        user: &User,
        password: &Secret<Str>,
    ) -> Result<(), ClusterError> {
        let known = match self.add_user(user, password).await {
            Err(ClusterError::Hub(error)) if error == exists("user") => {
                self.user(&user.username).await?
            }
            added => Some(added?),
        };
        let known = known.filter(|it| it.record.nick == user.nick);
        let is_same = match known {
            Some(known) => known.fits(self, password).await,
            None => false,
        };
        if !is_same {
            let (hashed, proof) = self.hash(password).await?;
            let change = |record: &mut Record| {
                record.nick = user.nick.clone();
                record.password.clone_from(&hashed);
                true
            };
            self.change(&user.username, change).await?;
            self.vouch(&user.username, proof);
        }
        if let Some(known) = self.user(&user.username).await? {
            let key = format!("u.{}", token(&user.username));
            self.put().insert(key, json(&known.record));
        }
        Ok(())
    }

    /// Adds a channel with all users in it.
    pub(super) async fn put_channel(&self, uid: &str, name: &str) -> Result<(), ClusterError> {
        if !is_channel_uid(uid) {
            return Err(INVALID_UID.into());
        }
        let public = Public {
            name: name.into(),
            tag: Some("public".into()),
        };
        let (key, record) = (format!("p.{}", try_token(uid)?), json(&public));
        self.put().insert(key.clone(), record.clone());
        Ok(self.add(&key, record).await?)
    }

    pub(super) async fn join(
        &self,
        username: &str,
        channel: &Channel,
    ) -> Result<bool, ClusterError> {
        if !is_channel_uid(channel.uid.as_str()) {
            return Err(INVALID_UID.into());
        }
        try_token(channel.uid.as_str())?;
        let change = |record: &mut Record| {
            let is_new = record.channels.iter().all(|own| own.uid != channel.uid);
            if is_new {
                record.channels.push(channel.clone());
            }
            is_new
        };
        self.change(username, change).await
    }

    pub(super) async fn leave(&self, username: &str, channel: &str) -> Result<bool, ClusterError> {
        let change = |record: &mut Record| {
            let before = record.channels.len();
            record.channels.retain(|own| own.uid.as_str() != channel);
            record.channels.len() < before
        };
        self.change(username, change).await
    }

    pub(super) async fn direct(&self, one: &str, other: &str) -> Result<ChannelUid, ClusterError> {
        let (mut pair, mut names) = ([one, other], Vec::new());
        pair.sort_unstable();
        for username in pair {
            let known = self.user(username).await?.ok_or(NO_SUCH_USER)?;
            let user = known.user();
            names.push(if user.nick.is_empty() {
                user.username
            } else {
                user.nick
            });
        }
        // Two tokens hold no dot, so that no other pair has this text.
        let text = format!("{}.{}", token(pair[0]), token(pair[1]));
        let hash = digest(&SHA256, text.as_bytes());
        let hex: String = hash
            .as_ref()
            .iter()
            .take(16)
            .map(|it| format!("{it:02x}"))
            .collect();
        let uid = ChannelUid::from(format!("dm-{hex}"));
        names.reverse();
        for (username, name) in pair.into_iter().zip(names) {
            let channel = Channel::new(uid.clone(), name, Some(DM_TAG));
            self.join(username, &channel).await?;
        }
        Ok(uid)
    }
}

/// Reads a public channel's record.
pub(super) fn public(key: &str, value: &[u8]) -> Option<Channel> {
    let uid = rpc_core::cluster::name_of(key.strip_prefix("p.")?)?;
    let Public { name, tag } = serde_json::from_slice(value).ok()?;
    Some(Channel::new(uid, name, tag.as_deref()))
}

/// Reads whom a message on [`Store::of_users`] concerns.
pub(super) fn user_of(subject: &str) -> Option<Str> {
    let (_, token) = subject.rsplit_once('.')?;
    rpc_core::cluster::name_of(token).map(Str::from)
}

/// Reads what a channel's feed brings.
pub(super) fn live(message: Message) -> Option<Live> {
    let event = Text::new(message.payload).ok()?;
    let key = key_of(message.headers.as_ref());
    let header = |name| message.headers.as_ref()?.get(name)?.as_str().parse().ok();
    Some(
        match (header("Nats-Sequence"), header("Nats-Last-Sequence")) {
            (Some(sequence), Some(previous)) => Live::Stored {
                sequence,
                previous,
                message: Stored { key, event },
            },
            _ => Live::Fleeting { event },
        },
    )
}

/// The key under which a message was stored.
fn key_of(headers: Option<&HeaderMap>) -> Str {
    let key = headers.and_then(|headers| headers.get("Nats-Msg-Id"));
    key.map_or(Str::EMPTY, |key| key.as_str().into())
}

/// Our own records are always JSON, so the fallback is never taken.
fn json(record: &impl Serialize) -> Bytes {
    serde_json::to_vec(record).unwrap_or_default().into()
}
