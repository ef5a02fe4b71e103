//! The other side of a [replay](mod@rpc_core::testing::replay): servers that are called, clients that call.

mod client;
mod exchange;
mod line;
mod server;
mod sign;

pub use client::Clients;
pub use exchange::with_bodies;
pub use server::Server;
pub use sign::{is_signed, signs};
