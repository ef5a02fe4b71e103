//! Plays the script of a row of a suite, or of a recording: one side of connections, of which the other one is compared.
//!
//! [`Player`] opens connections, sends, receives and matches; `crate::check` ends a row with the first step that fails,
//! `crate::replay` reports each difference and goes on. `script.rs` has the steps, [`crate::pattern`] the patterns.

mod ask;
mod conn;
mod expect;
mod hide;
pub(crate) mod http;
mod peer;
mod player;
mod recorded;
mod roles;
pub(crate) mod script;
pub(crate) mod signed;
mod variables;

#[cfg(test)]
pub(crate) use conn::BoxStream;
pub(crate) use conn::{Frame, NO_CLOSE, NO_CODE};
#[cfg(test)]
pub(crate) use peer::{Client, Ended, Started};
pub(crate) use peer::{Command, Dial, Listening, Peer};
pub(crate) use player::{Entry, Player, Settings};
pub(crate) use script::{Action, Ask, Awaited, Expected, Step};
pub(crate) use variables::{NEEDS, Variables};
