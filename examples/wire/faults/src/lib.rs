//! What goes wrong on purpose with a WebSocket.
//!
//! - [`Fault`]: all kinds;
//! - [`Lane`]: the frames of one direction under rules, decided without IO, for a proxy;
//! - [`RawFrame`]: a frame, right or wrong, for a peer that is played by hand.

mod frame;
mod lane;
mod parse;

pub use frame::{RawFrame, Received, mask};
pub use lane::{Action, Fault, Frame, Lane, Plan};
