//! The SmartHole protocol.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![doc = include_str!("../README.md")]

pub mod codec;
pub mod direct;
pub mod error;
pub mod frame;
pub mod hub;
pub mod id;
pub mod limits;
pub mod router;
pub mod timestamp;
pub mod validate;

pub use error::{ErrorCode, RegistrationError};
pub use frame::{
    Answer, ClientFrame, InputMethod, Message, Metadata, Notification, Priority, Registration,
    RegistrationResponse, Response, ServerFrame,
};
pub use id::{ClientId, MessageId};
