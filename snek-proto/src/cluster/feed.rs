//! [`Feed`]: the messages of one channel, as one node sees them.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::time::Duration;

use rpc_core::store::{Fill, Sequencer};
use rpc_core::timers::later;
use rpc_core::{Instant, Str, Text};

use crate::id::ChannelUid;

/// How long to wait until a feed is open before asking again.
const OPEN_TIMEOUT: Duration = Duration::from_secs(2);

/// Most messages that are held until a feed is open, or those before them have come. Others are filled later.
const MAX_HELD: usize = 64;

/// Most messages that are remembered, to recognise a stream that has taken the place of another.
const MAX_SEEN: usize = 256;

/// A message that is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    /// Its key: that of [`Request::Publish`](super::Request::Publish).
    pub(crate) key: Str,
    /// The encoded event.
    pub(crate) event: Text,
}

/// The sequence number of a message and its key.
pub(crate) type Seen = (u64, Str);

/// What is known of the stream that a feed has read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct History {
    /// No message that was there was stored later, in seconds since 1970 by the stream's clock.
    pub(crate) newest: u64,
    /// The channel's last messages in it.
    pub(crate) seen: VecDeque<Seen>,
}

/// The last message of each channel, as the stream has them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heads {
    /// When it was made, in nanoseconds since 1970.
    pub(crate) created: u128,
    /// The numbers of its first message, and of the last one that was ever stored.
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) newest: u64,
    /// `None` if nothing was stored since the last look.
    pub(crate) channels: Option<HashMap<ChannelUid, Seen>>,
}

/// What the live feed of a channel brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Live {
    /// A final message, which is stored.
    Stored {
        /// Its sequence number in the stream.
        sequence: u64,
        /// That of the channel's message before it; 0 if there is none.
        previous: u64,
        /// The message.
        message: Stored,
    },
    /// A partial message or a typing indicator.
    Fleeting {
        /// The encoded event.
        event: Text,
    },
}

/// The feed of a channel that users of this node are in.
pub(super) struct Feed {
    /// Who they are.
    pub(super) users: BTreeSet<Str>,
    /// The stream, and the last messages of it: the one before the feed began, and those delivered.
    history: History,
    /// Whether the stream has another last message than this feed, at the last look.
    differs: bool,
    /// The keys of the last messages that were delivered, of other streams too: a sender repeats what a lost
    /// stream has had.
    delivered: Keys,
    /// The last message that was read before the live feed has brought it; 0 if there is none.
    read: u64,
    state: State,
}

enum State {
    /// Subscribing, and reading where the channel's messages end.
    Opening {
        ticket: u64,
        held: Vec<(u64, u64, Stored)>,
        again_at: Instant,
    },
    Open(Sequencer<Stored>),
}

impl Feed {
    pub(super) fn new(ticket: u64, now: Instant) -> Self {
        Self {
            users: BTreeSet::new(),
            history: History::default(),
            differs: false,
            delivered: Keys::default(),
            read: 0,
            state: State::Opening {
                ticket,
                held: Vec::new(),
                again_at: later(now, OPEN_TIMEOUT),
            },
        }
    }

    pub(super) const fn is_open(&self) -> bool {
        matches!(self.state, State::Open(_))
    }

    /// Returns whether the stream has other messages than this feed, which are being read.
    pub(super) fn is_behind(&self) -> bool {
        self.differs && matches!(&self.state, State::Open(it) if it.poll_timeout().is_some())
    }

    /// Takes the last message of the channel, in `history`. Returns `false` if another opening has begun
    /// since, or it is open already.
    pub(super) fn opened(&mut self, number: u64, history: History, now: Instant) -> bool {
        let State::Opening { ticket, held, .. } = &mut self.state else {
            return false;
        };
        if *ticket != number {
            return false;
        }
        let after = history.seen.back().map_or(0, |(sequence, _)| *sequence);
        let mut sequencer = Sequencer::new(after, MAX_HELD);
        for (sequence, previous, message) in std::mem::take(held) {
            sequencer.handle_live(sequence, previous, message, now);
        }
        self.history = history;
        self.state = State::Open(sequencer);
        true
    }

    /// Takes what the live feed brings; `is_sure`: of the stream that was compared. Returns an event to deliver
    /// at once.
    pub(super) fn handle_live(&mut self, live: Live, is_sure: bool, now: Instant) -> Option<Text> {
        match live {
            // It must come neither before a message that is missing, nor after one that was read.
            Live::Fleeting { event } => match &self.state {
                State::Open(sequencer) if self.read == 0 => {
                    sequencer.poll_timeout().is_none().then_some(event)
                }
                State::Open(_) | State::Opening { .. } => None,
            },
            Live::Stored {
                sequence,
                previous,
                message,
            } => {
                if self.read <= sequence {
                    self.read = 0;
                }
                let seen = &self.history.seen;
                let known = seen.binary_search_by_key(&sequence, |(it, _)| *it);
                let known = known.ok().and_then(|at| seen.get(at));
                match &mut self.state {
                    // It was read before it came.
                    State::Open(_) if known.is_some_and(|(_, key)| *key == message.key) => {}
                    State::Open(sequencer) => {
                        if !is_sure {
                            sequencer.check(now);
                        }
                        sequencer.handle_live(sequence, previous, message, now);
                    }
                    State::Opening { held, .. } if held.len() < MAX_HELD => {
                        held.push((sequence, previous, message));
                    }
                    State::Opening { .. } => {}
                }
                None
            }
        }
    }

    pub(super) fn handle_fill(
        &mut self,
        fill: Fill,
        messages: Vec<(u64, Stored)>,
        through: u64,
        now: Instant,
    ) {
        if let State::Open(sequencer) = &mut self.state {
            let last = messages.last().map_or(0, |(sequence, _)| *sequence);
            if fill.until.is_none() && last > sequencer.delivered() {
                self.read = last;
            }
            sequencer.handle_fill(fill, messages, through, now);
        }
    }

    /// Goes on in another stream, after this message of it; from its beginning if there is none.
    pub(super) fn replaced(&mut self, after: Option<Seen>, now: Instant) {
        let State::Open(sequencer) = &mut self.state else {
            return;
        };
        let seen = &mut self.history.seen;
        // In an older copy the messages before one that is there are there.
        let common = seen.iter().position(|it| Some(it) == after.as_ref());
        seen.truncate(common.unwrap_or(0));
        let begin = after.as_ref().map_or(0, |(sequence, _)| *sequence);
        seen.extend(after);
        self.read = 0;
        *sequencer = Sequencer::new(begin, MAX_HELD);
        sequencer.check(now);
    }

    /// Compares what it has with the stream, and asks for what differs. Returns whether nothing does.
    pub(super) fn compare(&mut self, heads: &Heads, head: Option<&Seen>, now: Instant) -> bool {
        let State::Open(sequencer) = &mut self.state else {
            return true;
        };
        let seen = &self.history.seen;
        let is_same = match (seen.back(), head) {
            // Too old to be kept.
            (Some((last, _)), None) => *last < heads.first && *last <= heads.last,
            (last, head) => last == head,
        };
        // Others may have come since the look.
        self.differs = !is_same && head.is_none_or(|head| !seen.contains(head));
        if is_same {
            self.history.newest = self.history.newest.max(heads.newest);
        } else {
            sequencer.check(now);
        }
        is_same
    }

    /// Returns `true` if the feed must be opened again.
    pub(super) fn handle_timeout(&mut self, number: u64, now: Instant) -> bool {
        match &mut self.state {
            State::Opening {
                ticket, again_at, ..
            } if *again_at <= now => {
                *ticket = number;
                *again_at = later(now, OPEN_TIMEOUT);
                true
            }
            State::Opening { .. } => false,
            State::Open(sequencer) => {
                sequencer.handle_timeout(now);
                false
            }
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        match &self.state {
            State::Opening { again_at, .. } => Some(*again_at),
            State::Open(sequencer) => sequencer.poll_timeout(),
        }
    }

    /// Returns what is to be read; with the stream of which it has to be, if that may be another one.
    pub(super) fn poll_request(&mut self) -> Option<(Fill, Option<History>)> {
        let State::Open(sequencer) = &mut self.state else {
            return None;
        };
        let fill = sequencer.poll_request()?;
        Some((fill, fill.until.is_none().then(|| self.history.clone())))
    }

    /// Returns the next event to deliver.
    pub(super) fn poll_event(&mut self) -> Option<Text> {
        let State::Open(sequencer) = &mut self.state else {
            return None;
        };
        loop {
            let (sequence, Stored { key, event }) = sequencer.poll_event()?;
            push(&mut self.history.seen, (sequence, key.clone()));
            if self.delivered.add(key) {
                return Some(event);
            }
        }
    }
}

/// The last keys: each message asks for its own.
#[derive(Default)]
struct Keys {
    in_order: VecDeque<Str>,
    all: HashSet<Str>,
}

impl Keys {
    /// Adds a key. Returns `false` if it is there already.
    fn add(&mut self, key: Str) -> bool {
        let is_new = self.all.insert(key.clone());
        if is_new && let Some(first) = push(&mut self.in_order, key) {
            self.all.remove(&first);
        }
        is_new
    }
}

/// Remembers one more, and returns the first one, which is forgotten, if there is no room.
fn push<T>(last: &mut VecDeque<T>, one: T) -> Option<T> {
    let first = (last.len() == MAX_SEEN).then(|| last.pop_front()).flatten();
    last.push_back(one);
    first
}
