//! [`Sessions::sweep`]: drops the sessions beyond the limits; and the list of all sessions.

use rpc_core::store::{Record as Listed, StoreError as Failure};

use super::history::{Entry, History};
use super::sessions::Sessions;
use super::StoreError;

/// What a turn takes beside its texts.
const OVERHEAD: u64 = 1024;

impl Sessions {
    /// Returns the last messages of all sessions, without contents, the last used ones first.
    pub(super) async fn list(&self) -> Result<Vec<Listed>, StoreError> {
        let mut listed = self.log.heads("gateway_sessions.*").await?;
        listed.reverse();
        Ok(listed)
    }

    /// Drops the least recently used sessions that are too many, or too large together, as the store of one
    /// gateway does. Other nodes may do the same at the same time. Returns how many it has dropped.
    pub(super) async fn sweep(&self) -> Result<u64, StoreError> {
        let state = self.log.state().await?;
        let (most, mut count) = (self.limits.sessions.max(1), state.subjects);
        let (mut bytes, mut dropped) = (state.bytes, 0);
        let is_enough =
            |count, bytes| count <= most && (bytes <= self.limits.total_bytes || count <= 1);
        if is_enough(count, bytes) {
            return Ok(0);
        }
        for session in self.list().await?.iter().rev() {
            if is_enough(count, bytes) {
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
        let (subject, revision) = (&*listed.subject, listed.sequence);
        let record = match self.last(subject).await? {
            Some((record, last)) if last == revision => record,
            _ => return Ok(None),
        };
        let nodes: Vec<_> = record.queue.iter().map(|it| it.node.clone()).collect();
        if self.nodes.gone(nodes).await?.len() < record.queue.len() {
            return Ok(None);
        }
        let mut known = History::at(revision);
        // A node that knows the session finds that it is gone.
        match self.write(subject, &mut known, &Entry::nothing()).await {
            // Someone uses it.
            Err(StoreError::Store(Failure::Conflict)) => return Ok(None),
            // Then no other node can write either.
            Err(StoreError::Store(Failure::Full { .. })) => {}
            written => written?,
        }
        self.log.purge(subject, known.revision + 1).await?;
        Ok(Some(record.bytes + OVERHEAD * record.kept))
    }
}
