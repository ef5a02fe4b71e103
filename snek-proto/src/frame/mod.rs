//! The frames of the wire, typed: [`ClientFrame`] from client to server, [`ServerFrame`] back.
//!
//! Decoded frames borrow from the text. `into_owned` copies what has to live longer.

mod call;
mod client;
mod event;
mod owned;
mod server;
mod types;

pub use call::{ArgsError, Call, Method};
pub use client::ClientFrame;
pub use event::{Event, JoinEvent, MessageEvent, NamedEvent, TypingEvent, UnknownEvent};
pub use owned::OwnedCall;
pub use server::{Failure, Reply, ServerFrame, Success};
pub use types::{Answer, Channel, Final, Message, User};
