//! The crate from outside.

mod limits;
mod serve;
mod server;
mod stage;
mod wire;
