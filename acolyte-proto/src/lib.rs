//! The Acolyte protocol. Nothing is implemented yet.
#![doc = include_str!("../README.md")]
