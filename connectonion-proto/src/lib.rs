//! The ConnectOnion protocol.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![doc = include_str!("../README.md")]

pub mod auth;
#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
pub mod fuzzing;
pub mod merge;
pub mod replay;
pub mod session;
pub mod trust;
