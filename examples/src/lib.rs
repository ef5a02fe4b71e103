//! What the example programs share: the command line, frames on a screen, and small talk.

pub mod cli;
pub mod screen;
pub mod talk;

/// The quick start of the top-level README, compiled and run with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
#[derive(Debug)]
pub struct Readme;
