//! The frames of the wire, typed: [`ClientFrame`] from client to server, [`ServerFrame`] back.

mod client;
mod message;
mod registration;
mod response;
mod server;

pub use client::ClientFrame;
pub use message::{InputMethod, Message, Metadata};
pub use registration::{Registration, RegistrationResponse};
pub use response::{Answer, Notification, Priority, Reject, Response};
pub use server::ServerFrame;
