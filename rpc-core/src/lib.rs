//! Sans-IO building blocks shared by the protocol crates.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![doc = include_str!("../README.md")]

// So that `tagged!` names this crate in one way, here and elsewhere.
#[allow(unused_extern_crates)]
extern crate self as rpc_core;

pub mod backlog;
pub mod backoff;
pub mod breaker;
pub mod dispatch;
pub mod encode;
pub mod error;
#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
pub mod fuzzing;
pub mod guide;
pub mod id;
pub mod json;
pub mod keepalive;
pub mod limits;
pub mod machine;
pub mod message;
#[cfg(feature = "tokio")]
pub mod net;
pub mod outbox;
pub mod pause;
pub mod pending;
pub mod progress;
pub mod rate;
pub mod reconnect;
pub mod secret;
pub mod sse;
#[cfg(feature = "testing")]
pub mod testing;
pub mod text;
pub mod timers;
pub mod timestamp;
mod words;

pub use error::{CallError, CloseReason, Delivery, Disconnect, Refused, Retry};
pub use id::{CallId, Id};
pub use json::{DecodeError, Json, Str};
pub use limits::Limits;
pub use machine::Machine;
pub use message::{CloseFrame, Incoming, Outgoing, Text};
pub use outbox::Outbox;
pub use pending::{Match, PendingCalls, PendingMap};
pub use secret::Secret;
