//! What all frames are read with: objects whose members depend on a tag, and values of peers that
//! are not strict.

mod loose;
mod tagged;

use rpc_core::decode::Slot;

pub(crate) use loose::{count, list, strings, text};
pub(crate) use tagged::{Body, tagged};

/// The same slot, empty again: of a member that comes twice the last counts, as for the known
/// peers.
pub(crate) fn again<T>(slot: &mut Slot<T>) -> &mut Slot<T> {
    *slot = Slot::default();
    slot
}
