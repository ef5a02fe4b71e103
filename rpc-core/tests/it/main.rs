//! Integration tests of the core, with a toy protocol as its user.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(missing_docs, unreachable_pub, reason = "helpers of a test binary")]

mod guide;
mod link_calls;
mod link_drops;
mod link_establish;
mod link_events;
mod link_orders;
mod link_reconnect;
mod localhost;
mod memory;
mod mounted;
#[cfg(feature = "nats")]
mod nats;
#[cfg(feature = "nats")]
mod nats_permissions;
mod nodes;
mod proxy;
mod secrets;
mod server;
mod server_crowd;
mod server_limits;
mod server_streams;
mod server_tickets;
mod sim;
mod sources;
mod tls;
mod toy;
mod toy_machines;
mod toy_sockets;
mod toy_wild;
mod ws;
mod ws_ends;
mod ws_frames;
mod ws_reference;
