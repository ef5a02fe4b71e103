//! Bots: a [`Handler`] and the [`Bot`] that logs in, routes, answers, reconnects and drains.

mod answers;
mod commands;
mod config;
mod context;
mod handler;
mod lifecycle;
mod partial;
mod runner;
mod send;
mod stream;
mod typing;

pub use {
    crate::stream::StreamConfig,
    commands::Commands,
    config::BotConfig,
    context::Context,
    handler::{DynHandler, Handler, Notice},
    lifecycle::State,
    runner::Bot,
    send::RetrySend,
    stream::{PumpError, StreamWriter},
    typing::Typing,
};
