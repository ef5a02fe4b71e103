//! Records that were not stored, and are stored later.

use super::Hub;
use super::entry::Origin;
use super::event::Now;
use crate::id::SessionId;
use crate::storage::{Record, StorageError};

/// A record that was not stored, and why.
pub(super) type NotStored = (StorageError, Box<Record>);

impl Hub {
    /// Stores at once what could not be stored before, such as the results of runs that ended while the
    /// storage was full. The hub does it by itself [after a while](super::HubConfig::store_again);
    /// call it before the host ends.
    pub fn store_again(&mut self, now: Now) {
        self.store_again_at = None;
        let entries = self.entries.iter_mut();
        let unstored = entries.filter(|(_, entry)| entry.unstored.is_some());
        let sessions = unstored.map(|(session_id, entry)| {
            entry.is_unsaved = true;
            session_id.clone()
        });
        for session_id in sessions.collect::<Vec<_>>() {
            self.save(&session_id, now);
        }
    }

    /// Returns the number of sessions with a result or a change that is not stored, and may be
    /// [stored later](Self::store_again).
    #[must_use]
    pub fn unstored(&self) -> usize {
        let entries = self.entries.values();
        entries.filter(|entry| entry.unstored.is_some()).count()
    }

    /// Keeps the session of a record that was not stored, and the record if it may be stored later.
    pub(super) fn keep_unstored(
        &mut self,
        session_id: &SessionId,
        (error, record): NotStored,
        now: Now,
    ) {
        let Some(entry) = self.entries.get_mut(session_id) else {
            return;
        };
        entry.origin = Origin::Here;
        if error.is_retryable() {
            entry.unstored = Some(record);
            let at = now.instant.checked_add(self.config.store_again);
            self.store_again_at = self.store_again_at.or(at);
        }
    }
}
