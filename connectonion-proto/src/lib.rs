//! The ConnectOnion protocol.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![doc = include_str!("../README.md")]

pub mod auth;
pub mod client;
pub mod codec;
mod console;
pub mod error;
pub mod frame;
#[doc = include_str!("../GUIDE.md")]
pub mod guide {}
pub mod id;
pub mod limits;
mod merge;
#[cfg(feature = "tokio")]
#[cfg_attr(docsrs, doc(cfg(feature = "tokio")))]
pub mod net;
mod replay;
pub mod server;
pub mod session;
#[doc = include_str!("../SPEC.md")]
pub mod spec {}
pub mod storage;
pub mod trust;
#[cfg_attr(
    not(all(feature = "auth", feature = "tokio")),
    allow(dead_code, reason = "hosts need it")
)]
mod upload;

#[cfg(feature = "ws")]
#[cfg_attr(docsrs, doc(cfg(feature = "ws")))]
pub use net::{connect, connect_lazy};
pub use rpc_core;
#[cfg(feature = "tokio")]
#[cfg_attr(docsrs, doc(cfg(feature = "tokio")))]
pub use rpc_core::net::{LinkEvent, LinkState};
pub use rpc_core::{
    CallError, CloseReason, DecodeError, Delivery, Incoming, Instant, Json, Limits, Machine,
    Outgoing, Refused, Secret, Str,
};
