//! The Snek RPC chat protocol.
//!
//! [`guide`]: crate::guide
//! [`spec`]: crate::spec
//! [`rpc_core::guide`]: rpc_core::guide
#![cfg_attr(docsrs, feature(doc_cfg))]
// Where the documentation of other crates links to if it does not have these pages beside it.
#![doc(html_root_url = "https://docs.rs/snek-proto/latest")]
#![doc = include_str!("../README.md")]

#[cfg(feature = "tokio")]
pub mod bot;
pub mod client;
#[cfg(feature = "cluster")]
mod cluster;
pub mod codec;
pub mod color;
pub mod error;
pub mod frame;
#[doc = include_str!("../GUIDE.md")]
pub mod guide {}
pub mod hub;
pub mod id;
#[cfg_attr(
    not(all(feature = "fetch", feature = "server")),
    allow(dead_code, reason = "some serve features alone")
)]
pub mod limits;
pub mod llm;
#[cfg(feature = "tokio")]
pub mod net;
pub mod permission;
pub mod routing;
pub mod sanitize;
pub mod server;
#[doc = include_str!("../SPEC.md")]
pub mod spec {}
#[cfg(feature = "tokio")]
mod stream;

#[cfg(feature = "ws")]
pub use net::{connect, connect_lazy};
pub use rpc_core;
#[cfg(feature = "tokio")]
pub use rpc_core::net::{LinkEvent, LinkState};
pub use rpc_core::{
    CallError, CloseFrame, CloseReason, DecodeError, Delivery, Disconnect, Incoming, Instant, Json,
    Limits, Machine, Outgoing, Refused, Secret, Str,
};

// README.md, GUIDE.md and SPEC.md name these without their paths.
#[cfg(doc)]
use {error::*, frame::*, id::*, llm::*};
