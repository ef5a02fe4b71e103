//! [`Signed`]: the payload, the sender and the signature of a signed frame.

use rpc_core::json::lenient::optional_verbatim_object;
use rpc_core::{Json, Str, members};
use serde::{Deserialize, Serialize};

use super::json::last_member;
use super::number::Number;

members! {
    /// The sender of a frame, with proof: `payload`, `from` and `signature`. ConnectOnion
    /// specification, *Authentication*.
    ///
    /// Each may be absent: the server reports what is missing, in the words that clients know. The
    /// payload stays as it was sent, because the signature covers its text.
    #[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Signed {
        /// The signed payload: a JSON object, as it was sent.
        pub payload: Option<Json> as "optional_verbatim_object",
        /// The sender's address, as it was sent.
        pub from: Option<Str>,
        /// The signature in hex, as it was sent.
        pub signature: Option<Str>,
    }
}

impl Signed {
    /// Creates a payload with its proof.
    pub fn new(payload: impl Into<Json>, from: impl Into<Str>, signature: impl Into<Str>) -> Self {
        Self {
            payload: Some(payload.into()),
            from: Some(from.into()),
            signature: Some(signature.into()),
        }
    }

    /// Creates an unsigned value.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Returns a member of the payload, as it was sent. The signature is not verified here.
    fn member(&self, name: &str) -> Option<Json> {
        last_member(self.payload.as_ref()?, name)
    }

    /// Returns a member of the payload that is a string.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<Str> {
        self.member(name)?.as_str().map(Str::from)
    }

    /// Returns whether the files of a session that is deleted are still needed.
    pub(crate) fn keeps_files(&self) -> bool {
        self.member("keep_files")
            .is_some_and(|it| it.get() == "true")
    }

    /// Returns a member of the payload that is a number.
    pub(crate) fn number(&self, name: &str) -> Option<Number> {
        self.member(name)?.parse().ok()
    }
}

// Prints the address only: the payload may hold an invite code, and a signature is valid for five
// minutes.
rpc_core::debug_fields!([] Signed, this => { from: this.from });
