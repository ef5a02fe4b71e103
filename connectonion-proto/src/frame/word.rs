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

/// A word of the vocabulary `K`, or one that this crate does not know: peers are newer, and agents
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

/// What an agent may do without asking. ConnectOnion specification, *CONNECT* (`session.mode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mode {
    /// It asks before anything that changes something.
    Safe,
    /// It only makes a plan.
    Plan,
    /// It may change files.
    AcceptEdits,
    /// It goes on by itself for a number of turns.
    Ulw,
    /// What newer hosts call [`Safe`](Self::Safe).
    ReadOnly,
    /// What newer hosts call [`AcceptEdits`](Self::AcceptEdits).
    Auto,
    /// It may do everything. Newer hosts only.
    FullAccess,
}

impl Vocabulary for Mode {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("safe", Self::Safe),
        ("plan", Self::Plan),
        ("accept_edits", Self::AcceptEdits),
        ("ulw", Self::Ulw),
        ("read-only", Self::ReadOnly),
        ("auto", Self::Auto),
        ("full-access", Self::FullAccess),
    ];
}

/// Who has changed the mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Trigger {
    /// The agent itself.
    Agent,
    /// The user.
    User,
    /// The turns of the mode `ulw` are used up.
    UlwCheckpoint,
}

impl Vocabulary for Trigger {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("agent", Self::Agent),
        ("user", Self::User),
        ("ulw_checkpoint", Self::UlwCheckpoint),
    ];
}

/// How long an approval holds. ConnectOnion specification, *`APPROVAL_RESPONSE`*.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Scope {
    /// For this call only.
    Once,
    /// For this tool until the session ends.
    Session,
}

impl Vocabulary for Scope {
    const WORDS: &'static [(&'static str, Self)] =
        &[("once", Self::Once), ("session", Self::Session)];
}

/// What follows when a tool is not approved. Not in the specification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Rejection {
    /// The agent goes on without the tool.
    Soft,
    /// The agent stops. What a response without a mode means.
    #[default]
    Hard,
    /// The agent explains what it wanted.
    Explain,
}

impl Vocabulary for Rejection {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("reject_soft", Self::Soft),
        ("reject_hard", Self::Hard),
        ("reject_explain", Self::Explain),
    ];
}

/// What to do when the turns of the mode `ulw` are used up. Any other word stops the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum UlwAction {
    /// Go on for some more turns.
    Continue,
    /// Go on in another mode.
    SwitchMode,
}

impl Vocabulary for UlwAction {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("continue", Self::Continue),
        ("switch_mode", Self::SwitchMode),
    ];
}

/// How a tool stands, in events and chat items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ToolStatus {
    /// It runs. In chat items.
    Running,
    /// It has run. In chat items.
    Done,
    /// It has run.
    Success,
    /// It has failed.
    Error,
    /// There is no such tool.
    NotFound,
    /// It runs. Newer hosts.
    InProgress,
    /// It has run. Newer hosts.
    Completed,
    /// It has failed. Newer hosts.
    Failed,
}

impl ToolStatus {
    /// Whether the tool has ended badly.
    #[must_use]
    pub const fn is_error(self) -> bool {
        matches!(self, Self::Error | Self::NotFound | Self::Failed)
    }
}

impl Vocabulary for ToolStatus {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("success", Self::Success),
        ("error", Self::Error),
        ("not_found", Self::NotFound),
        ("running", Self::Running),
        ("done", Self::Done),
        ("in_progress", Self::InProgress),
        ("completed", Self::Completed),
        ("failed", Self::Failed),
    ];
}

/// How far something is that starts and ends with events of one type: a model's call, compacting,
/// understanding what is meant, judging what was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// A model is working.
    Running,
    /// A model has answered.
    Success,
    /// The conversation is being made shorter.
    Compacting,
    /// The agent finds out what is meant.
    Analyzing,
    /// The agent knows what is meant.
    Understood,
    /// The agent judges what it has done.
    Evaluating,
    /// It has ended.
    Done,
    /// It has failed.
    Error,
}

impl Vocabulary for Phase {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("running", Self::Running),
        ("success", Self::Success),
        ("compacting", Self::Compacting),
        ("analyzing", Self::Analyzing),
        ("understood", Self::Understood),
        ("evaluating", Self::Evaluating),
        ("done", Self::Done),
        ("error", Self::Error),
    ];
}

/// How a stranger may become a contact. ConnectOnion specification, *Trust Gate*.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnboardMethod {
    /// With an invite code.
    InviteCode,
    /// By a payment.
    Payment,
}

impl Vocabulary for OnboardMethod {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("invite_code", Self::InviteCode),
        ("payment", Self::Payment),
    ];
}

/// How a session stands, in the answer to a `SESSION_STATUS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Standing {
    /// Its agent is working.
    Running,
    /// It is there and idle.
    Connected,
    /// There is none, or it is not the caller's.
    NotFound,
}

impl Vocabulary for Standing {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("running", Self::Running),
        ("connected", Self::Connected),
        ("not_found", Self::NotFound),
    ];
}

/// What an administrator wants: the types of the frames ADMIN_*. Not in the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AdminAction {
    /// Raise a client's level.
    Promote,
    /// Lower a client's level.
    Demote,
    /// Block a client.
    Block,
    /// Unblock a client.
    Unblock,
    /// Tell a client's level.
    GetLevel,
    /// Make somebody an administrator.
    Add,
    /// Make an administrator none.
    Remove,
}

impl Vocabulary for AdminAction {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("ADMIN_PROMOTE", Self::Promote),
        ("ADMIN_DEMOTE", Self::Demote),
        ("ADMIN_BLOCK", Self::Block),
        ("ADMIN_UNBLOCK", Self::Unblock),
        ("ADMIN_GET_LEVEL", Self::GetLevel),
        ("ADMIN_ADD", Self::Add),
        ("ADMIN_REMOVE", Self::Remove),
    ];
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
