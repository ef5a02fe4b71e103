//! The parts of the program, for it and for its tests; `main.rs` has the map.
#![allow(
    clippy::doc_markdown,
    reason = "comments on options are help texts, not Markdown"
)]

pub mod agent;
pub mod assistant;
mod bot;
pub mod chat;
pub mod commands;
pub mod daemon;
mod fsync;
pub mod gateway;
pub mod markdown;
pub mod metrics;
pub mod model;
pub mod page;
pub(crate) mod pages;
pub mod router;
#[cfg(test)]
#[path = "tests/scratch.rs"]
pub(crate) mod scratch;

pub use switchboard_cli::{self as cli, bounded, text, web};

/// The quick start of the top-level README, compiled and run with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
#[derive(Debug)]
pub struct Readme;
