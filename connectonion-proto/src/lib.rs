//! The ConnectOnion protocol.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![doc = include_str!("../README.md")]

pub mod codec;
pub mod frame;

pub use frame::{ClientFrame, ServerFrame};
