//! The events of a run, kept for sockets that reconnect: [`EventLog`].
//!
//! Each reader of a log has a [`Cursor`] of its own, so that an event is held once for any number
//! of sockets, and a slow socket only costs its cursor. A client that reconnects names the last
//! event that it has shown; reading continues after the first event with that id, or from the
//! beginning of the run if the id is unknown or absent. Ids need not be unique, so a client may see
//! an event twice, but it misses none silently: dropped events are a [gap](Next::Gap). The parts of a text are
//! held until the whole text is, so a client that comes back in mid-answer gets the answer so far,
//! and one that comes later no parts.

use std::collections::{HashMap, VecDeque};

use rpc_core::encode::encode;
use rpc_core::{Refused, Text};

use crate::frame::{Replay, StreamEvent};
use crate::id::EventId;

/// The longest id of a dropped event that is remembered, in bytes; usual ids have 36.
const MAX_REMEMBERED_ID: usize = 128;

rpc_core::config! {
    /// The bounds on one log.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct LogLimits {
        /// The largest size of texts and ids in bytes. Default 4 MiB; a single larger event is kept
        /// alone.
        pub max_bytes: usize = 4 * 1024 * 1024,
        /// The largest number of events. Default 10,000.
        pub max_events: usize = 10_000,
    }
}

/// One frame for all sockets of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    text: Text,
    /// The event's id, from which a client can resume.
    id: Option<EventId>,
    replay: Replay,
}

impl Entry {
    pub(crate) const fn new(text: Text, id: Option<EventId>, replay: Replay) -> Self {
        Self { text, id, replay }
    }

    /// Creates an entry from an event of the agent.
    ///
    /// # Errors
    /// [`Refused::Encode`] if it is not JSON.
    pub(crate) fn encode(event: &StreamEvent) -> Result<Self, Refused> {
        let replay = event.kind.kept().replay;
        Ok(Self::new(encode(event)?, event.id.clone(), replay))
    }

    /// Creates an entry from the frame that ends a run, OUTPUT or ERROR: it is sent to current
    /// sockets, and never replayed.
    pub(crate) const fn closing(text: Text) -> Self {
        Self::new(text, None, Replay::Never)
    }

    /// Returns the encoded frame.
    pub(crate) const fn text(&self) -> &Text {
        &self.text
    }

    pub(crate) fn size(&self) -> usize {
        self.text.len() + self.id.as_ref().map_or(0, |id| id.len())
    }
}

/// A position in a log, between two frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cursor(u64);

/// The next item for a reader. Exhaustive: readers must handle all cases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// An event.
    Event(Text),
    /// The frame that ended the run.
    Closing(Text),
    /// So many events were dropped before the reader took them, or fewer: it may have had some of
    /// them. It needs the whole session instead. The next ones follow.
    Gap(u64),
}

/// The events of a session's run, oldest first. Readers keep their own positions.
///
/// One log serves all runs of a session: [`begin`](Self::begin) starts a run, which hides the
/// earlier ones from clients that reconnect, while slow readers still get the rest of them.
/// Pushing, reading and resuming take constant time.
#[derive(Default)]
pub(crate) struct EventLog {
    limits: LogLimits,
    /// `None` in place of a superseded snapshot or part.
    entries: VecDeque<(Option<Text>, Option<EventId>, Replay)>,
    /// The position before the first entry, counted from the start of the log.
    first: u64,
    /// The start of the run.
    run: u64,
    /// Where a client resumes whose last event is unknown.
    unknown: u64,
    /// The first event of the run with this id, even if it was recently dropped: an id may come
    /// again, and a client that knows only the first event must not resume after the second.
    ids: HashMap<EventId, u64>,
    /// The ids of dropped events, oldest first.
    dropped: VecDeque<EventId>,
    /// The snapshots still held.
    snapshots: VecDeque<u64>,
    /// The parts still held of each text that is not whole.
    deltas: HashMap<EventId, VecDeque<u64>>,
    bytes: usize,
}

impl EventLog {
    /// Creates an empty log.
    pub(crate) fn new(limits: LogLimits) -> Self {
        Self {
            limits,
            ..Self::default()
        }
    }

    /// Starts a run: clients that reconnect from now on read from here.
    pub(crate) fn begin(&mut self) {
        self.run = self.end().0;
        self.unknown = self.run;
        self.ids.clear();
        self.dropped.clear();
    }

    /// Notes that the run's frames so far are of a host that has died, and that the run begins again.
    /// A client whose last event is unknown has seen them all: it had an event that was not stored.
    pub(crate) fn begin_again(&mut self) {
        self.unknown = self.end().0;
    }

    /// Adds a frame, and drops the oldest ones that no longer fit.
    pub(crate) fn push(&mut self, entry: Entry) {
        let place = self.end().0;
        self.bytes += entry.size();
        let Entry { text, id, replay } = entry;
        if let Some(id) = &id {
            self.ids.entry(id.clone()).or_insert(place);
        }
        match &replay {
            Replay::Whole => {
                let parts = id.as_ref().and_then(|id| self.deltas.remove(id));
                parts.into_iter().flatten().for_each(|it| self.blank(it));
            }
            Replay::Newest => self.snapshots.push_back(place),
            Replay::Part(message) => {
                let parts = self.deltas.entry(message.clone());
                parts.or_default().push_back(place);
            }
            Replay::Never => {
                let parts = std::mem::take(&mut self.deltas).into_values();
                parts.flatten().for_each(|it| self.blank(it));
            }
        }
        self.entries.push_back((Some(text), id, replay));
        while self.entries.len() > self.limits.max_events.max(1) {
            self.drop_first();
        }
        self.shrink_to(self.limits.max_bytes);
    }

    /// Drops the oldest frames until at most this many bytes are held: superseded snapshots first,
    /// then events. The newest frame stays.
    pub(crate) fn shrink_to(&mut self, max_bytes: usize) {
        while self.bytes > max_bytes
            && self.snapshots.len() > 1
            && let Some(place) = self.snapshots.pop_front()
        {
            self.blank(place);
        }
        while self.bytes > max_bytes && self.entries.len() > 1 {
            self.drop_first();
        }
    }

    /// Returns where a client that reconnects resumes, and how many events are missing before that: after
    /// the first event of the run with this id, or at the run's start if there is none.
    pub(crate) fn resume(&self, last_msg_id: Option<&str>) -> (Cursor, u64) {
        let place = match last_msg_id {
            None => self.run,
            Some(id) => self.ids.get(id).map_or(self.unknown, |place| place + 1),
        };
        let missed = self.first.saturating_sub(place);
        (Cursor(place.max(self.first)), missed)
    }

    /// Returns the position after the newest frame.
    pub(crate) fn end(&self) -> Cursor {
        Cursor(self.first + self.entries.len() as u64)
    }

    /// Returns whether nothing follows a position.
    pub(crate) fn is_read(&self, cursor: Cursor) -> bool {
        cursor >= self.end()
    }

    /// Returns the next item and moves the cursor past it; `None` at the end.
    pub(crate) fn next(&self, cursor: &mut Cursor) -> Option<Next> {
        if cursor.0 < self.first {
            let missed = self.first - cursor.0;
            cursor.0 = self.first;
            return Some(Next::Gap(missed));
        }
        loop {
            let place = usize::try_from(cursor.0 - self.first).ok()?;
            let (text, _, replay) = self.entries.get(place)?;
            cursor.0 += 1;
            match text {
                Some(text) if *replay == Replay::Never => return Some(Next::Closing(text.clone())),
                Some(text) => return Some(Next::Event(text.clone())),
                // A later snapshot, or the whole text, stands for this one.
                None => {}
            }
        }
    }

    /// Drops everything: all readers have read it.
    pub(crate) fn clear(&mut self) {
        *self = Self {
            first: self.end().0,
            run: self.end().0,
            unknown: self.end().0,
            ..Self::new(self.limits)
        };
    }

    /// Returns the number of bytes held.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns whether nothing is held.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Drops the text of a superseded frame.
    fn blank(&mut self, place: u64) {
        let entry = place.checked_sub(self.first).and_then(|at| {
            let at = usize::try_from(at).ok()?;
            self.entries.get_mut(at)
        });
        if let Some((text, ..)) = entry {
            self.bytes -= text.take().map_or(0, |text| text.len());
        }
    }

    fn drop_first(&mut self) {
        let Some((text, id, replay)) = self.entries.pop_front() else {
            return;
        };
        self.bytes -= text.map_or(0, |text| text.len());
        if let Some(id) = id {
            self.bytes -= id.len();
            // Not if it is of an earlier run, or repeats the id of an event before it.
            if self.ids.get(&id) == Some(&self.first) {
                self.remember(id);
            }
        }
        if self.snapshots.front() == Some(&self.first) {
            self.snapshots.pop_front();
        }
        if let Replay::Part(message) = replay
            && let Some(parts) = self.deltas.get_mut(&message)
            && parts.front() == Some(&self.first)
        {
            parts.pop_front();
            if parts.is_empty() {
                self.deltas.remove(&message);
            }
        }
        self.first += 1;
    }

    /// Keeps the id of a dropped event, within bounds.
    fn remember(&mut self, id: EventId) {
        if id.len() > MAX_REMEMBERED_ID {
            self.ids.remove(id.as_str());
            return;
        }
        self.dropped.push_back(id);
        if self.dropped.len() > self.limits.max_events
            && let Some(oldest) = self.dropped.pop_front()
        {
            self.ids.remove(oldest.as_str());
        }
    }
}

#[cfg(test)]
mod tests;
