//! The Exoclaw protocol. Nothing is implemented yet.
#![doc = include_str!("../README.md")]
