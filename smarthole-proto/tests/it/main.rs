//! Integration tests of the SmartHole crate.

mod hub;
mod hub_model;
mod hub_play;
