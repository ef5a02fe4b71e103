//! [`Feed`]: the messages of one channel, as one node sees them.

use std::collections::BTreeSet;
use std::time::Duration;

use rpc_core::Instant;
use rpc_core::cluster::{Fill, Ordered, Sequencer, SequencerConfig};
use rpc_core::timers::later;
use rpc_core::{Str, Text};

/// How long to wait until a feed is open before asking again.
const OPEN_TIMEOUT: Duration = Duration::from_secs(2);

/// Most messages that are held until a feed is open. Others are filled later.
const MAX_HELD: usize = 64;

/// What the live feed of a channel brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Live {
    /// A final message, which is stored.
    Stored {
        /// Its sequence number in the stream.
        sequence: u64,
        /// That of the channel's message before it; 0 if there is none.
        previous: u64,
        /// The encoded event.
        event: Text,
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
    state: State,
}

enum State {
    /// Subscribing, and reading where the channel's messages end.
    Opening {
        ticket: u64,
        held: Vec<(u64, u64, Text)>,
        again_at: Instant,
    },
    Open(Sequencer<Text>),
}

impl Feed {
    pub(super) fn new(ticket: u64, now: Instant) -> Self {
        Self {
            users: BTreeSet::new(),
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

    /// Takes the last sequence number of the channel. Returns `false` if another opening has begun
    /// since, or it is open already.
    pub(super) fn opened(
        &mut self,
        number: u64,
        last: u64,
        config: SequencerConfig,
        now: Instant,
    ) -> bool {
        let State::Opening { ticket, held, .. } = &mut self.state else {
            return false;
        };
        if *ticket != number {
            return false;
        }
        let mut sequencer = Sequencer::new(last, config);
        for (sequence, previous, event) in std::mem::take(held) {
            sequencer.handle_live(sequence, previous, event, now);
        }
        self.state = State::Open(sequencer);
        true
    }

    /// Takes what the live feed brings. Returns an event to deliver at once.
    pub(super) fn handle_live(&mut self, live: Live, now: Instant) -> Option<Text> {
        match (&mut self.state, live) {
            (
                State::Opening { held, .. },
                Live::Stored {
                    sequence,
                    previous,
                    event,
                },
            ) => {
                if held.len() < MAX_HELD {
                    held.push((sequence, previous, event));
                }
                None
            }
            (
                State::Open(sequencer),
                Live::Stored {
                    sequence,
                    previous,
                    event,
                },
            ) => {
                sequencer.handle_live(sequence, previous, event, now);
                None
            }
            // While messages are missing, one that follows them must not come first.
            (State::Open(sequencer), Live::Fleeting { event }) => {
                sequencer.poll_timeout().is_none().then_some(event)
            }
            (State::Opening { .. }, Live::Fleeting { .. }) => None,
        }
    }

    pub(super) fn handle_fill(
        &mut self,
        fill: Fill,
        events: impl IntoIterator<Item = (u64, Text)>,
        through: u64,
        now: Instant,
    ) {
        if let State::Open(sequencer) = &mut self.state {
            sequencer.handle_fill(fill, events, through, now);
        }
    }

    /// Asks for what the feed may have lost; for everything if there is a new stream.
    pub(super) fn check(&mut self, is_new: bool, config: SequencerConfig, now: Instant) {
        if let State::Open(sequencer) = &mut self.state {
            if is_new {
                *sequencer = Sequencer::new(0, config);
            }
            sequencer.check(now);
        }
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

    pub(super) fn poll_request(&mut self) -> Option<Fill> {
        match &mut self.state {
            State::Opening { .. } => None,
            State::Open(sequencer) => sequencer.poll_request(),
        }
    }

    /// Returns the next event to deliver.
    pub(super) fn poll_event(&mut self) -> Option<Text> {
        let State::Open(sequencer) = &mut self.state else {
            return None;
        };
        loop {
            match sequencer.poll_event()? {
                Ordered::Item { item, .. } => return Some(item),
                // Too old to be kept. There is no event that tells of it.
                Ordered::Lost { .. } => {}
            }
        }
    }
}
