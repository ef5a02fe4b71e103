//! The events of a run, kept for sockets that reconnect: [`EventLog`].
//!
//! Each reader of a log has a [`Cursor`] of its own, so that an event is held once for any number
//! of sockets, and a slow socket only costs its cursor. A client that reconnects names the last
//! event that it has shown; reading continues after the first event with that id, or from the
//! beginning of the run if the id is unknown or absent. Ids need not be unique, so a client may see
//! an event twice, but it misses none silently: dropped events are a [`Gap`]. The parts of a text are
//! held until the whole text is, so a client that comes back in mid-answer gets the answer so far,
//! and one that comes later no parts.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use rpc_core::encode::encode;
use rpc_core::{Refused, Text};

use crate::frame::{Replay, StreamEvent};

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
    id: Option<Arc<str>>,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Event,
    Snapshot,
    /// Part of the text with this id.
    Delta(Arc<str>),
    Closing,
}

impl Entry {
    /// Creates an entry from an encoded event of the agent.
    #[must_use]
    pub(crate) const fn event(text: Text) -> Self {
        Self::new(text, Kind::Event)
    }

    /// Creates an entry from a part of the text with this id. The event with the id, or the end of
    /// the run, supersedes the parts, which leaves no gap.
    #[must_use]
    pub(crate) fn delta(text: Text, message_id: &str) -> Self {
        Self::new(text, Kind::Delta(message_id.into()))
    }

    /// Creates an entry from an event that supersedes all earlier snapshots, such as
    /// `session_sync`. When room is needed, superseded snapshots are dropped first, which leaves no
    /// gap.
    #[must_use]
    pub(crate) const fn snapshot(text: Text) -> Self {
        Self::new(text, Kind::Snapshot)
    }

    /// Creates an entry from the frame that ends a run, OUTPUT or ERROR: it is sent to current
    /// sockets, and never replayed.
    #[must_use]
    pub(crate) const fn closing(text: Text) -> Self {
        Self::new(text, Kind::Closing)
    }

    /// Creates an entry from an event of the agent. A `session_sync` is a snapshot, an
    /// `assistant_delta` and a `thinking_delta` are parts of a text.
    ///
    /// # Errors
    /// [`Refused::Encode`] if it is not JSON.
    pub(crate) fn encode(event: &StreamEvent) -> Result<Self, Refused> {
        let text = encode(event)?;
        let entry = match event.kind.kept().replay {
            Replay::Newest => Self::snapshot(text),
            Replay::Part(delta) => Self::delta(text, &delta.message_id),
            Replay::Whole | Replay::Never => Self::event(text),
        };
        Ok(match &event.id {
            Some(id) => entry.with_id(id),
            None => entry,
        })
    }

    /// Sets the event's id, from which a client can resume.
    #[must_use]
    pub(crate) fn with_id(mut self, id: &str) -> Self {
        self.id = Some(id.into());
        self
    }

    const fn new(text: Text, kind: Kind) -> Self {
        Self {
            text,
            id: None,
            kind,
        }
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

/// Events that were dropped before they were read. The reader needs the whole session instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gap {
    /// The largest possible number: the reader may have had some of them.
    pub(crate) missed: u64,
}

/// The position from which a client resumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Resumed {
    /// The position.
    pub(crate) cursor: Cursor,
    /// What is missing before it.
    pub(crate) gap: Option<Gap>,
}

/// The next item for a reader. Exhaustive: readers must handle all cases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// An event.
    Event(Text),
    /// The frame that ended the run.
    Closing(Text),
    /// Events were dropped before the reader took them. The next ones follow.
    Gap(Gap),
}

/// The events of a session's run, oldest first. Readers keep their own positions.
///
/// One log serves all runs of a session: [`begin`](Self::begin) starts a run, which hides the
/// earlier ones from clients that reconnect, while slow readers still get the rest of them.
/// Pushing, reading and resuming take constant time.
pub(crate) struct EventLog {
    limits: LogLimits,
    /// `None` in place of a superseded snapshot or part.
    entries: VecDeque<(Option<Text>, Option<Arc<str>>, Kind)>,
    /// The position before the first entry, counted from the start of the log.
    first: u64,
    /// The start of the run.
    run: u64,
    /// Where a client resumes whose last event is unknown.
    unknown: u64,
    /// The first event of the run with this id, even if it was recently dropped: an id may come
    /// again, and a client that knows only the first event must not resume after the second.
    ids: HashMap<Arc<str>, u64>,
    /// The ids of dropped events, oldest first.
    dropped: VecDeque<Arc<str>>,
    /// The snapshots still held.
    snapshots: VecDeque<u64>,
    /// The parts still held of each text that is not whole.
    deltas: HashMap<Arc<str>, VecDeque<u64>>,
    bytes: usize,
}

impl EventLog {
    /// Creates an empty log.
    #[must_use]
    pub(crate) fn new(limits: LogLimits) -> Self {
        Self {
            limits,
            entries: VecDeque::new(),
            first: 0,
            run: 0,
            unknown: 0,
            ids: HashMap::new(),
            dropped: VecDeque::new(),
            snapshots: VecDeque::new(),
            deltas: HashMap::new(),
            bytes: 0,
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
        let Entry { text, id, kind } = entry;
        if let Some(id) = &id {
            self.ids.entry(Arc::clone(id)).or_insert(place);
        }
        match &kind {
            Kind::Event => {
                let parts = id.as_ref().and_then(|id| self.deltas.remove(id));
                parts.into_iter().flatten().for_each(|it| self.blank(it));
            }
            Kind::Snapshot => self.snapshots.push_back(place),
            Kind::Delta(message) => {
                let parts = self.deltas.entry(Arc::clone(message));
                parts.or_default().push_back(place);
            }
            Kind::Closing => {
                let parts = std::mem::take(&mut self.deltas).into_values();
                parts.flatten().for_each(|it| self.blank(it));
            }
        }
        self.entries.push_back((Some(text), id, kind));
        while self.entries.len() > self.limits.max_events.max(1) {
            self.drop_first();
        }
        self.shrink_to(self.limits.max_bytes);
    }

    /// Drops the oldest frames until at most this many bytes are held: superseded snapshots first,
    /// then events. The newest frame stays.
    pub(crate) fn shrink_to(&mut self, max_bytes: usize) {
        while self.bytes > max_bytes && self.snapshots.len() > 1 {
            self.drop_snapshot();
        }
        while self.bytes > max_bytes && self.entries.len() > 1 {
            self.drop_first();
        }
    }

    /// Returns where a client that reconnects resumes: after the first event of the run with this
    /// id, or at the run's start if there is none.
    #[must_use]
    pub(crate) fn resume(&self, last_msg_id: Option<&str>) -> Resumed {
        let place = match last_msg_id {
            None => self.run,
            Some(id) => self.ids.get(id).map_or(self.unknown, |place| place + 1),
        };
        let missed = self.first.saturating_sub(place);
        Resumed {
            cursor: Cursor(place.max(self.first)),
            gap: (missed > 0).then_some(Gap { missed }),
        }
    }

    /// Returns the position after the newest frame.
    #[must_use]
    pub(crate) fn end(&self) -> Cursor {
        Cursor(self.first + self.entries.len() as u64)
    }

    /// Returns whether nothing follows a position.
    #[must_use]
    pub(crate) fn is_read(&self, cursor: Cursor) -> bool {
        cursor >= self.end()
    }

    /// Returns the next item and moves the cursor past it; `None` at the end.
    pub(crate) fn next(&self, cursor: &mut Cursor) -> Option<Next> {
        if cursor.0 < self.first {
            let missed = self.first - cursor.0;
            cursor.0 = self.first;
            return Some(Next::Gap(Gap { missed }));
        }
        loop {
            let place = usize::try_from(cursor.0 - self.first).ok()?;
            let (text, _, kind) = self.entries.get(place)?;
            cursor.0 += 1;
            match text {
                Some(text) if *kind == Kind::Closing => return Some(Next::Closing(text.clone())),
                Some(text) => return Some(Next::Event(text.clone())),
                // A later snapshot, or the whole text, stands for this one.
                None => {}
            }
        }
    }

    /// Drops everything: all readers have read it.
    pub(crate) fn clear(&mut self) {
        self.first = self.end().0;
        self.run = self.first;
        self.unknown = self.first;
        self.bytes = 0;
        self.entries = VecDeque::new();
        self.snapshots = VecDeque::new();
        self.deltas = HashMap::new();
        self.dropped = VecDeque::new();
        self.ids = HashMap::new();
    }

    /// Returns the number of bytes held.
    #[must_use]
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns whether nothing is held.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn drop_snapshot(&mut self) {
        if let Some(place) = self.snapshots.pop_front() {
            self.blank(place);
        }
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
        let Some((text, id, kind)) = self.entries.pop_front() else {
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
        if let Kind::Delta(message) = kind
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
    fn remember(&mut self, id: Arc<str>) {
        if id.len() > MAX_REMEMBERED_ID {
            self.ids.remove(&id);
            return;
        }
        self.dropped.push_back(id);
        if self.dropped.len() > self.limits.max_events
            && let Some(oldest) = self.dropped.pop_front()
        {
            self.ids.remove(&oldest);
        }
    }
}

impl Default for EventLog {
    fn default() -> Self {
        Self::new(LogLimits::default())
    }
}

/// Prints numbers only: events are private.
impl fmt::Debug for EventLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventLog")
            .field("events", &self.entries.len())
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
