//! Bodies of the fuzz targets, and the rules that everything a server sends must keep.
#![allow(clippy::panic, reason = "a broken rule has to stop the fuzzer")]

mod frames;
mod order;

pub use frames::{client_frames, server_frames};
pub use order::OrderChecker;
