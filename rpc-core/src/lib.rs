//! Sans-IO building blocks shared by the protocol crates.
//!
//! [`guide`]: crate::guide
//! [`guide::testing`]: crate::guide::testing
//! [`guide::adding_a_protocol`]: crate::guide::adding_a_protocol
#![cfg_attr(docsrs, feature(doc_cfg))]
// Where the documentation of other crates links to if it does not have these pages beside it.
#![doc(html_root_url = "https://docs.rs/switchboard-rpc-core/latest")]
#![doc = include_str!("../README.md")]

// So that `tagged!` and `config!` name this crate in one way, here and elsewhere.
#[allow(unused_extern_crates)]
extern crate self as rpc_core;

#[doc(hidden)]
pub mod backlog;
pub mod backoff;
pub mod breaker;
#[cfg(all(feature = "tokio", not(target_family = "wasm")))]
pub mod cluster;
mod config;
mod debug;
#[cfg(feature = "tokio")]
mod dynamic;
pub mod encode;
mod error;
#[cfg(feature = "file")]
#[doc(hidden)]
pub mod file;
pub mod guide;
mod id;
pub mod json;
pub mod keepalive;
mod limits;
mod machine;
mod machine_core;
mod message;
#[cfg(feature = "tokio")]
pub mod net;
mod outbox;
mod pause;
mod pending;
#[doc(hidden)]
pub mod progress;
pub mod rate;
pub mod reconnect;
mod secret;
pub mod sse;
pub mod store;
#[doc(hidden)]
pub mod sync;
#[cfg(feature = "testing")]
pub mod testing;
#[doc(hidden)]
pub mod text;
#[doc(hidden)]
pub mod timers;
pub mod timestamp;

// What public signatures name.
pub use bytes;
#[cfg(feature = "ws")]
pub use http;
#[cfg(feature = "metrics")]
pub use metrics;
#[cfg(feature = "tls")]
pub use rustls;

pub use error::{CallError, CloseReason, ConnectErrorKind, Delivery, Disconnect, Refused, Retry};
pub use id::{CallId, Hex16, Id, IdForm, UniqueBits, uuid};
pub use json::error::DecodeError;
pub use json::str::Str;
pub use json::value::Json;
pub use limits::Limits;
pub use machine::Machine;
pub use machine_core::MachineCore;
pub use message::{CloseFrame, Incoming, Outgoing, Text};
pub use outbox::FrameNumber;
pub use pending::{InsertError, Match, PendingCalls, PendingMap};
pub use secret::{Secret, constant_time_eq};
/// The monotonic clock's type in the machines and links: std's own.
#[cfg(not(all(feature = "web", target_family = "wasm")))]
pub use std::time::Instant;
/// The monotonic clock's type in the machines and links: the page's.
#[cfg(all(feature = "web", target_family = "wasm"))]
pub use web_time::Instant;
