//! The context of a new message: instructions, facts about the user, and the last turns.

mod extract;
mod fact;
mod soul;

use std::borrow::Cow;

use exoclaw_proto::limits::MAX_FACTS;
use rpc_core::text::beginning;
use serde::{Deserialize, Serialize};
use snek_proto::llm::chat::ChatMessage;

pub use extract::extract;
pub use fact::{Fact, learn, search, select};
pub use soul::{MAX_SOUL, Soul, SoulText};

/// Most bytes of turns in the context. A longer past would not fit into the model's window, and
/// because a failed message is not remembered, every later one would fail too.
const MAX_PAST: usize = 256 * 1024;

/// A question and its whole answer: the text of all rounds, without tool calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Turn {
    /// The user's message.
    pub user: String,
    /// The agent's answer.
    pub assistant: String,
    /// When the turn ended, in seconds since 1970.
    pub at: u64,
}

impl Turn {
    /// Creates a turn. Returns `None` if the answer is empty. Text before a failure of the provider
    /// counts as an answer.
    pub fn new(user: impl Into<String>, assistant: impl Into<String>, at: u64) -> Option<Self> {
        let (user, assistant) = (user.into(), assistant.into());
        let said = !assistant.trim().is_empty();
        said.then_some(Self {
            user,
            assistant,
            at,
        })
    }

    /// Returns the turn with both texts cut to this many bytes.
    #[must_use]
    pub fn shortened(&self, max: usize) -> Cow<'_, Self> {
        if self.user.len() <= max && self.assistant.len() <= max {
            return Cow::Borrowed(self);
        }
        Cow::Owned(Self {
            user: beginning(&self.user, max).to_owned(),
            assistant: beginning(&self.assistant, max).to_owned(),
            at: self.at,
        })
    }
}

/// The context of a message. Facts and turns must be of one session and one agent, so that no user
/// sees what another one said.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Context<'a> {
    /// The instructions of the configuration.
    pub instructions: Option<&'a str>,
    /// The character of the agent.
    pub soul: Option<&'a str>,
    /// All known facts about the user, oldest first.
    pub facts: &'a [Fact],
    /// The turns, oldest first. Only the newest of a long past are sent.
    pub turns: &'a [Turn],
}

impl<'a> Context<'a> {
    /// Sets [`instructions`](Self::instructions).
    #[must_use]
    pub const fn with_instructions(mut self, text: Option<&'a str>) -> Self {
        self.instructions = text;
        self
    }

    /// Sets [`soul`](Self::soul).
    #[must_use]
    pub const fn with_soul(mut self, text: Option<&'a str>) -> Self {
        self.soul = text;
        self
    }

    /// Sets [`facts`](Self::facts).
    #[must_use]
    pub const fn with_facts(mut self, facts: &'a [Fact]) -> Self {
        self.facts = facts;
        self
    }

    /// Sets [`turns`](Self::turns).
    #[must_use]
    pub const fn with_turns(mut self, turns: &'a [Turn]) -> Self {
        self.turns = turns;
        self
    }

    /// Returns the messages for the model: instructions, soul, the facts that fit the new message,
    /// the turns, and the new message. Blank parts are left out.
    #[must_use]
    pub fn messages(&self, message: &str) -> Vec<ChatMessage> {
        let known = select(self.facts, message, MAX_FACTS);
        let mut messages = Vec::with_capacity(4 + 2 * self.turns.len());
        for text in [self.instructions, self.soul].into_iter().flatten() {
            if !text.trim().is_empty() {
                messages.push(ChatMessage::system(text));
            }
        }
        if !known.is_empty() {
            let mut text = "Known facts:".to_owned();
            for fact in known {
                text.push_str("\n- ");
                text.push_str(&fact.sentence());
            }
            messages.push(ChatMessage::system(text));
        }
        for turn in self.recent() {
            messages.push(ChatMessage::user(turn.user.as_str()));
            messages.push(ChatMessage::assistant(turn.assistant.clone()));
        }
        messages.push(ChatMessage::user(message));
        messages
    }

    /// Returns the newest turns within the limit.
    fn recent(&self) -> &'a [Turn] {
        let mut room = MAX_PAST;
        let fits = self.turns.iter().rev().take_while(|turn| {
            let left = room.checked_sub(turn.user.len() + turn.assistant.len());
            room = left.unwrap_or(0);
            left.is_some()
        });
        let from = self.turns.len() - fits.count();
        self.turns.get(from..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_told_everything_in_order() {
        let facts = extract("My name is Anna. I live in Oslo.", 1);
        let turns = [
            Turn::new("a", "b", 1).unwrap(),
            Turn::new("c", "d", 2).unwrap(),
        ];
        let context = Context::default()
            .with_instructions(Some("Be brief."))
            .with_soul(Some("You are kind."))
            .with_facts(&facts)
            .with_turns(&turns);
        let expected = [
            ChatMessage::system("Be brief."),
            ChatMessage::system("You are kind."),
            ChatMessage::system(
                "Known facts:\n- the user's name is Anna\n- the user lives in Oslo",
            ),
            ChatMessage::user("a"),
            ChatMessage::assistant("b".to_owned()),
            ChatMessage::user("c"),
            ChatMessage::assistant("d".to_owned()),
            ChatMessage::user("e"),
        ];
        assert_eq!(context.messages("e"), expected);
    }

    #[test]
    fn what_is_not_there_is_not_told() {
        let context = Context::default().with_soul(Some(" \n"));
        assert_eq!(context.messages("hi"), [ChatMessage::user("hi")]);
    }

    #[test]
    fn ten_facts_are_told_at_most() {
        let say = |number| extract(&format!("My {number} is good"), number);
        let facts: Vec<_> = (0..30).flat_map(say).collect();
        assert_eq!(facts.len(), 30);
        let messages = Context::default().with_facts(&facts).messages("hi");
        let told = messages.first().unwrap().content.text().into_owned();
        assert_eq!(told.lines().count(), 1 + 10);
    }

    #[test]
    fn a_past_that_is_too_long_is_told_from_its_end() {
        let turn = |length| Turn::new("q", "x".repeat(length), 1).unwrap();
        let count = |turns: &[Turn]| Context::default().with_turns(turns).recent().len();
        assert_eq!(count(&[turn(1), turn(MAX_PAST / 2), turn(MAX_PAST / 2)]), 1);
        assert_eq!(count(&[turn(MAX_PAST), turn(1)]), 1);
        assert_eq!(count(&[turn(1), turn(MAX_PAST)]), 0);
        assert_eq!(count(&[turn(1), turn(MAX_PAST - 2)]), 1);
        assert_eq!(count(&[turn(1), turn(2)]), 2);
    }

    #[test]
    fn only_turns_with_an_answer_are_remembered() {
        assert_eq!(Turn::new("hi", "", 1), None);
        assert_eq!(Turn::new("hi", " \n", 1), None);
        assert!(Turn::new("hi", "I was", 1).is_some());
    }
}
