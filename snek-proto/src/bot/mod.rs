//! Bots: the [`Lifecycle`] that they go through.

mod lifecycle;

pub use lifecycle::{IllegalTransition, Lifecycle, State};
