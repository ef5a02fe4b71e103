//! Calls in flight: [`PendingCalls`] where this side chooses the id, [`PendingMap`] where the peer
//! does.

mod calls;
mod map;
mod slab;
#[cfg(test)]
mod tests;
mod wheel;

pub use calls::PendingCalls;
pub use map::PendingMap;

use crate::error::Refused;

/// The call to which an id from the peer refers.
///
/// Exhaustive on purpose: there is no fourth case, and every caller has to handle all three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Match<T> {
    /// A call in flight, which has been removed.
    Live(T),
    /// A call that has ended already: answered, expired or cancelled. Drop the message.
    Late,
    /// No call that this table knows.
    Unknown,
}

impl<T> Match<T> {
    /// Returns the call's tag, if it was in flight.
    #[must_use]
    pub fn live(self) -> Option<T> {
        match self {
            Self::Live(tag) => Some(tag),
            Self::Late | Self::Unknown => None,
        }
    }
}

/// Why a call was not registered. Nothing changed; the tag is returned. Exhaustive on purpose: there
/// is no third reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InsertError<T> {
    /// The maximum number of calls is in flight. Retry when one has ended.
    #[error("{max} calls are in flight already")]
    Full {
        /// The tag that was not registered.
        tag: T,
        /// The limit.
        max: usize,
    },
    /// A call with this key is in flight ([`PendingMap`] only).
    #[error("a call with this id is in flight already")]
    Duplicate {
        /// The tag that was not registered.
        tag: T,
    },
}

impl<T> From<InsertError<T>> for Refused {
    fn from(error: InsertError<T>) -> Self {
        match error {
            InsertError::Full { max, .. } => Self::TooManyCalls { max },
            InsertError::Duplicate { .. } => Self::Invalid {
                what: "id",
                why: "a call with this id is in flight".to_owned(),
            },
        }
    }
}
