//! The ConnectOnion protocol. Nothing is implemented yet.
#![doc = include_str!("../README.md")]

pub mod merge;
pub mod replay;
pub mod session;
pub mod storage;
pub mod upload;
