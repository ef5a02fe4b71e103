//! [`Keywords`]: a router that compares words.

use super::{Choice, RouteRequest};

/// A router that compares words: deterministic, without a network, at once.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Keywords {}

impl Keywords {
    /// A router with its own list of words that say nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self {}
    }

    /// Chooses among the candidates.
    #[must_use]
    pub fn choose(&self, request: &RouteRequest) -> Vec<Choice> {
        match request.candidates.as_slice() {
            [only] => vec![Choice::new(only.name.clone())],
            _ => Vec::new(),
        }
    }
}
