//! [`Turn`]: a question and its answer; and [`Mark`], the outcome of an answer that is not whole.

use std::borrow::Cow;
use std::fmt;

use rpc_core::text::beginning;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::model::ModelError;

/// Most bytes of a reason.
const MAX_WHY: usize = 1024;

/// The outcome of an answer that is not whole. It is shown in words: `stopped`, `broken off: …` or
/// `failed: …`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// Its client has stopped it, or has left.
    Stopped,
    /// It broke off after its first word, for this reason.
    BrokenOff(String),
    /// There is none, for this reason. No model gets the question again: if the provider refuses it,
    /// it would refuse every request with it.
    Failed(String),
}

impl Mark {
    /// Returns the mark of an answer that failed for this reason. Whether it `has_begun`.
    pub fn failed(why: &str, has_begun: bool) -> Self {
        let why = beginning(why, MAX_WHY).to_owned();
        match has_begun {
            true => Self::BrokenOff(why),
            false => Self::Failed(why),
        }
    }

    /// Returns the mark of an answer that failed with this error of the model. Whether it `has_begun`.
    pub fn of(error: &ModelError, has_begun: bool) -> Self {
        Self::failed(&error.to_string(), has_begun)
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped => f.write_str("stopped"),
            Self::BrokenOff(why) => write!(f, "broken off: {why}"),
            Self::Failed(why) => write!(f, "failed: {why}"),
        }
    }
}

/// A question and its answer: the text of all rounds, without tool calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// The user's message.
    pub user: String,
    /// The agent's answer. With a mark, what there is of it.
    pub assistant: String,
    /// When the turn ended, in seconds since 1970.
    pub at: u64,
    /// When it began, in seconds since 1970, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<u64>,
    /// The outcome of an answer that is not whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<Mark>,
    /// The name that its client gave it. A turn takes the place of the one before it if that has the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// What the provider of the answer gets back with it, and no other.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
    /// The tokens that the model has read and written for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<(u64, u64)>,
}

impl Turn {
    /// Creates a turn with a whole answer. Returns `None` if the answer is empty.
    pub fn new(user: impl Into<String>, assistant: impl Into<String>, at: u64) -> Option<Self> {
        let turn = Self {
            user: user.into(),
            assistant: assistant.into(),
            at,
            ..Self::default()
        };
        turn.has_words().then_some(turn)
    }

    /// Creates a turn whose answer is not whole, and may be empty.
    pub fn marked(
        user: impl Into<String>,
        assistant: impl Into<String>,
        at: u64,
        mark: Mark,
    ) -> Self {
        Self {
            user: user.into(),
            assistant: assistant.into(),
            at,
            mark: Some(mark),
            ..Self::default()
        }
    }

    /// Sets [`id`](Self::id).
    pub fn with_id(mut self, id: Option<&str>) -> Self {
        self.id = id.map(str::to_owned);
        self
    }

    /// Returns whether the answer has a word.
    pub fn has_words(&self) -> bool {
        !self.assistant.trim().is_empty()
    }

    /// Returns whether a model gets it.
    pub(super) const fn is_told(&self) -> bool {
        !matches!(self.mark, Some(Mark::Failed(_)))
    }

    /// Returns the answer as a model gets it: whether the user stopped it, and if not, what there is.
    pub(super) fn answer(&self) -> String {
        match &self.mark {
            Some(Mark::Stopped) if self.has_words() => format!("{}\n\n[stopped]", self.assistant),
            // Something has to be said: roles alternate.
            Some(Mark::Stopped) => "[stopped]".to_owned(),
            _ => self.assistant.clone(),
        }
    }

    /// Returns the turn with both texts cut to this many bytes, and without more of what only a provider knows.
    pub fn shortened(&self, max: usize) -> Cow<'_, Self> {
        let mut extra = self.extra.clone();
        if serde_json::to_string(&extra).is_ok_and(|json| json.len() > max) {
            extra.clear();
        }
        if self.user.len() <= max && self.assistant.len() <= max && extra == self.extra {
            return Cow::Borrowed(self);
        }
        Cow::Owned(Self {
            user: beginning(&self.user, max).to_owned(),
            assistant: beginning(&self.assistant, max).to_owned(),
            extra,
            ..self.clone()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Refusal;

    #[test]
    fn only_whole_turns_with_an_answer_are_remembered_without_a_mark() {
        assert_eq!(Turn::new("hi", "", 1), None);
        assert_eq!(Turn::new("hi", " \n", 1), None);
        assert!(Turn::new("hi", "I am", 1).is_some());
    }

    #[test]
    fn an_unmarked_turn_is_whole_and_a_whole_turn_is_stored_unmarked() {
        let stored = r#"{"user":"hi","assistant":"I am","at":1}"#;
        let turn: Turn = serde_json::from_str(stored).unwrap();
        assert_eq!(Some(&turn), Turn::new("hi", "I am", 1).as_ref());
        assert_eq!(serde_json::to_string(&turn).unwrap(), stored);
        let extra = [("r".to_owned(), Value::from("so"))].into_iter().collect();
        let turn = Turn { extra, ..turn };
        let stored = serde_json::to_string(&turn).unwrap();
        assert_eq!(serde_json::from_str::<Turn>(&stored).unwrap(), turn);
        assert_eq!(*turn.shortened(10), turn);
        assert_eq!(turn.shortened(9).extra.len(), 0);
    }

    #[test]
    fn a_mark_names_the_outcome_of_the_answer() {
        let refused = |refusal, status| ModelError::Refused {
            status,
            refusal,
            message: "no".to_owned(),
        };
        for (error, has_begun, expected) in [
            (
                ModelError::Cut,
                true,
                "broken off: the provider closed the connection before the end of the answer; try again",
            ),
            (refused(Refusal::Key, Some(401)), false, "failed: no"),
            (refused(Refusal::Request, Some(400)), false, "failed: no"),
            (refused(Refusal::Broken, None), true, "broken off: no"),
        ] {
            let mark = Mark::of(&error, has_begun);
            assert_eq!(mark.to_string(), expected);
            let turn = Turn::marked("hi", "I was", 1, mark);
            let stored = serde_json::to_string(&turn).unwrap();
            assert_eq!(serde_json::from_str::<Turn>(&stored).unwrap(), turn);
        }
        assert_eq!(Mark::Stopped.to_string(), "stopped");
    }
}
