//! Sessions: their names, [`SessionKey`], and whose turn it is in each, [`Turns`].

mod key;
mod turns;

pub use key::{InvalidKey, SessionKey};
pub use turns::{Turn, TurnError, TurnLimits, Turns};
