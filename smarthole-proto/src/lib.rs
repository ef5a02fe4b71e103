//! The SmartHole protocol.
//!
//! [`guide`]: crate::guide
//! [`spec`]: crate::spec
//! [`rpc_core::guide`]: rpc_core::guide
#![cfg_attr(docsrs, feature(doc_cfg))]
// Where the documentation of other crates links to if it does not have these pages beside it.
#![doc(html_root_url = "https://docs.rs/smarthole-proto/latest")]
#![doc = include_str!("../README.md")]

pub mod client;
pub mod codec;
pub mod direct;
pub mod error;
pub mod frame;
#[doc = include_str!("../GUIDE.md")]
pub mod guide {}
pub mod hub;
pub mod id;
#[cfg_attr(
    not(feature = "server"),
    allow(dead_code, reason = "some serve features alone")
)]
pub mod limits;
#[cfg(feature = "tokio")]
pub mod net;
#[cfg(feature = "tokio")]
pub mod plugin;
pub mod router;
pub mod server;
#[doc = include_str!("../SPEC.md")]
pub mod spec {}
pub use rpc_core::timestamp;
pub mod validate;

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
use {error::*, frame::*, id::*};
