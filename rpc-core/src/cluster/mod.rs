//! What several nodes of one service decide about each other.
//!
//! For who writes a server of several machines; a program opens one, such as Snek's `ClusterBackend`.
//!
//! A cluster's nodes share a [`store`](crate::store). On it run, with feature `tokio`:
//!
//! | | decides |
//! |---|---|
//! | [`NodeLease`] | whether this node counts as alive, and until when; [`Membership`] is one such life after the other |
//! | [`Claims`] | which node owns a name (a session, a conversation) |
//!
//! # What is decided where
//!
//! | Question | Decided by | At | If it is wrong |
//! |---|---|---|---|
//! | is this node alive? | [`NodeLease`], by its own clock | the time asked, at the latest a margin before the store removes the key | the store refuses its writes |
//! | is another node alive? | the store: its key is there | the reading | a name waits up to one lease, or its owner is refused |
//! | who owns a name? | the store: the revision of its key | the write of the claim | only one of several claims is stored |
//! | may an owner write? | the store: the sequence number in the write, which the log compares | the write | never: this is what all else relies on |
//! | which of two owners is later? | the revision of the claim, in the record that begins an ownership | the reading of the log | the earlier one stops when it reads it |
//!
//! All of it is tried in simulated lives of clusters: nodes that die, pause and are cut off, clocks of different
//! speeds, answers that are lost or late, a store that restarts and fills up. A life fails if a name has two
//! owners at one time, a later owner a smaller number, or no owner in the end. Without the margin, lives fail.
//!
//! The nodes of Snek and the hosts of ConnectOnion themselves live over a `MemoryStore` which also loses its data,
//! comes back with a copy of them of any age, or has a log deleted: a life fails if two nodes see two orders, an
//! acknowledged record is missing or there twice, or a client never learns the outcome of its request.
//!
//! Not simulated: a store whose wall clock is set forward, which ends leases early.
//!
//! The store guarantees, the lease only avoids: **a write of an owner names the record before it**, and
//! the store refuses it if there is another one. A node that was paused and wakes up as a past owner is
//! refused, whatever its clock says. The lease keeps two nodes from trying, and makes a node stop in time.

mod claims;
mod membership;
mod node_lease;
#[cfg(test)]
mod tests;

pub use claims::{ClaimError, Claimed, Claims, Ownership};
pub use membership::Membership;
pub use node_lease::{LeaseConfig, LeaseLost, NodeLease, Renewal};

#[doc(hidden)]
pub mod internals {
    pub use super::node_lease::Clock;
}
