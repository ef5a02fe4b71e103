//! What typed calls say and are answered: the same for jsonrpsee as for us.

use serde::{Deserialize, Serialize};

/// The text of an `echo`.
pub(super) const TEXT: &str = "The quick brown fox jumps over a lazy dog.";
/// How many texts a chat is answered.
pub(super) const TEXTS: usize = 10;

/// The argument and the answer of `echo`.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Said<T> {
    pub(super) text: T,
}

/// What every server says about itself.
pub(super) const STATUS: (&str, u64, u64) = ("0.1.0", 3, 12);

/// The channel, the text and whether it is the last one: the arguments of `send_message`.
pub(super) const SENT: (&str, &str, bool) = ("ch1", "Hello, how are you?", true);

/// The answer to `send_message`, as Snek has it.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Sent {
    pub(super) channel_uid: String,
}

/// A step of jsonrpsee's chat: the same payload as Exoclaw's.
#[derive(Serialize, Deserialize)]
#[serde(tag = "event", content = "data", rename_all = "lowercase")]
pub(super) enum Event<T> {
    Text(T),
    Done,
}
