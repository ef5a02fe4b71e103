//! [`Word`]: a word that the protocol knows, or another; and the vocabularies.

use rpc_core::Str;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The words that a member may have, as far as this crate knows.
pub trait Vocabulary: Copy + Eq + 'static {
    /// Each word on the wire and what it is here.
    const WORDS: &'static [(&'static str, Self)];

    /// The word on the wire.
    #[must_use]
    fn as_str(self) -> &'static str {
        let found = Self::WORDS.iter().find(|(_, known)| *known == self);
        found.map_or("", |(word, _)| word)
    }
}

/// A word of the vocabularies `K`, or one that this crate does not know: peers are newer, and agents
/// have their own. Exhaustive: a word is known or not.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Word<K> {
    /// A word that this crate knows.
    Known(K),
    /// Any other, as it was sent.
    Other(Str),
}

impl<K: Vocabulary> Word<K> {
    /// The word that is written like this.
    pub fn parse(text: impl AsRef<str> + Into<Str>) -> Self {
        let known = K::WORDS.iter().find(|(word, _)| *word == text.as_ref());
        known.map_or_else(
            || Self::Other(text.into()),
            |(_, known)| Self::Known(*known),
        )
    }

    /// The word on the wire.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Known(known) => known.as_str(),
            Self::Other(text) => text,
        }
    }

    /// The word, if this crate knows it.
    #[must_use]
    pub fn known(&self) -> Option<K> {
        match self {
            Self::Known(known) => Some(*known),
            Self::Other(_) => None,
        }
    }
}

impl<K> From<K> for Word<K> {
    fn from(known: K) -> Self {
        Self::Known(known)
    }
}

impl<K: Vocabulary> Serialize for Word<K> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.as_str())
    }
}

impl<'de, K: Vocabulary> Deserialize<'de> for Word<K> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Str::deserialize(from).map(Self::parse)
    }
}

/// Enums of words on the wire.
macro_rules! vocabularies {
    ($($(#[$meta:meta])* pub enum $Name:ident {
        $($(#[$doc:meta])* $word:literal => $Kind:ident,)*
    })*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $Name {
            $($(#[$doc])* $Kind,)*
        }

        #[automatically_derived]
        impl Vocabulary for $Name {
            const WORDS: &'static [(&'static str, Self)] = &[$(($word, Self::$Kind)),*];
        }
    )*};
}

vocabularies! {
    /// What an agent may do without asking. ConnectOnion specification, *CONNECT* (`session.mode`).
    pub enum Mode {
        /// It asks before anything that changes something.
        "safe" => Safe,
        /// It only makes a plan.
        "plan" => Plan,
        /// It may change files.
        "accept_edits" => AcceptEdits,
        /// It goes on by itself for a number of turns.
        "ulw" => Ulw,
        /// What newer hosts call [`Safe`](Self::Safe).
        "read-only" => ReadOnly,
        /// What newer hosts call [`AcceptEdits`](Self::AcceptEdits).
        "auto" => Auto,
        /// It may do everything. Newer hosts only.
        "full-access" => FullAccess,
    }

    /// Who has changed the mode.
    pub enum Trigger {
        /// The agent itself.
        "agent" => Agent,
        /// The user.
        "user" => User,
        /// The turns of the mode `ulw` are used up.
        "ulw_checkpoint" => UlwCheckpoint,
    }

    /// How long an approval holds. ConnectOnion specification, *`APPROVAL_RESPONSE`*.
    pub enum Scope {
        /// For this call only.
        "once" => Once,
        /// For this tool until the session ends.
        "session" => Session,
    }

    /// What follows when a tool is not approved. Not in the specification.
    #[derive(Default)]
    pub enum Rejection {
        /// The agent goes on without the tool.
        "reject_soft" => Soft,
        /// The agent stops. What a response without a mode means.
        #[default]
        "reject_hard" => Hard,
        /// The agent explains what it wanted.
        "reject_explain" => Explain,
    }

    /// What to do when the turns of the mode `ulw` are used up. Any other word stops the agent.
    pub enum UlwAction {
        /// Go on for some more turns.
        "continue" => Continue,
        /// Go on in another mode.
        "switch_mode" => SwitchMode,
    }

    /// How a tool stands, in events and chat items.
    pub enum ToolStatus {
        /// It runs. In chat items.
        "running" => Running,
        /// It has run. In chat items.
        "done" => Done,
        /// It has run.
        "success" => Success,
        /// It has failed.
        "error" => Error,
        /// There is no such tool.
        "not_found" => NotFound,
        /// It runs. Newer hosts.
        "in_progress" => InProgress,
        /// It has run. Newer hosts.
        "completed" => Completed,
        /// It has failed. Newer hosts.
        "failed" => Failed,
    }

    /// How far something is that starts and ends with events of one type: a model's call, compacting,
    /// understanding what is meant, judging what was done.
    pub enum Phase {
        /// A model is working.
        "running" => Running,
        /// A model has answered.
        "success" => Success,
        /// The conversation is being made shorter.
        "compacting" => Compacting,
        /// The agent finds out what is meant.
        "analyzing" => Analyzing,
        /// The agent knows what is meant.
        "understood" => Understood,
        /// The agent judges what it has done.
        "evaluating" => Evaluating,
        /// It has ended.
        "done" => Done,
        /// It has failed.
        "error" => Error,
    }

    /// How a stranger may become a contact. ConnectOnion specification, *Trust Gate*.
    pub enum OnboardMethod {
        /// With an invite code.
        "invite_code" => InviteCode,
        /// By a payment.
        "payment" => Payment,
    }

    /// How a session stands, in the answer to a `SESSION_STATUS`.
    pub enum Standing {
        /// Its agent is working.
        "running" => Running,
        /// It is there and idle.
        "connected" => Connected,
        /// There is none, or it is not the caller's.
        "not_found" => NotFound,
    }

    /// What an administrator wants: the types of the frames ADMIN_*. Not in the specification.
    pub enum AdminAction {
        /// Raise a client's level.
        "ADMIN_PROMOTE" => Promote,
        /// Lower a client's level.
        "ADMIN_DEMOTE" => Demote,
        /// Block a client.
        "ADMIN_BLOCK" => Block,
        /// Unblock a client.
        "ADMIN_UNBLOCK" => Unblock,
        /// Tell a client's level.
        "ADMIN_GET_LEVEL" => GetLevel,
        /// Make somebody an administrator.
        "ADMIN_ADD" => Add,
        /// Make an administrator none.
        "ADMIN_REMOVE" => Remove,
    }
}

impl ToolStatus {
    /// Whether the tool has ended badly.
    #[must_use]
    pub const fn is_error(self) -> bool {
        matches!(self, Self::Error | Self::NotFound | Self::Failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<K: Vocabulary + std::fmt::Debug>() {
        for (text, known) in K::WORDS {
            let word = Word::<K>::parse(*text);
            assert_eq!(word, Word::Known(*known));
            assert_eq!(word.as_str(), *text);
        }
        let other = Word::<K>::parse("later");
        assert_eq!((other.as_str(), other.known()), ("later", None));
    }

    #[test]
    fn every_word_is_read_as_it_is_written() {
        check::<Mode>();
        check::<Trigger>();
        check::<Scope>();
        check::<Rejection>();
        check::<UlwAction>();
        check::<ToolStatus>();
        check::<Phase>();
        check::<OnboardMethod>();
        check::<Standing>();
        check::<AdminAction>();
    }
}
