//! Users, channels and memberships of a [`ClusterBackend`]: what changes them on all nodes.

use std::sync::Arc;

use bytes::Bytes;
use ring::digest::{SHA256, digest};
use rpc_core::Secret;
use rpc_core::store::{StoreError, name_of, token, try_token};
use rpc_core::text::hex;

use super::ClusterBackend;
use super::records::{ClusterError, Public, Record, Records, Saved, json, public_key, user_key};
use crate::frame::{Channel, User};
use crate::hub::{INVALID_UID, NO_SUCH_USER, display_name, exists};
use crate::id::{ChannelUid, is_channel_uid};
use crate::limits::DM_TAG;

impl ClusterBackend {
    fn records(&self) -> &Arc<Records> {
        &self.shared.records
    }

    /// Adds a public channel, with all users in it on all nodes, unless it exists: what every node may
    /// do at its start. The name of one that exists stays. The node does it again whenever the store may
    /// have lost it, but not after it was [removed](Self::remove_channel).
    ///
    /// # Errors
    /// [`ClusterError`]; retrying is safe.
    ///
    /// # Cancel safety
    /// If the future is dropped, the channel may be added or not.
    pub async fn put_channel(&self, uid: &str, name: &str) -> Result<(), ClusterError> {
        if !is_channel_uid(uid) {
            return Err(INVALID_UID.into());
        }
        let public = Public {
            name: name.into(),
            tag: Some("public".into()),
        };
        let (key, record) = (public_key(uid)?, json(&public));
        self.records()
            .put
            .lock()
            .insert(key.clone(), record.clone());
        match self.records().bucket.create(&key, record).await {
            Err(StoreError::Conflict) => Ok(()),
            added => Ok(added.map(drop)?),
        }
    }

    /// Removes a channel, a public one or any other, with its memberships. Returns `false` if there is none.
    /// The members' connections on all nodes get a `leave` event. It reads the records of all users.
    ///
    /// # Errors
    /// [`ClusterError`]; retrying is safe, and completes what an attempt has begun.
    ///
    /// # Cancel safety
    /// If the future is dropped, the channel may be removed for some of its members only.
    pub async fn remove_channel(&self, uid: &str) -> Result<bool, ClusterError> {
        let key = public_key(uid)?;
        self.records().put.lock().remove(&key);
        let mut is_there = self.records().bucket.get(&key).await?.is_some();
        if is_there {
            self.records().bucket.delete(&key, None).await?;
        }
        for entry in self.records().bucket.entries("u.*").await? {
            let Some(username) = entry.key.strip_prefix("u.").and_then(name_of) else {
                continue;
            };
            let is_in = |known: Saved| {
                let mut channels = known.record.channels.iter();
                channels.any(|own| own.uid.as_str() == uid)
            };
            if Saved::read(&username, &entry).is_ok_and(is_in) {
                is_there |= self.leave(&username, uid).await?;
            }
        }
        Ok(is_there)
    }

    /// Adds a user.
    ///
    /// # Errors
    /// [`ClusterError`]. If a retry says that the user exists, the first attempt may have added it.
    ///
    /// # Cancel safety
    /// If the future is dropped, the user may be added or not.
    pub async fn add_user(&self, user: User, password: &str) -> Result<(), ClusterError> {
        let password = Secret::new(password.into());
        self.records().add_user(&user, &password).await.map(drop)
    }

    /// Adds a user, or gives one that exists this nick and password: what every node may do at its
    /// start. The node does it again whenever the store may have lost it, but not after the user was
    /// [removed](Self::remove_user).
    ///
    /// # Errors
    /// [`ClusterError`]; retrying is safe.
    ///
    /// # Cancel safety
    /// If the future is dropped, the user may be changed or not.
    pub async fn put_user(&self, user: User, password: &str) -> Result<(), ClusterError> {
        let (records, password) = (self.records(), &Secret::new(password.into()));
        let known = match records.add_user(&user, password).await {
            Err(ClusterError::Hub(error)) if error == exists("user") => {
                records.user(&user.username).await?
            }
            added => Some(added?),
        };
        let known = known.filter(|it| it.record.nick == user.nick);
        let is_same = match known {
            Some(known) => known.fits(records, password).await,
            None => false,
        };
        if !is_same {
            let verified = records.hash(&user.username, password).await?;
            let change = |record: &mut Record| {
                record.nick = user.nick.clone();
                record.password.clone_from(&verified.hashed);
                true
            };
            records.change(&user.username, change).await?;
            records.vouch(&user.username, verified);
        }
        if let Some(known) = records.user(&user.username).await? {
            let key = user_key(&user.username)?;
            records.put.lock().insert(key, json(&known.record));
        }
        Ok(())
    }

    /// Removes a user. Returns `false` if there is none. The user's connections on all nodes are closed, with
    /// 1008.
    ///
    /// # Errors
    /// [`ClusterError`]; retrying is safe.
    ///
    /// # Cancel safety
    /// If the future is dropped, the user may be removed or not.
    pub async fn remove_user(&self, username: &str) -> Result<bool, ClusterError> {
        self.records().put.lock().remove(&user_key(username)?);
        let removed = self.records().write(username, |_| Some(Bytes::new()));
        Ok(removed.await?.is_some())
    }

    /// Puts a user into a channel, which need not exist. Returns `false` if the user is in it
    /// already. The user's connections on all nodes get a `join` event.
    ///
    /// # Errors
    /// [`ClusterError`]; retrying is safe.
    ///
    /// # Cancel safety
    /// If the future is dropped, the user may be in the channel or not.
    pub async fn join(&self, username: &str, channel: &Channel) -> Result<bool, ClusterError> {
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
        self.records().change(username, change).await
    }

    /// Takes a user out of a channel that is not public. Returns `false` if the user is not in it.
    /// The user's connections on all nodes get a `leave` event.
    ///
    /// # Errors
    /// [`ClusterError`]; retrying is safe.
    ///
    /// # Cancel safety
    /// If the future is dropped, the user may be in the channel or not.
    pub async fn leave(&self, username: &str, channel: &str) -> Result<bool, ClusterError> {
        let change = |record: &mut Record| {
            let before = record.channels.len();
            record.channels.retain(|own| own.uid.as_str() != channel);
            record.channels.len() < before
        };
        self.records().change(username, change).await
    }

    /// Returns the channel for direct messages between two users, and creates it if necessary.
    ///
    /// # Errors
    /// [`ClusterError`]; retrying is safe, and completes what an attempt has begun.
    ///
    /// # Cancel safety
    /// If the future is dropped, one user may be in the channel and the other not.
    pub async fn direct(&self, one: &str, other: &str) -> Result<ChannelUid, ClusterError> {
        let (mut pair, mut names) = ([one, other], Vec::new());
        pair.sort_unstable();
        for username in pair {
            let known = self.records().user(username).await?.ok_or(NO_SUCH_USER)?;
            names.push(display_name(&known.user()));
        }
        // Two tokens hold no dot, so that no other pair has this text.
        let text = format!("{}.{}", token(pair[0]), token(pair[1]));
        let hash = digest(&SHA256, text.as_bytes());
        let (first, _) = hash.as_ref().split_at(16);
        let uid = ChannelUid::from(format!("dm-{}", hex(first)));
        names.reverse();
        for (username, name) in pair.into_iter().zip(names) {
            let channel = Channel::new(uid.clone(), name, Some(DM_TAG));
            self.join(username, &channel).await?;
        }
        Ok(uid)
    }
}
