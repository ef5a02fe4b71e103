//! A SmartHole router: what chooses the receiver of a message, its HTTP interface, and its events as JSON.

pub(crate) mod http;
pub(crate) mod json;
pub mod model;

pub use model::ModelRouter;
