//! [`Kind`]: which end a process is and what it does, as its arguments name it.

pub(super) const PING: &str = "ping";
pub(super) const STATUS: &str = "status";
pub(super) const CHAT: &str = "chat of ten";
pub(super) const ECHO: &str = "echo, 42 B";
pub(super) const SEND_MESSAGE: &str = "send_message";
/// The end that knows no RPC.
pub(super) const ECHO_ONLY: &str = "echo, no RPC";

/// An end: `jsonrpsee: ping`, or `exoclaw`, which is for a `ping`, or to hold connections and for
/// streams.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Kind<'a> {
    pub(super) end: &'a str,
    pub(super) work: &'a str,
}

impl<'a> Kind<'a> {
    pub(super) fn parse(name: &'a str) -> Self {
        let (end, work) = name.split_once(": ").unwrap_or((name, PING));
        Self { end, work }
    }
}
