//! The Exoclaw AI gateway protocol.
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod auth;
pub mod binding;
pub mod budget;
pub mod session;
