//! Plugins: a [`Handler`], and the [`Plugin`] that registers, answers, reconnects and ends gracefully
//! (feature `tokio`).
//!
//! The router waits 30 s for the first response to a message. A handler that needs longer calls
//! [`message.ack()`](crate::net::InboundMessage::ack) first and
//! [notifies](crate::net::InboundMessage::notify) when it is done. A faster one need not respond:
//! when it returns `Ok`, the message is acknowledged, and when it fails or panics, rejected.

mod config;
mod context;
mod error;
mod handler;
mod runner;

pub use config::PluginConfig;
pub use context::Context;
pub use error::AppError;
pub use handler::{DynHandler, Handler, handler_fn};
pub use runner::{Ended, Plugin};
