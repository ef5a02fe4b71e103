//! Bots: the [`Lifecycle`] (no feature needed), and with feature `tokio` the `Handler` trait and
//! the `Bot` that logs in, routes, answers, reconnects and drains.

mod lifecycle;

#[cfg(feature = "tokio")]
mod config;
#[cfg(feature = "tokio")]
mod context;
#[cfg(feature = "tokio")]
mod handler;
#[cfg(feature = "tokio")]
mod partial;
#[cfg(feature = "tokio")]
mod runner;
#[cfg(feature = "tokio")]
mod send;
#[cfg(feature = "tokio")]
mod stream;
#[cfg(feature = "tokio")]
mod typing;

pub use lifecycle::{IllegalTransition, Lifecycle, State};

#[cfg(feature = "tokio")]
#[cfg_attr(docsrs, doc(cfg(feature = "tokio")))]
pub use {
    config::BotConfig,
    context::Context,
    handler::{Handler, Notice},
    runner::Bot,
    send::RetrySend,
    stream::{PumpError, StreamWriter},
    typing::Typing,
};
