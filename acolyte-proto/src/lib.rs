//! The Acolyte protocol.
//!
//! [`guide`]: crate::guide
//! [`spec`]: crate::spec
//! [`rpc_core::guide`]: rpc_core::guide
#![cfg_attr(docsrs, feature(doc_cfg))]
// Where the documentation of other crates links to if it does not have these pages beside it.
#![doc(html_root_url = "https://docs.rs/acolyte-proto/latest")]
#![doc = include_str!("../README.md")]

pub mod auth;
pub mod client;
pub mod codec;
pub mod error;
pub mod event;
pub mod frame;
#[doc = include_str!("../GUIDE.md")]
pub mod guide {}
#[cfg_attr(
    not(all(feature = "server", feature = "sse")),
    allow(dead_code, reason = "some serve features alone")
)]
pub mod http;
pub mod id;
#[cfg_attr(
    not(all(feature = "server", feature = "sse")),
    allow(dead_code, reason = "some serve features alone")
)]
pub mod limits;
mod loose;
#[cfg(feature = "tokio")]
pub mod net;
mod queue;
pub mod server;
#[doc = include_str!("../SPEC.md")]
pub mod spec {}
#[cfg_attr(
    not(feature = "server"),
    allow(dead_code, reason = "a server keeps tasks")
)]
pub mod task;
mod tool_calls;

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
use {error::*, event::*, frame::*, id::*, task::*};
