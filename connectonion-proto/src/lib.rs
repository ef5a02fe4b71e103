//! The ConnectOnion protocol.
//!
//! [`guide`]: crate::guide
//! [`spec`]: crate::spec
//! [`rpc_core::guide`]: rpc_core::guide
#![cfg_attr(docsrs, feature(doc_cfg))]
// Where the documentation of other crates links to if it does not have these pages beside it.
#![doc(html_root_url = "https://docs.rs/connectonion-proto/latest")]
#![doc = include_str!("../README.md")]
#![cfg_attr(not(feature = "server"), allow(dead_code, reason = "hosts need it"))]

pub mod auth;
mod chat_items;
pub mod client;
pub mod codec;
mod console;
pub mod error;
pub mod frame;
#[doc = include_str!("../GUIDE.md")]
pub mod guide {}
mod hub;
pub mod id;
pub mod limits;
mod merge;
#[cfg(feature = "tokio")]
pub mod net;
mod replay;
pub mod server;
pub mod session;
#[doc = include_str!("../SPEC.md")]
pub mod spec {}
pub mod storage;
#[cfg(feature = "server")]
pub mod trust;
mod upload;

/// What the workspace's own tests, simulations and benchmarks look into. No part of the interface.
#[doc(hidden)]
pub mod internals {
    pub use crate::hub::{ConnId, ConnectRequest, Hub, HubEvent, Job, Now, Reply, RunId};
    #[cfg(feature = "server")]
    pub use crate::net::sessions::Sessions;
    pub use crate::storage::error::StorageError;
    pub use crate::storage::file::ResultsFile;
}

#[cfg(feature = "ws")]
pub use net::{connect, connect_lazy};
pub use rpc_core;
#[cfg(feature = "tokio")]
pub use rpc_core::net::{LinkEvent, LinkState};
pub use rpc_core::{
    CallError, CloseFrame, CloseReason, DecodeError, Delivery, Disconnect, Incoming, Instant, Json,
    Limits, Machine, Outgoing, Refused, Secret, Str,
};
