//! The frames of the wire, typed: [`ClientFrame`] from client to server, [`ServerFrame`] back.
//!
//! Every type is generic over its texts: borrowed from the frame (`Cow<str>`) as it is decoded, or
//! pieces of one shared copy ([`SharedStr`](rpc_core::decode::SharedStr)), the default, in what
//! applications get and give.

mod client;
mod message;
mod registration;
mod response;
mod server;

pub use client::ClientFrame;
pub use message::{InputMethod, Message, Metadata};
pub use registration::{Registration, RegistrationResponse};
pub use response::{Answer, Notification, Priority, Response};
pub use rpc_core::decode::Unknown;
pub use server::ServerFrame;
