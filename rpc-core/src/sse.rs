//! Server-sent events: a byte-level [`Decoder`] and an encoder for `text/event-stream`.
//!
//! The stream format is that of the WHATWG HTML standard, section "Server-sent events".
//!
//! ```
//! use rpc_core::{Limits, sse};
//!
//! let mut decoder = sse::Decoder::new(&Limits::default());
//! let mut bytes: &[u8] = b": hi\nevent: tick\ndata: 1\n\ndata: 2\n\ndata: incompl";
//! let mut data = Vec::new();
//! while let Some(event) = decoder.decode(&mut bytes) {
//!     data.push(event.unwrap().data);
//! }
//! assert_eq!(data, ["1", "2"]);
//! ```

mod decoder;
mod encoder;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub use decoder::Decoder;
pub use encoder::encode;

/// One event of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// The type. `None` is the default type, `message`; an empty name is never decoded.
    pub event: Option<String>,
    /// The data, lines separated by `\n`.
    pub data: String,
    /// The id of this event, if any; an empty one clears the id before it. The value for
    /// `Last-Event-ID` is [`Decoder::last_event_id`].
    pub id: Option<String>,
    /// The reconnection delay of this event, if any. Whole milliseconds.
    pub retry: Option<Duration>,
}

impl Event {
    /// Creates an event of the default type with this data.
    #[must_use]
    pub fn new(data: impl Into<String>) -> Self {
        Self {
            data: data.into(),
            ..Self::default()
        }
    }
}

/// Why an event could not be decoded or encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SseError {
    /// A line of the stream is longer than the limit. Its event is skipped; decoding goes on
    /// with the next one.
    #[error("a line of the event stream is longer than {max} bytes")]
    LineTooLong {
        /// The limit in bytes.
        max: usize,
    },
    /// An event of the stream is larger than the limit. It is skipped; decoding goes on with the
    /// next one.
    #[error("an event of the stream is larger than {max} bytes")]
    EventTooLarge {
        /// The limit in bytes.
        max: usize,
    },
    /// A field holds a character that the format cannot carry: a line break in the type or the id,
    /// or NUL in the id. Nothing was written.
    #[error("the {field} of an event cannot hold a line break or NUL")]
    BadField {
        /// `event` or `id`.
        field: &'static str,
    },
}
