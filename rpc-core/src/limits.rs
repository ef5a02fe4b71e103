//! [`Limits`]: every bound on memory and size that a machine keeps.

use crate::rate::RateLimit;

/// Bounds on what one connection may hold. All are on by default; each protocol crate names its
/// own defaults where its specification gives a number.
///
/// ```
/// let limits = rpc_core::Limits::default().with_max_message_bytes(1024 * 1024);
/// assert_eq!(limits.max_message_bytes, 1_048_576);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Largest message in bytes, checked before parsing and before sending. Default 4 MiB.
    pub max_message_bytes: usize,
    /// Deepest nesting of a JSON value that is parsed (not of a payload passed through).
    /// Default 128; `serde_json` itself parses at most 127, whatever stands here.
    pub max_depth: usize,
    /// Most calls in flight. Default 65,536.
    pub max_pending: usize,
    /// Most frames waiting to be sent. Default 4,096.
    pub max_outbox_frames: usize,
    /// Most bytes waiting to be sent. Default 16 MiB.
    pub max_outbox_bytes: usize,
    /// Events waiting to be taken before a machine wants no more input. Default 1,024.
    pub max_events: usize,
    /// Bytes of frames that such events, or requests being worked on, hold before a machine wants
    /// no more input. Default 16 MiB; a single larger frame passes.
    pub max_event_bytes: usize,
    /// Most items in a list of a decoded frame (channels, tools). Default 65,536.
    pub max_items: usize,
    /// How many messages the peer may send on one connection, pings and pongs among them; `None` is any
    /// number. Enforced by servers. Default 5,000 at once and one more every millisecond.
    pub max_message_rate: Option<RateLimit>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_message_bytes: 4 * 1024 * 1024,
            max_depth: 128,
            max_pending: 65_536,
            max_outbox_frames: 4_096,
            max_outbox_bytes: 16 * 1024 * 1024,
            max_events: 1_024,
            max_event_bytes: 16 * 1024 * 1024,
            max_items: 65_536,
            max_message_rate: Some(RateLimit::default()),
        }
    }
}

impl Limits {
    /// Sets [`max_message_bytes`](Self::max_message_bytes).
    #[must_use]
    pub const fn with_max_message_bytes(mut self, bytes: usize) -> Self {
        self.max_message_bytes = bytes;
        self
    }

    /// Sets [`max_depth`](Self::max_depth).
    #[must_use]
    pub const fn with_max_depth(mut self, depth: usize) -> Self {
        self.max_depth = depth;
        self
    }

    /// Sets [`max_pending`](Self::max_pending).
    #[must_use]
    pub const fn with_max_pending(mut self, calls: usize) -> Self {
        self.max_pending = calls;
        self
    }

    /// Sets [`max_outbox_frames`](Self::max_outbox_frames).
    #[must_use]
    pub const fn with_max_outbox_frames(mut self, frames: usize) -> Self {
        self.max_outbox_frames = frames;
        self
    }

    /// Sets [`max_outbox_bytes`](Self::max_outbox_bytes).
    #[must_use]
    pub const fn with_max_outbox_bytes(mut self, bytes: usize) -> Self {
        self.max_outbox_bytes = bytes;
        self
    }

    /// Sets [`max_events`](Self::max_events).
    #[must_use]
    pub const fn with_max_events(mut self, events: usize) -> Self {
        self.max_events = events;
        self
    }

    /// Sets [`max_event_bytes`](Self::max_event_bytes).
    #[must_use]
    pub const fn with_max_event_bytes(mut self, bytes: usize) -> Self {
        self.max_event_bytes = bytes;
        self
    }

    /// Sets [`max_items`](Self::max_items).
    #[must_use]
    pub const fn with_max_items(mut self, items: usize) -> Self {
        self.max_items = items;
        self
    }

    /// Sets [`max_message_rate`](Self::max_message_rate).
    #[must_use]
    pub const fn with_max_message_rate(mut self, rate: Option<RateLimit>) -> Self {
        self.max_message_rate = rate;
        self
    }
}
