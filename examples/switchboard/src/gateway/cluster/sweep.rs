//! [`Sessions::sweep`]: drops the sessions beyond the limits; and the list of all sessions.

use async_nats::jetstream::consumer::DeliverPolicy;
use async_nats::jetstream::consumer::push::OrderedConfig;
use rpc_core::net::nats::NatsError;

use super::log::{read, unreadable};
use super::record::Segment;
use super::sessions::Sessions;
use crate::gateway::store::StoreError;

/// A record of a session in the bucket.
#[derive(Debug)]
pub(super) struct Listed {
    pub(super) key: String,
    /// When it was last written, in seconds since 1970.
    pub(super) time: u64,
    revision: u64,
}

impl Sessions {
    /// Returns the keys of all sessions, the last used ones first.
    pub(super) async fn list(&self) -> Result<Vec<Listed>, StoreError> {
        let mut listed = Vec::new();
        let config = OrderedConfig {
            deliver_subject: self.nats.client().new_inbox(),
            deliver_policy: DeliverPolicy::LastPerSubject,
            filter_subject: self.subject("s.*"),
            headers_only: true,
            ..OrderedConfig::default()
        };
        let prefix = self.subject("");
        read(&self.nats, &self.stream, config, |message, _| {
            let info = message.info().ok();
            let time = info.as_ref().map_or(0, |it| it.published.unix_timestamp());
            let key = message.subject.strip_prefix(&prefix).unwrap_or_default();
            listed.push(Listed {
                key: key.to_owned(),
                time: u64::try_from(time).unwrap_or_default(),
                revision: info.map_or(0, |it| it.stream_sequence),
            });
        })
        .await?;
        listed.sort_by_key(|it| std::cmp::Reverse((it.time, it.revision)));
        Ok(listed)
    }

    /// Drops the least recently used sessions that are too many, or too large together, as the store of one
    /// gateway does. Other nodes may do the same at the same time. Returns how many it has dropped.
    pub(super) async fn sweep(&self) -> Result<u64, StoreError> {
        let name = &self.stream.cached_info().config.name;
        let state = self.nats.asked(name, self.stream.get_info()).await?.state;
        let limits = self.limits;
        let (most, mut bytes) = (limits.sessions.max(1), state.bytes);
        // Turns have subjects, too: this is the most that there may be.
        if state.subjects_count <= most && bytes <= limits.total_bytes {
            return Ok(0);
        }
        let listed = self.list().await?;
        let (mut count, mut dropped) = (listed.len() as u64, 0);
        for session in listed.iter().rev() {
            if count <= most && (bytes <= limits.total_bytes || count <= 1) {
                break;
            }
            if let Some(freed) = self.drop_session(session).await? {
                (count, dropped) = (count - 1, dropped + 1);
                bytes = bytes.saturating_sub(freed);
            }
        }
        Ok(dropped)
    }

    /// Drops a session with all that belongs to it, unless it is in use, or was since it was listed. Returns
    /// about how many bytes that were.
    async fn drop_session(&self, listed: &Listed) -> Result<Option<u64>, StoreError> {
        let (key, revision) = (&*listed.key, listed.revision);
        let record = match self.read_key(key).await? {
            Some((record, last)) if last == revision => record,
            _ => return Ok(None),
        };
        let nodes: Vec<_> = record.line.iter().map(|it| it.node.clone()).collect();
        if self.nodes.gone(nodes).await?.len() < record.line.len() {
            return Ok(None);
        }
        match self.bucket.remove(key, revision).await {
            // Somebody uses it.
            Err(NatsError::Conflict) => return Ok(None),
            removed => removed?,
        }
        // Later ones belong to a session that has begun since.
        let turns = self.subject(&format!("t{}.>", key.trim_start_matches('s')));
        let purged = self.stream.purge().filter(turns).sequence(revision).await;
        purged.map_err(|error| unreadable(&error))?;
        let segments: u64 = record.segments.iter().map(|it| it.bytes).sum();
        Ok(Some(segments + record.size()))
    }

    /// Removes turns that no record names. What cannot be removed only takes room.
    pub(super) async fn remove(&self, segments: &[Segment]) {
        for segment in segments {
            let turns = self.subject(&format!("t.{}.*", segment.id));
            let _ = self.stream.purge().filter(turns).await;
        }
    }
}
