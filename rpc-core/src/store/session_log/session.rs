//! [`Session`]: what a node knows of one session, and how records change it.

use bytes::{Bytes, BytesMut};

use super::part::Part;
use super::{SessionEntry, SessionHead, SessionState};
use crate::Str;
use crate::store::Record;

/// What a node knows of a session: its state after the last record that it has read or written.
#[derive(Clone, Debug, Default)]
pub struct Session<S> {
    state: Option<S>,
    head: SessionHead,
    /// Whether entries since the state are lost.
    pub(super) is_broken: bool,
    /// How many records are lost that nothing replaces.
    lost: u64,
    /// The number of the last record in the log, and its id.
    pub(super) revision: u64,
    pub(super) record_id: Str,
    /// How many records the session had so far.
    pub(super) place: u64,
    /// The greatest number of an ownership in it.
    fence: u64,
    /// The bytes of the last whole entry, and of what follows it.
    pub(super) whole: u64,
    pub(super) tail: u64,
    /// When that entry was stored, in seconds since 1970.
    pub(super) since: u64,
    /// The beginning of an entry: its bytes, and which part follows.
    begun: BytesMut,
    next_part: usize,
    /// Whether records are missing before what follows.
    has_gap: bool,
}

impl<S> Session<S> {
    /// Returns the state; `None` if there is none, or none that can be read. If the chain
    /// [is broken](Self::is_broken) it is the last one before the gap.
    #[must_use]
    pub const fn state(&self) -> Option<&S> {
        self.state.as_ref()
    }

    /// Takes the state, which is then as if it were not known: read the session anew before the next entry.
    #[doc(hidden)]
    pub fn take_state(&mut self) -> Option<S> {
        self.state.take()
    }

    /// Puts a state back.
    #[doc(hidden)]
    pub fn set_state(&mut self, state: Option<S>) {
        self.state = state;
    }

    /// Returns the head of the last entry, also if its body cannot be read.
    #[must_use]
    pub const fn head(&self) -> &SessionHead {
        &self.head
    }

    /// Returns the number of the last record in the log; 0 if there is none.
    #[must_use]
    pub const fn revision(&self) -> u64 {
        self.revision
    }

    /// Returns whether entries after the [state](Self::state) could not be read. The next entry has to be
    /// whole.
    #[must_use]
    pub const fn is_broken(&self) -> bool {
        self.is_broken || self.has_gap
    }

    /// Returns how many records were lost that no later whole entry replaces.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    /// Returns the bytes of the records that are needed.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.whole + self.tail
    }

    /// Returns the number of the latest ownership; 0 without.
    #[must_use]
    pub const fn fence(&self) -> u64 {
        self.fence
    }

    /// Writes as this [ownership](crate::cluster::Ownership::fence) from now on.
    pub const fn set_fence(&mut self, fence: u64) {
        self.fence = fence;
    }

    /// Notes a record that is stored.
    pub(super) fn wrote(&mut self, revision: u64, record_id: Str) {
        (self.revision, self.record_id) = (revision, record_id);
        self.place += 1;
        (self.begun, self.next_part) = (BytesMut::new(), 0);
    }

    /// Notes that an entry is stored.
    pub(super) fn wrote_entry(&mut self, head: SessionHead, state: S) {
        (self.head, self.state) = (head, Some(state));
    }

    /// Notes that it has these bytes, and that nothing before it is needed.
    pub(super) const fn is_whole(&mut self, bytes: u64, time: u64) {
        (self.whole, self.tail, self.since) = (bytes, 0, time);
        (self.is_broken, self.has_gap, self.lost) = (false, false, 0);
    }
}

impl<S: SessionState> Session<S> {
    /// Takes a record that cannot be read.
    pub(super) fn skip(&mut self, revision: u64) {
        (self.revision, self.record_id) = (revision, Str::default());
        self.place += 1;
        self.lost += 1;
        self.has_gap = true;
    }

    /// Takes the next record.
    pub(super) fn take(&mut self, record: &Record) {
        let Some(part) = Part::parse(&record.payload) else {
            return self.skip(record.sequence);
        };
        let header = &part.header;
        if header.place != self.place + 1 && (self.revision > 0 || !header.whole) {
            // How many there were before is not known.
            let missing = header.place.saturating_sub(self.place + 1);
            self.lost += if self.revision > 0 { missing.max(1) } else { 1 };
            self.has_gap = true;
        }
        (self.revision, self.record_id) = (record.sequence, record.id.clone());
        (self.place, self.head) = (header.place, part.head);
        self.fence = self.fence.max(header.fence);
        let (number, of, is_whole) = (header.part, header.of, header.whole);
        if of == 0 {
            *self = Self {
                revision: self.revision,
                record_id: std::mem::take(&mut self.record_id),
                place: self.place,
                fence: self.fence,
                ..Self::default()
            };
            return;
        }
        if number == 0 {
            self.begun.clear();
            self.next_part = 0;
        }
        self.tail += record.payload.len() as u64;
        if number != self.next_part {
            return;
        }
        self.next_part += 1;
        self.begun.extend_from_slice(&part.body);
        if self.next_part == of {
            let body = std::mem::take(&mut self.begun).freeze();
            self.next_part = 0;
            self.apply(body, is_whole, header.bytes, record.time);
        }
    }

    /// Takes a complete entry.
    fn apply(&mut self, body: Bytes, is_whole: bool, bytes: u64, time: u64) {
        let entry = SessionEntry {
            head: self.head.clone(),
            body,
            is_whole,
        };
        if is_whole {
            self.is_whole(bytes, time);
            let mut state = S::default();
            self.is_broken = !state.apply(&entry, false);
            self.lost = u64::from(self.is_broken);
            self.state = (!self.is_broken).then_some(state);
            return;
        }
        let state = self.state.get_or_insert_default();
        if !self.is_broken && state.apply(&entry, self.has_gap) {
            self.has_gap = false;
        } else {
            self.is_broken = true;
            self.lost += 1;
        }
    }
}
