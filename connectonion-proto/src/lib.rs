//! The ConnectOnion protocol.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![doc = include_str!("../README.md")]

pub mod codec;
pub mod error;
pub mod frame;
pub mod id;
pub mod limits;

pub use frame::{ClientFrame, EventKind, ServerFrame, Session, StreamEvent};
pub use id::{EventId, SessionId};
