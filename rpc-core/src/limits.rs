//! [`Limits`]: every limit on memory and size that a machine enforces.

use crate::rate::RateLimit;

crate::config! {
    /// Limits on what one connection may hold. All are on by default; each protocol crate has its
    /// own defaults where its specification gives a number.
    ///
    /// ```
    /// use rpc_core::Limits;
    ///
    /// let limits = Limits { max_message_bytes: 1024 * 1024, ..Limits::default() };
    /// assert_eq!(limits.max_message_bytes, 1_048_576);
    /// ```
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Limits {
        /// Largest message in bytes, checked before parsing and before sending. Default 4 MiB.
        pub max_message_bytes: usize = 4 * 1024 * 1024,
        /// Deepest nesting of a JSON value that is parsed (not of a payload passed through).
        /// Default 128; at most 127 levels are parsed, whatever the value.
        pub max_depth: usize = 128,
        /// Most calls in flight. Default 65,536.
        pub max_pending: usize = 65_536,
        /// Most frames waiting to be sent. Default 4,096.
        pub max_outbox_frames: usize = 4_096,
        /// Most bytes waiting to be sent. Default 16 MiB.
        pub max_outbox_bytes: usize = 16 * 1024 * 1024,
        /// Events waiting to be taken before a machine wants no more input. Default 1,024.
        pub max_events: usize = 1_024,
        /// Bytes of frames that such events, or requests in progress, hold before a machine wants
        /// no more input. Default 16 MiB; a single larger frame passes.
        pub max_event_bytes: usize = 16 * 1024 * 1024,
        /// Most items in a list of a decoded frame (channels, tools). Default 65,536.
        pub max_items: usize = 65_536,
        /// How many messages the peer may send on one connection, pings and pongs included; `None`
        /// is no limit. Enforced by servers. Default 5,000 at once and one more every millisecond.
        pub max_message_rate: Option<RateLimit> = Some(RateLimit::default()),
    }
}

impl Limits {
    /// Returns the limits for text that has passed its limits already, or is this program's own: any size
    /// and any number of items.
    #[must_use]
    pub fn unlimited() -> Self {
        Self {
            max_message_bytes: usize::MAX,
            max_items: usize::MAX,
            ..Self::default()
        }
    }
}
