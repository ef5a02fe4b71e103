//! Faults over real sockets: a peer that keeps to no rule, and what has to hold all the same.
//!
//! - [`RawPeer`] and [`RawListener`]: a WebSocket's bytes by hand, as a client and as a server.

pub mod client;
mod raw;

pub use raw::{End, RawFrame, RawListener, RawPeer, Received, upgrade_request};
