//! [`Tamper`]: what stands between a check and its peer. Nothing does but in tests, which break our own programs so.

use std::fmt::Debug;
use std::sync::Arc;

use rpc_core::testing::Side;

use super::variables::Variables;

/// What passes on a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// A text.
    Text(String),
    /// Bytes.
    Binary(Vec<u8>),
    /// A ping of the transport.
    Ping(Vec<u8>),
    /// A pong of the transport.
    Pong(Vec<u8>),
    /// A Close with this code.
    Close(u16),
    /// The end without a Close, and why.
    End(String),
}

/// What becomes of a frame.
#[cfg_attr(not(test), expect(dead_code, reason = "tests break peers"))]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Passed {
    /// It goes on.
    On(Frame),
    /// This goes back to the sender.
    Back(Frame),
    /// The connection is closed with this code.
    Closed(u16),
}

/// What may change frames, and what else is seen of a peer.
pub(crate) trait Tamper: Debug + Send + Sync {
    /// Returns what stands there in a row with these variables, if it is not the same in all rows.
    ///
    /// # Errors
    /// The row is not applicable, for this reason.
    fn of_row(&self, _variables: &Variables) -> Result<Option<Arc<dyn Tamper>>, String> {
        Ok(None)
    }

    /// A connection begins. Returns what comes before anything else.
    fn begin(&self, _connection: u8, _from: Side) -> Option<Frame> {
        None
    }

    /// Returns what becomes of a frame.
    fn pass(&self, _connection: u8, _from: Side, frame: Frame) -> Vec<Passed> {
        vec![Passed::On(frame)]
    }

    /// Returns what is seen in place of a value, such as the `path` of a request.
    fn word<'a>(&'a self, _from: Side, _word: &str, _of: &str) -> Option<&'a str> {
        None
    }

    /// Returns what is seen in place of a value, or the value.
    fn instead<'a>(&'a self, from: Side, word: &str, of: &'a str) -> &'a str {
        self.word(from, word, of).unwrap_or(of)
    }

    /// Returns whether a value is not seen at all, such as a `header`.
    fn drops(&self, _from: Side, _word: &str, _of: &str) -> bool {
        false
    }

    /// Returns the names of what could have been changed.
    fn noticed(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Changes nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Faithful;

impl Tamper for Faithful {}
