//! The context of a new message: instructions, facts about the user, and the last turns.

mod extract;
mod fact;
mod soul;
mod turn;

use exoclaw_proto::limits::MAX_FACTS;
use snek_proto::llm::chat::ChatMessage;

pub use extract::extract;
pub use fact::{Fact, learn, search, select};
pub use soul::{MAX_SOUL, Soul, SoulText};
pub use turn::{Mark, Turn};

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
    /// The turns, oldest first.
    pub turns: &'a [Turn],
    /// How many turns are sent at most; those without a word of an answer do not count. By default,
    /// all.
    pub window: Option<usize>,
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

    /// Sets [`window`](Self::window).
    #[must_use]
    pub const fn with_window(mut self, turns: usize) -> Self {
        self.window = Some(turns);
        self
    }

    /// Returns the messages for the model: instructions, soul, the facts that fit the new message,
    /// the turns, and the new message. Blank parts are left out, and questions that have no answer
    /// because the provider failed.
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
        for turn in self.recent().iter().filter(|turn| turn.is_told()) {
            messages.push(ChatMessage::user(turn.user.as_str()));
            messages.push(ChatMessage::assistant(turn.answer()));
        }
        messages.push(ChatMessage::user(message));
        messages
    }

    /// Returns the newest turns within the window.
    fn recent(&self) -> &'a [Turn] {
        let mut window = self.window.unwrap_or(usize::MAX);
        let fits = self.turns.iter().rev().take_while(|turn| {
            let place = window.checked_sub(usize::from(turn.has_words()));
            window = place.unwrap_or(0);
            place.is_some()
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
    fn a_model_is_told_what_became_of_an_answer_but_of_no_question_without_one() {
        let mark = |user, said, mark| Turn::marked(user, said, 1, mark);
        let why = || "why".to_owned();
        let turns = [
            mark("a", "so", Mark::Stopped),
            mark("b", "", Mark::Stopped),
            mark("c", "well", Mark::BrokenOff(why())),
            mark("d", " ", Mark::Failed(why())),
        ];
        let expected = [("a", "so\n\n[stopped]"), ("b", "[stopped]"), ("c", "well")];
        let mut messages = Vec::new();
        for (user, answer) in expected {
            messages.push(ChatMessage::user(user));
            messages.push(ChatMessage::assistant(answer.to_owned()));
        }
        messages.push(ChatMessage::user("f"));
        let context = Context::default().with_turns(&turns);
        assert_eq!(context.messages("f"), messages);
    }

    #[test]
    fn turns_without_a_word_of_an_answer_push_none_out_of_the_window() {
        let whole = |user| Turn::new(user, "x", 1).unwrap();
        let failed = Turn::marked("b", "", 1, Mark::Stopped);
        let turns = [
            whole("a"),
            failed.clone(),
            whole("c"),
            failed.clone(),
            failed,
        ];
        let context = Context::default().with_turns(&turns);
        let told = |window| context.with_window(window).recent().len();
        assert_eq!([told(1), told(2), told(3)], [4, 5, 5]);
    }
}
