//! The frames of the wire, typed: [`ClientFrame`] from client to server, [`ServerFrame`] back.

mod call;
mod client;
mod event;
mod server;
mod types;

pub use call::Call;
pub(crate) use call::LOGIN;
pub use client::ClientFrame;
pub use event::{Event, Joined, Message, OtherEvent, Typing};
pub use server::{CallValue, ServerFrame};
pub(crate) use types::NoArgs;
pub use types::{Channel, Final, NoKwargs, User};
