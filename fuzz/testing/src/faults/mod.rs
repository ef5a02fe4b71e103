//! Faults over real sockets: a peer that keeps to no rule, and what has to hold all the same.
//!
//! - [`RawPeer`] and [`RawListener`]: a WebSocket's bytes by hand, as a client and as a server;
//! - [`client::check_all`]: the faults that every client has to survive;
//! - [`server::check_all`]: the faults that every server has to survive.

pub mod client;
mod frame;
mod list;
mod raw;
pub mod server;

pub use raw::{End, RawFrame, RawListener, RawPeer, Received, upgrade_request};
