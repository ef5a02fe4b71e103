//! Sessions: their names, [`SessionKey`], and their turns, [`Turns`].

mod key;
mod turns;

pub use key::{InvalidKey, SessionKey};
pub use turns::{Turn, TurnError, TurnLimits, Turns};
