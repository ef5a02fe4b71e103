//! What servers keep their state by, alone or as nodes of a cluster.
//!
//! With feature `tokio` a `Store`, which compares and sets: `MemoryStore`, or NATS (`net::nats`, feature
//! `nats`). On any of them run `Log`, records in one order, and `Bucket`, values by key. `cluster` decides by them
//! which node owns what.
//!
//! What they need without IO:
//!
//! | | decides |
//! |---|---|
//! | [`Sequencer`] | the order of records out of a feed that loses some |
//! | [`token`] | how a user's text becomes part of a subject or key |
//!
//! A program opens a store and passes it on. The rest is for who writes a server of several machines, or an engine.
//!
//! # An engine
//!
//! An engine implements `Store` and `Log` with `async_trait`, which is how to read their methods:
//!
#![cfg_attr(all(feature = "tokio", not(target_family = "wasm")), doc = include_str!("engine.md"))]
//!
//! # What is decided where
//!
//! | Question | Decided by | At | If it is wrong |
//! |---|---|---|---|
//! | was a record stored? | the store's answer, or the id of the record sent again by `append_once` of a `Log` | the answer | the sender learns that it is unknown |
//! | what comes next? | the store's sequence numbers, by [`Sequencer`] | the arrival | the gap is read from the store |
//! | has the feed lost its end? | the caller's [`check`](Sequencer::check) | each reconnect, and from time to time | records are late until the next one |
//!
//! # Verbs
//!
//! As with any [`Machine`](crate::Machine), after each input take what [`poll_request`](Sequencer::poll_request)
//! and then what [`poll_event`](Sequencer::poll_event) return until they return `None`, then read
//! [`poll_timeout`](Sequencer::poll_timeout). Requests have a number that their reply repeats. A reply that never
//! comes needs no call: the machine stops waiting by itself. `now` never goes back.

#[cfg(all(feature = "tokio", not(target_family = "wasm")))]
mod bucket;
#[cfg(all(feature = "file-store", not(target_family = "wasm")))]
mod file;
#[cfg(all(feature = "tokio", not(target_family = "wasm")))]
mod local;
mod name;
mod sequencer;
#[cfg(all(feature = "sessions", not(target_family = "wasm")))]
mod session_log;
#[cfg(all(feature = "tokio", not(target_family = "wasm")))]
pub(crate) mod subject;
#[cfg(all(feature = "tokio", not(target_family = "wasm")))]
mod traits;

#[cfg(all(feature = "tokio", not(target_family = "wasm")))]
pub use bucket::{Bucket, BucketConfig, Change, Entry, Watch};
#[cfg(all(feature = "file-store", not(target_family = "wasm")))]
pub use file::{FileConfig, FileStore, FileTable, Fsync, Salvaged};
#[cfg(all(feature = "tokio", not(target_family = "wasm")))]
pub use local::{Changes, LocalStore, MemorySnapshot, MemoryStore, MemoryTable, Row, Table, Which};
pub use name::{NameTooLong, name_of, token, try_token};
pub use sequencer::{Fill, Sequencer};
#[cfg(all(feature = "sessions", not(target_family = "wasm")))]
pub use session_log::{
    Session, SessionEntry, SessionHead, SessionInfo, SessionLog, SessionLogConfig, SessionState,
};
#[cfg(all(feature = "tokio", not(target_family = "wasm")))]
pub use traits::{
    AskError, Expect, Log, LogConfig, LogState, Message, Messages, Position, Record, Store,
    StoreError, Stored, Watched,
};
