//! Common parts of the example programs: the command line, frames on a screen, small talk, lines
//! from a terminal, pages in a browser, and an assistant with a language model.

pub mod agent;
pub mod assistant;
pub mod bounded;
pub mod chat;
pub mod cli;
pub mod conversation;
pub mod daemon;
pub mod diff;
pub mod gateway;
pub mod markdown;
pub mod metrics;
pub mod model;
pub mod page;
pub mod pictures;
pub mod replies;
pub mod router;
pub mod terminal;
pub mod tools;

pub use switchboard_cli::{text, web};

/// The quick start of the top-level README, compiled and run with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
#[derive(Debug)]
pub struct Readme;
